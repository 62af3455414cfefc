"""Networks in CIDR notation (spec/cel-for-dra.md 5.6)."""

from __future__ import annotations

from typing import Final

from karpenter_linode.cel.cost import traversal
from karpenter_linode.cel.declarations import Argument, Estimate, Library, Range, function, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.libraries.ip import V4, IpAddress, parse_address, parse_estimate
from karpenter_linode.cel.relations import register_strict
from karpenter_linode.cel.types import BOOL, CIDR, INT, IP, STRING
from karpenter_linode.cel.values import register_kind

_LONGEST: Final = 64
_COMPARE: Final = Range(1, 4)  # two addresses of 4 to 16 bytes, at a tenth a byte


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


def _compare_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    cost = _COMPARE
    return Estimate(cost + arguments[1].size.tenths() if arguments[1].type == STRING else cost)


def _compare_cost(network: Cidr, other: object) -> int:
    cost = network.address.bits // 40 + 1
    return cost + traversal(other) if isinstance(other, str) else cost


_OVERLOADS: Final = {
    "cidr": (
        function("string_to_cidr", (STRING,), CIDR, _parse, cost=traversal, estimate=parse_estimate, folding="lazy"),
    ),
    "isCIDR": (function("is_cidr", (STRING,), BOOL, _is_cidr, cost=traversal, estimate=parse_estimate),),
    "containsIP": (
        method(
            "cidr_contains_ip_string",
            (CIDR, STRING),
            BOOL,
            _contains_ip_text,
            cost=_compare_cost,
            estimate=_compare_estimate,
        ),
        method("cidr_contains_ip_ip", (CIDR, IP), BOOL, Cidr.contains, cost=_compare_cost, estimate=_compare_estimate),
    ),
    "containsCIDR": (
        method(
            "cidr_contains_cidr_string",
            (CIDR, STRING),
            BOOL,
            _contains_cidr_text,
            cost=_compare_cost,
            estimate=_compare_estimate,
        ),
        method(
            "cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr, cost=_compare_cost, estimate=_compare_estimate
        ),
    ),
    "ip": (method("cidr_ip", (CIDR,), IP, lambda network: network.address),),
    "prefixLength": (method("cidr_prefix_length", (CIDR,), INT, lambda network: network.prefix),),
    "masked": (method("cidr_masked", (CIDR,), CIDR, _masked),),
    "string": (
        function("cidr_to_string", (CIDR,), STRING, lambda network: f"{network.address.text}/{network.prefix}"),
    ),
}
LIBRARY: Final = Library("cidr", _OVERLOADS, types=(CIDR,))
