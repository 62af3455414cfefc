"""How libraries declare what they bring: functions by overloads, macros, constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

from msgspec import Struct

from karpenter_linode.cel.errors import no_such_overload
from karpenter_linode.cel.types import Type
from karpenter_linode.cel.values import decode_key, kind_of

if TYPE_CHECKING:
    from karpenter_linode.cel.ast import Node
    from karpenter_linode.cel.macros import MacroTable

UNBOUNDED = 2**64 - 1
"""The largest size or cost an estimate can have: not known to be bounded."""


_EXACT = 2**53


def wrapped(size: int) -> int:
    """A bound as 64 bits hold it: where Kubernetes lets one overflow, this one does, too."""
    return size % (UNBOUNDED + 1)


def _tenth(size: int, factor: int) -> int:
    """Rounded up. Beyond what a double holds exactly Kubernetes' bounds come from doubles, and so do these."""
    if size <= _EXACT:
        return -(-size * factor // 10)
    return min(ceil(float(size) * (factor / 10)), UNBOUNDED)


class Range(Struct, frozen=True):
    """A size or a cost, between two bounds that saturate at ``UNBOUNDED``."""

    low: int
    high: int

    def __add__(self, other: Range) -> Range:
        return Range(min(self.low + other.low, UNBOUNDED), min(self.high + other.high, UNBOUNDED))

    def __mul__(self, other: Range) -> Range:
        return Range(min(self.low * other.low, UNBOUNDED), min(self.high * other.high, UNBOUNDED))

    def __or__(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    def tenths(self, factor: int = 1) -> Range:
        """A tenth of the range times a factor, rounded up: the price of going through a text of that size."""
        return Range(_tenth(self.low, factor), _tenth(self.high, factor))


ONE = Range(1, 1)
UNKNOWN = Range(0, UNBOUNDED)


class Argument(Struct, frozen=True, eq=False):
    """What an estimator knows of an argument.

    Args:
        size: of a string, list or map.
        element: size of the elements of a list, where known.
        type: static type.
        constant: the value if it is a literal, else ``None``.
    """

    size: Range
    element: Range
    type: Type
    constant: Any = None


class Estimate(Struct, frozen=True, eq=False):
    """The static cost of a call without its arguments, and the size of its result."""

    cost: Range
    size: Range | None = None


Estimator: TypeAlias = "Callable[[tuple[Argument, ...]], Estimate]"
LiteralCheck: TypeAlias = "Callable[[list[Node]], str | None]"
Cost: TypeAlias = int | Callable[..., int]
Folding: TypeAlias = Literal["never", "lazy", "eager"]


class Overload(Struct, frozen=True, eq=False):
    """One signature of a function.

    Args:
        id: unique name.
        params: parameter types, the receiver first for methods.
        result: result type.
        implementation: takes the Python forms of the arguments; raises ``EvaluationError``.
        member: written as a method.
        cost: units of an evaluation, fixed or computed from the arguments *before* the work is done. An argument may be
            a ``code.Failed``: a call is charged before its failure counts.
        loose: the same where static types leave several overloads possible; ``None``: no difference.
        estimate: static counterpart of ``cost``; ``None`` where the cost is fixed.
        folding: what happens with constant arguments: ``never`` computed early; ``lazy``: computed once, an error stays
            a run-time error; ``eager``: an error is a compile error.
        check: looks at the argument nodes before folding and returns a complaint about the literals among them.
    """

    id: str
    params: tuple[Type, ...]
    result: Type
    implementation: Callable[..., Any]
    member: bool = False
    cost: Cost = 1
    loose: Cost | None = None
    estimate: Estimator | None = None
    folding: Folding = "never"
    check: LiteralCheck | None = None


class Function:
    """All overloads of one name, and the choice between them at run time."""

    __slots__ = ("_cache", "_generic", "name", "overloads")

    def __init__(self, name: str, overloads: tuple[Overload, ...]) -> None:
        self.name = name
        self.overloads = overloads
        self._generic: frozenset[str] | None = None
        self._cache: dict[tuple[bool, tuple[type, ...]], Overload] = {}

    @property
    def generic(self) -> frozenset[str]:
        """The overloads, by id, with type parameters in their signatures."""
        if self._generic is None:
            found = (each.id for each in self.overloads if any(map(has_parameter, (*each.params, each.result))))
            self._generic = frozenset(found)
        return self._generic

    def select(self, arguments: tuple[Any, ...], *, member: bool) -> Overload:
        """The overload for arguments of these run-time kinds.

        Raises:
            EvaluationError: none takes them.
        """
        if any(type(argument) in _CONTAINERS for argument in arguments):
            return self._search(arguments, member=member)
        key = (member, tuple(map(type, arguments)))
        found = self._cache.get(key)
        if found is None:
            found = self._search(arguments, member=member)
            self._cache[key] = found
        return found

    def _search(self, arguments: tuple[Any, ...], *, member: bool) -> Overload:
        for overload in self.overloads:
            if (
                overload.member == member
                and len(overload.params) == len(arguments)
                and all(map(_takes, overload.params, arguments))
            ):
                return overload
        raise no_such_overload()


_CONTAINERS = frozenset({list, tuple, dict})


def has_parameter(kind: Type) -> bool:
    """Whether type parameters occur in a type."""
    return kind.kind == "param" or any(map(has_parameter, kind.params))


def _takes(param: Type, value: Any) -> bool:
    """Whether a parameter takes a value. Of a list or a map the first element tells, as in Kubernetes."""
    kind = kind_of(value)
    if param.kind in ("param", "dyn") or (param.kind == "object" and kind == "map"):
        return True
    if param.name != kind:
        return False
    if not param.params or type(value) not in _CONTAINERS or not value:
        return True
    if isinstance(value, dict):
        key = next(iter(value))
        return _takes(param.params[0], decode_key(key)) and _takes(param.params[1], value[key])
    return _takes(param.params[0], value[0])


class Library(NamedTuple):
    """A named set of functions, macros and constants."""

    name: str
    overloads: Mapping[str, tuple[Overload, ...]]
    macros: MacroTable = MappingProxyType({})
    types: tuple[Type, ...] = ()


class Aspects(TypedDict, total=False):
    """The aspects of an overload that most do without; see ``Overload``."""

    cost: Cost
    loose: Cost | None
    estimate: Estimator | None
    folding: Folding
    check: LiteralCheck | None


def method(
    overload_id: str,
    params: tuple[Type, ...],
    result: Type,
    implementation: Callable[..., Any],
    **aspects: Unpack[Aspects],
) -> Overload:
    """An overload written ``receiver.name(...)``; the receiver is the first parameter."""
    return Overload(overload_id, params, result, implementation, member=True, **aspects)


def function(
    overload_id: str,
    params: tuple[Type, ...],
    result: Type,
    implementation: Callable[..., Any],
    **aspects: Unpack[Aspects],
) -> Overload:
    """An overload written ``name(...)``."""
    return Overload(overload_id, params, result, implementation, **aspects)
