"""One lane for each kind of pool, as long as it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.linode.lane import PoolLane

if TYPE_CHECKING:
    from karpenter_linode.linode import tags
    from karpenter_linode.linode.toolbox import Toolbox


class Lanes:
    """The lanes of the provider; one that nobody needs any more is forgotten.

    Args:
        tools: the API and what is known from it.
    """

    def __init__(self, tools: Toolbox) -> None:
        self._tools = tools
        self._lanes: dict[tags.PoolIdentity, PoolLane] = {}

    def of(self, identity: tags.PoolIdentity) -> PoolLane:
        """The lane of an identity. Use it at once: until then it counts as idle."""
        lane = self._lanes.get(identity)
        if lane is None:
            self._lanes = {known: other for known, other in self._lanes.items() if not other.is_idle}
            lane = self._lanes[identity] = PoolLane(identity, self._tools)
        return lane

    async def close(self) -> None:
        """Stop all workers."""
        for lane in self._lanes.values():
            await lane.close()
