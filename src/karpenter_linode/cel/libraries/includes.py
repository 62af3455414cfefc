"""``includes`` of Kubernetes 1.36, alpha, for device selectors on list attributes. Not part of ``KUBERNETES``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.cost import walk
from karpenter_linode.cel.declarations import Estimate, Library, Range, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.relations import contains
from karpenter_linode.cel.types import BOOL, DYN

if TYPE_CHECKING:
    from karpenter_linode.cel.declarations import Argument

_MAX_VALUES: Final = 48  # of a list attribute of one device


def _includes(held: Any, wanted: Any) -> bool:
    if not isinstance(held, list | tuple):
        return contains([held], wanted)
    if contains(held[:_MAX_VALUES], wanted):
        return True
    if len(held) > _MAX_VALUES:
        raise EvaluationError(f"'includes' function cannot be applied to lists longer than {_MAX_VALUES} values")
    return False


def _estimate(_arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(Range(1, _MAX_VALUES))


LIBRARY: Final = Library(
    "includes",
    {"includes": (method("dyn_includes_dyn", (DYN, DYN), BOOL, _includes, cost=walk, estimate=_estimate),)},
)
