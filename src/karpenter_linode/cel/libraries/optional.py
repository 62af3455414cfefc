"""Optional values (spec/cel-for-dra.md 5.8)."""

from __future__ import annotations

from typing import Any, Final

from karpenter_linode.cel import ast, macros
from karpenter_linode.cel.access import optional_index
from karpenter_linode.cel.declarations import Library, function, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.libraries.operators import TIME_MIN
from karpenter_linode.cel.types import BOOL, INT, list_of, map_of, optional_of, type_param
from karpenter_linode.cel.values import NONE, Duration, Optional, Timestamp

_V: Final = type_param("V")
_K: Final = type_param("K")
_OPTIONAL: Final = optional_of(_V)
_LIST: Final = list_of(_V)
_MAP: Final = map_of(_K, _V)


def _of_non_zero(value: Any) -> Optional:
    empty = value is None or (isinstance(value, str | bytes | list | tuple | dict | int | float) and not value)
    if type(value) is Duration:
        empty = value.nanos == 0
    elif type(value) is Timestamp:
        empty = value.nanos == TIME_MIN
    return NONE if empty else Optional(value)


def _value(optional: Optional) -> Any:
    if optional is NONE:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _or_value(optional: Optional, other: Any) -> Any:
    return other if optional is NONE else optional.value


def _unwrap(optionals: list[Optional]) -> list[Any]:
    return [optional.value for optional in optionals if optional is not NONE]


_OVERLOADS: Final = {
    "optional.of": (function("optional_of", (_V,), _OPTIONAL, Optional),),
    "optional.none": (function("optional_none", (), _OPTIONAL, lambda: NONE),),
    "optional.ofNonZeroValue": (function("optional_of_non_zero_value", (_V,), _OPTIONAL, _of_non_zero),),
    "optional.unwrap": (function("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap),),
    "unwrapOpt": (method("optional_unwrap_opt", (list_of(_OPTIONAL),), _LIST, _unwrap),),
    "hasValue": (method("optional_has_value", (_OPTIONAL,), BOOL, lambda optional: optional is not NONE),),
    "value": (method("optional_value", (_OPTIONAL,), _V, _value),),
    "or": (
        method(
            "optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, lambda one, other: other if one is NONE else one
        ),
    ),
    "orValue": (method("optional_or_value", (_OPTIONAL, _V), _V, _or_value),),
    "first": (method("list_first", (_LIST,), _OPTIONAL, lambda values: Optional(values[0]) if values else NONE),),
    "last": (method("list_last", (_LIST,), _OPTIONAL, lambda values: Optional(values[-1]) if values else NONE),),
    ast.OPTIONAL_INDEX: (
        function("list_optindex_optional_int", (_LIST, INT), _OPTIONAL, optional_index),
        function("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL, optional_index),
        function("map_optindex_optional_value", (_MAP, _K), _OPTIONAL, optional_index),
        function("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL, optional_index),
    ),
    ast.INDEX: (
        function("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL, optional_index),
        function("optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL, optional_index),
    ),
}
LIBRARY: Final = Library(
    "optional",
    _OVERLOADS,
    {
        ("optMap", 2, True): macros.optional_map(flat=False),
        ("optFlatMap", 2, True): macros.optional_map(flat=True),
    },
)
