"""The values an expression works on, and their Python forms.

null ``None``, bool ``bool``, int ``int``, uint ``UInt``, double ``float``, string ``str``, bytes ``bytes``, list
``list`` or ``tuple``, map and object ``dict``, timestamp ``Timestamp``, duration ``Duration``, type ``TypeValue``,
optional ``Optional``; ``Quantity`` and ``SemVer`` are those of the model. Libraries add kinds by ``register_kind``.

Keys of maps are strings, ints, uints or bools. Python takes ``True`` for ``1``, so bool keys are held as ``BoolKey``;
``make_map`` sees to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.semver import SemVer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


class UInt(int):
    """A 64-bit unsigned integer."""

    __slots__ = ()


KEYS: Final = frozenset({bool, float, int, str, UInt})
"""Python types of the values by which parts of others are read."""


class DefaultMap(dict[Any, Any]):
    """A map that answers unknown keys with a default. Membership, size and iteration tell only of what is really there.

    Args:
        content: the real entries.
        default: what indexing by any other key gives.
    """

    __slots__ = ("default",)

    def __init__(self, content: Mapping[Any, Any], default: Any) -> None:
        super().__init__(content)
        self.default = default

    def __missing__(self, _key: object) -> Any:
        return self.default


class BoolKey:
    """A bool as a map key: equal to the bool, never to 0 or 1."""

    __slots__ = ("value",)

    def __init__(self, *, value: bool) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is bool and other == self.value)

    def __hash__(self) -> int:
        return hash(self.value)


_BOOL_KEYS: Final = {False: BoolKey(value=False), True: BoolKey(value=True)}


class OddKey:
    """A key that no lookup can find: a literal may well spell ``{null: 1}``, and its size is then 1."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Optional:
    """A value that may be absent. ``NONE`` is the absent one."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


NONE: Final = Optional(None)


class Timestamp:
    """A point in time.

    Args:
        nanos: nanoseconds since 1970 UTC.
        offset: seconds east of UTC in which it was written; it shows in its text and nowhere else.
    """

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.nanos == self.nanos

    def __hash__(self) -> int:
        return hash((type(self), self.nanos))


class Duration(Timestamp):
    """A span of time, in nanoseconds."""

    __slots__ = ()


class TypeValue:
    """A type as a value: what ``type(x)`` gives."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is TypeValue and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class ComputedQuantity(Quantity):
    """What ``add`` and ``sub`` make. kube-scheduler cannot compare it when it stands on the right of ``==``.

    An expression that fails in kube-scheduler must not buy nodes here, so it fails here too.
    """

    __slots__ = ()


_KINDS: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    tuple: "list",
    dict: "map",
    DefaultMap: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
    ComputedQuantity: "kubernetes.Quantity",
    SemVer: "kubernetes.Semver",
}


def register_kind(python_type: type, kind: str) -> None:
    """Tell which kind of value a Python type stands for. For libraries, at import."""
    _KINDS[python_type] = kind


def kind_of(value: Any) -> str:
    """The run-time type name of a value."""
    kind = _KINDS.get(type(value))
    if kind is None:
        for base in type(value).__mro__[1:]:
            if base in _KINDS:
                return _KINDS[base]
        raise EvaluationError(f"a value of the Python type {type(value).__name__} has no place in an expression")
    return kind


def encode_key(key: Any) -> Any:
    """A value as it is held as a map key, and looked up."""
    return _BOOL_KEYS[key] if type(key) is bool else key


def decode_key(key: Any) -> Any:
    """The value that a held key stands for."""
    return key.value if type(key) in (BoolKey, OddKey) else key


def make_map(entries: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """A map of keys of any kind. Of equal keys the last one counts."""
    made: dict[Any, Any] = {}
    for key, value in entries:
        made[encode_key(key) if type(key) in (str, int, UInt, bool) else OddKey(key)] = value
    return made


def elements_of(value: Any) -> Any:
    """What a one-variable macro goes through: list elements, or map keys.

    Raises:
        EvaluationError: the value is neither list nor map.
    """
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, dict):
        return [decode_key(key) for key in value]
    raise EvaluationError(f"got '{_GO_NAMES.get(kind_of(value), kind_of(value))}', expected iterable type")


def pairs_of(value: Any) -> Any:
    """What a two-variable macro goes through: (index, element), or (key, value).

    Raises:
        EvaluationError: the value is neither list nor map.
    """
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if isinstance(value, dict):
        return [(decode_key(key), held) for key, held in value.items()]
    raise EvaluationError(f"got '{_GO_NAMES.get(kind_of(value), kind_of(value))}', expected iterable type")


# As the error text of Kubernetes spells them.
_GO_NAMES: Final = {
    "null_type": "types.Null",
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.Quantity": "cel.Quantity",
}
