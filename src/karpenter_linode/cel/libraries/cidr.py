"""Networks in CIDR notation (spec/cel-for-dra.md 5.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cel.cost import register_size, size_of, tenths, traversal
from karpenter_linode.cel.declarations import Argument, Estimate, Library, Overload, Range, function, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.libraries.ip import V4, IpAddress, parse_address, parse_estimate
from karpenter_linode.cel.relations import register_strict
from karpenter_linode.cel.types import BOOL, CIDR, INT, IP, STRING
from karpenter_linode.cel.values import register_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.cel.types import Type

_LONGEST: Final = 64
_COMPARE: Final = Range(1, 4)  # two addresses of 4 to 16 bytes, at a tenth a byte
_MASK: Final = Range(2, 3)  # and one once more


class Cidr:
    """An address and how many of its bits name the network."""

    __slots__ = ("address", "prefix")

    def __init__(self, address: IpAddress, prefix: int) -> None:
        self.address = address
        self.prefix = prefix

    def __eq__(self, other: object) -> bool:
        return type(other) is Cidr and (other.address, other.prefix) == (self.address, self.prefix)

    def __hash__(self) -> int:
        return hash((self.address, self.prefix))

    def contains(self, address: IpAddress) -> bool:
        """Whether an address is of the network."""
        return address.family == self.address.family and address.within(self.address.number, self.prefix)


register_kind(Cidr, "net.CIDR")
register_strict(Cidr)
register_size(Cidr, lambda network: (network.prefix + 7) // 8)


def _parse(text: str) -> Cidr:
    base, slash, prefix = text.partition("/")
    digits = prefix.isascii() and prefix.isdigit() and (prefix == "0" or prefix[0] != "0")
    if not slash or not digits or len(text) > _LONGEST:
        raise EvaluationError(
            f'network address parse error during conversion from string: "{text[:_LONGEST]}" is no CIDR'
        )
    address = parse_address(base)
    if int(prefix) > address.bits:
        raise EvaluationError(
            f'network address parse error during conversion from string: "{text}": prefix length out of range'
        )
    return Cidr(address, int(prefix))


def _is_cidr(text: str) -> bool:
    try:
        _parse(text)
    except EvaluationError:
        return False
    return True


def _contains_ip_text(network: Cidr, text: str) -> bool:
    return network.contains(parse_address(text))


def _contains_cidr(network: Cidr, other: Cidr) -> bool:
    return network.prefix <= other.prefix and network.contains(other.address)


def _contains_cidr_text(network: Cidr, text: str) -> bool:
    return _contains_cidr(network, _parse(text))


def _masked(network: Cidr) -> Cidr:
    shift = network.address.bits - network.prefix
    number = network.address.number >> shift << shift
    return Cidr(_address(network.address.family, number), network.prefix)


def _address(family: int, number: int) -> IpAddress:
    from ipaddress import IPv4Address, IPv6Address  # noqa: PLC0415 - as in `parse_address`

    made = IPv4Address(number) if family == V4 else IPv6Address(number)
    return IpAddress(family, number, str(made))


def _compare_cost(network: Cidr, _other: object) -> int:
    """Comparing the bytes of the network's prefix with those of the other address."""
    return tenths(2 * size_of(network))


def _mask_cost(network: Cidr) -> int:
    """A network within a network is masked first."""
    return tenths(size_of(network)) + 1


def _compare_cidr_cost(network: Cidr, other: object) -> int:
    return _compare_cost(network, other) + _mask_cost(network)


def _reading(cost: Callable[..., int]) -> Callable[..., int]:
    """The other one is a text, which is read first."""
    return lambda network, other: cost(network, other) + traversal(other)


def _comparison(
    name: str,
    text: Callable[..., bool],
    value: Callable[..., bool],
    kind: Type,
    cost: Callable[..., int],
    bounds: Range,
) -> tuple[Overload, ...]:
    params, texts = (CIDR, kind), (CIDR, STRING)
    reading = _reading(cost)

    def estimate(_arguments: tuple[Argument, ...]) -> Estimate:
        return Estimate(bounds)

    def reading_estimate(arguments: tuple[Argument, ...]) -> Estimate:
        return Estimate(bounds + arguments[1].size.tenths())

    return (
        method(f"cidr_{name}_string", texts, BOOL, text, cost=reading, loose=cost, estimate=reading_estimate),
        method(f"cidr_{name}_{kind}", params, BOOL, value, cost=cost, estimate=estimate),
    )


_OVERLOADS: Final = {
    "cidr": (
        function("string_to_cidr", (STRING,), CIDR, _parse, cost=traversal, estimate=parse_estimate, folding="lazy"),
    ),
    "isCIDR": (function("is_cidr", (STRING,), BOOL, _is_cidr, cost=traversal, estimate=parse_estimate),),
    "containsIP": _comparison("contains_ip", _contains_ip_text, Cidr.contains, IP, _compare_cost, _COMPARE),
    "containsCIDR": _comparison(
        "contains_cidr", _contains_cidr_text, _contains_cidr, CIDR, _compare_cidr_cost, _COMPARE + _MASK
    ),
    "ip": (method("cidr_ip", (CIDR,), IP, lambda network: network.address),),
    "prefixLength": (method("cidr_prefix_length", (CIDR,), INT, lambda network: network.prefix),),
    "masked": (method("cidr_masked", (CIDR,), CIDR, _masked),),
    "string": (
        function("cidr_to_string", (CIDR,), STRING, lambda network: f"{network.address.text}/{network.prefix}"),
    ),
}
LIBRARY: Final = Library("cidr", _OVERLOADS, types=(CIDR,))
