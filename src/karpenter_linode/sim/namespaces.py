"""The namespace controller: what lives in a namespace goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model.core import Namespace
from karpenter_linode.ports import NotFoundError
from karpenter_linode.sim.resource_types import RESOURCE_TYPES

if TYPE_CHECKING:
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.watches import Change


class NamespaceController:
    """Deletes what is left in a namespace once that is gone.

    Kubernetes does so before the Namespace goes; here it is gone at once, and nothing new can come into it.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._store = context.store
        context.store.listen(Namespace, self._changed)

    def _changed(self, change: Change) -> None:
        if change.type != "DELETED" or change.stored is None:
            return
        for kind in RESOURCE_TYPES:
            if not kind.namespaced:
                continue
            for stored in self._store.list(kind, namespace=change.stored.name):
                try:
                    self._store.delete(kind, stored.name, stored.namespace, uid=stored.uid)
                except NotFoundError:
                    continue
