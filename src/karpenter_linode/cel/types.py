"""The static types of the language and how they are written in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class Type(Struct, frozen=True):
    """A static type.

    Args:
        name: as messages write it: ``int``, ``list``, ``kubernetes.Quantity``. For a parameter, its letter.
        kind: ``plain`` (all that needs no more than its name), ``generic`` (has parameters), ``object`` (has fields),
            ``param`` (stands for any one type within a signature or an inference), ``dyn``,
            ``any``, ``error``.
        params: the type arguments of a generic type.
        fields: the fields of an object type, as pairs in the order of their declaration.
    """

    name: str
    kind: str = "plain"
    params: tuple[Type, ...] = ()
    fields: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(str(param) for param in self.params)})"

    def field(self, name: str) -> Type | None:
        """The type of a field of an object type, ``None`` when there is no such field."""
        for field_name, field_type in self.fields:
            if field_name == name:
                return field_type
        return None


BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
TIMESTAMP: Final = Type("google.protobuf.Timestamp")
DURATION: Final = Type("google.protobuf.Duration")
DYN: Final = Type("dyn", "dyn")
ANY: Final = Type("any", "any")
"""Like dyn, but a macro cannot go through it: device attributes before Kubernetes 1.36."""
ERROR: Final = Type("!error!", "error")
QUANTITY: Final = Type("kubernetes.Quantity")
SEMVER: Final = Type("kubernetes.Semver")
IP: Final = Type("net.IP")
CIDR: Final = Type("net.CIDR")
URL: Final = Type("kubernetes.URL")
FORMAT: Final = Type("kubernetes.NamedFormat")


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return Type("list", "generic", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type("map", "generic", (key, value))


def optional_of(value: Type) -> Type:
    """``optional_type(value)``."""
    return Type("optional_type", "generic", (value,))


def type_of(value: Type) -> Type:
    """``type(value)``, the type of types."""
    return Type("type", "generic", (value,))


def type_param(letter: str) -> Type:
    """A type parameter of a signature."""
    return Type(letter, "param")


def object_type(name: str, fields: Mapping[str, Type]) -> Type:
    """A type with named fields; its values are mappings with exactly these keys."""
    return Type(name, "object", (), tuple(fields.items()))


def abstract_type(name: str, *params: Type) -> Type:
    """A type known by its name only, with or without parameters."""
    return Type(name, "generic", params) if params else Type(name)
