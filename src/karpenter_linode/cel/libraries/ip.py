"""IP addresses (spec/cel-for-dra.md 5.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.cost import register_size, traversal, traversal_twice
from karpenter_linode.cel.declarations import Argument, Estimate, Library, Overload, function, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.relations import register_strict
from karpenter_linode.cel.types import BOOL, INT, IP, STRING
from karpenter_linode.cel.values import register_kind

if TYPE_CHECKING:
    from collections.abc import Callable

V4: Final = 4
_LONGEST: Final = 64


class IpAddress:
    """An IP address as a value. ``number`` is its bits, ``family`` 4 or 6."""

    __slots__ = ("family", "number", "text")

    def __init__(self, family: int, number: int, text: str) -> None:
        self.family = family
        self.number = number
        self.text = text

    @property
    def bits(self) -> int:
        """32 or 128."""
        return 32 if self.family == V4 else 128

    def __eq__(self, other: object) -> bool:
        return type(other) is IpAddress and (other.family, other.number) == (self.family, self.number)

    def __hash__(self) -> int:
        return hash((self.family, self.number))

    def within(self, network: int, prefix: int) -> bool:
        """Whether its first ``prefix`` bits are those of another address of its family."""
        shift = self.bits - prefix
        return self.number >> shift == network >> shift


register_kind(IpAddress, "net.IP")
register_strict(IpAddress)
register_size(IpAddress, lambda address: address.bits // 8)


def parse_address(text: str) -> IpAddress:
    """An address without zone; IPv4 in IPv6 clothes is refused.

    Raises:
        EvaluationError: it is none.
    """
    from ipaddress import IPv6Address, ip_address  # noqa: PLC0415 - only expressions with addresses pay for it

    if "%" in text:
        raise EvaluationError(f'IP address "{text[:_LONGEST]}" with zone value is not allowed')
    try:
        found = ip_address(text if len(text) <= _LONGEST and text.isascii() else "")
    except ValueError as error:
        raise EvaluationError(
            f'IP Address "{text[:_LONGEST]}" parse error during conversion from string: {error}'
        ) from None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return IpAddress(found.version, int(found), str(found))


def _is_ip(text: str) -> bool:
    try:
        parse_address(text)
    except EvaluationError:
        return False
    return True


def _in(*networks: str) -> Callable[[IpAddress], bool]:
    """Whether an address is in one of some networks, which are read when first asked about."""
    parsed: list[tuple[int, int, int]] = []

    def test(address: IpAddress) -> bool:
        if not parsed:
            for network in networks:
                base, _, prefix = network.partition("/")
                read = parse_address(base)
                parsed.append((read.family, read.number, int(prefix)))
        return any(family == address.family and address.within(number, prefix) for family, number, prefix in parsed)

    return test


_unspecified = _in("0.0.0.0/32", "::/128")
_loopback = _in("127.0.0.0/8", "::1/128")
_multicast = _in("224.0.0.0/4", "ff00::/8")
_link_local_unicast = _in("169.254.0.0/16", "fe80::/10")
_link_local_multicast = _in(
    "224.0.0.0/24", "ff02::/16", "ff12::/16", "ff22::/16", "ff32::/16", "ff42::/16", "ff52::/16"
)
_broadcast = _in("255.255.255.255/32")


def _global_unicast(address: IpAddress) -> bool:
    return not any(test(address) for test in (_unspecified, _loopback, _multicast, _link_local_unicast, _broadcast))


def _test(name: str, implementation: Callable[[IpAddress], Any]) -> tuple[Overload, ...]:
    return (method(f"ip_{name}", (IP,), INT if name == "family" else BOOL, implementation),)


def parse_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    """Reading an address goes through its text."""
    return Estimate(arguments[0].size.tenths())


_OVERLOADS: Final = {
    "ip": (
        function("string_to_ip", (STRING,), IP, parse_address, cost=traversal, estimate=parse_estimate, folding="lazy"),
    ),
    "isIP": (function("is_ip", (STRING,), BOOL, _is_ip, cost=traversal, estimate=parse_estimate),),
    "ip.isCanonical": (
        function(
            "ip_is_canonical",
            (STRING,),
            BOOL,
            lambda text: parse_address(text).text == text,
            cost=traversal_twice,
            estimate=lambda arguments: Estimate(arguments[0].size.tenths(2)),
        ),
    ),
    "string": (function("ip_to_string", (IP,), STRING, lambda address: address.text),),
    "family": _test("family", lambda address: address.family),
    "isUnspecified": _test("is_unspecified", _unspecified),
    "isLoopback": _test("is_loopback", _loopback),
    "isLinkLocalMulticast": _test("is_link_local_multicast", _link_local_multicast),
    "isLinkLocalUnicast": _test("is_link_local_unicast", _link_local_unicast),
    "isGlobalUnicast": _test("is_global_unicast", _global_unicast),
}
LIBRARY: Final = Library("ip", _OVERLOADS, types=(IP,))
