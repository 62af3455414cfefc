"""The Common Expression Language as Kubernetes device selectors use it.

Here belong the language, its function libraries and its cost model: text in, verdict out. What a selector may name is
said by whoever makes an ``Environment``; devices and pods are unknown here.

text -> ``lexer`` -> ``parser`` (and ``macros``) -> ``checker`` -> ``fold`` -> ``emit`` -> ``Program``
"""

from karpenter_linode.cel.environment import Environment
from karpenter_linode.cel.errors import CelError, CompileError, CostLimitExceededError, EvaluationError
from karpenter_linode.cel.program import DEFAULT_COST_LIMIT, Clause, Part, Program
from karpenter_linode.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    QUANTITY,
    SEMVER,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    object_type,
)
from karpenter_linode.cel.values import DefaultMap, Optional, UInt, make_map

__all__ = [
    "ANY",
    "BOOL",
    "BYTES",
    "DEFAULT_COST_LIMIT",
    "DOUBLE",
    "DYN",
    "INT",
    "QUANTITY",
    "SEMVER",
    "STRING",
    "UINT",
    "CelError",
    "Clause",
    "CompileError",
    "CostLimitExceededError",
    "DefaultMap",
    "Environment",
    "EvaluationError",
    "Optional",
    "Part",
    "Program",
    "Type",
    "UInt",
    "list_of",
    "make_map",
    "map_of",
    "object_type",
]
