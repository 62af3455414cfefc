"""Which nodes take part in a spread constraint: ``nodeAffinityPolicy`` and ``nodeTaintsPolicy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model.core import Toleration
from karpenter_linode.scheduling.selection import Selection
from karpenter_linode.scheduling.taints import untolerated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.core import Taint
    from karpenter_linode.model.requirements import Requirements


class NodeFilter(Struct, frozen=True):
    """Nodes that count.

    Args:
        alternatives: node selections of which one must hold; empty where node affinity is ignored.
        tolerations: taints must be tolerated; None where taints are ignored.
    """

    alternatives: tuple[Selection, ...] = ()
    tolerations: tuple[Toleration, ...] | None = None

    @property
    def passes_all(self) -> bool:
        """Whether every node counts."""
        return self.tolerations is None and (not self.alternatives or any(not item for item in self.alternatives))

    def passes(self, node: Requirements, taints: Iterable[Taint]) -> bool:
        """Whether a node with these requirements (of a planned one) or labels counts; undefined keys never help."""
        if self.alternatives and not any(item.strictly_met_by(node) for item in self.alternatives):
            return False
        return self.tolerations is None or not untolerated(taints, self.tolerations)


EVERY_NODE: Final = NodeFilter()
