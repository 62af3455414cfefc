"""The Common Expression Language as Kubernetes device selectors use it. Knows nothing of devices or pods."""

from karpenter_linode.cel.environment import Environment
from karpenter_linode.cel.errors import CelError, CompileError, CostLimitExceededError, EvaluationError
from karpenter_linode.cel.program import DEFAULT_COST_LIMIT, Clause, Program
from karpenter_linode.cel.types import (
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
from karpenter_linode.cel.values import DefaultMap, Optional, UInt

__all__ = [
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
    "Program",
    "Type",
    "UInt",
    "list_of",
    "map_of",
    "object_type",
]
