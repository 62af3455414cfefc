"""What must hold in every story, at any moment and at the end."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from karpenter_linode.model import labels
from karpenter_linode.model.condition_types import INITIALIZED
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.meta import is_true
from karpenter_linode.scheduling.pods import is_terminal
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.operator.embedded import EmbeddedWorld
    from karpenter_linode.sim.watches import Change

__all__ = ["Judge", "cannot_run", "type_of"]
_EXCEPTION = re.compile(r"^[A-Z][A-Za-z]*(Error|Exception|Group)\b")


def cannot_run(pod: Pod) -> bool:
    """Whether a pod ends with its story: it asks for what no plan has, or belongs to a DaemonSet."""
    return pod.name.startswith("impossible") or any(
        owner.kind == "DaemonSet" for owner in pod.metadata.owner_references
    )


class Judge:
    """Watches a world.

    Attributes:
        wrong: what must not be, as it was seen.
        recycled: Linodes that the story deleted behind everybody's back: LKE builds another for each.
        overlaps: how often two controllers ran at once: each may buy for what the other can't see yet.
        late_posts: purchases that the cloud may carry out after the connection broke.
    """

    def __init__(self, world: EmbeddedWorld) -> None:
        self._world = world
        self.wrong: list[str] = []
        self.recycled = self.overlaps = self.late_posts = 0
        self._excused = 0
        self._claims: dict[str, NodeClaim] = {}
        self._pods: dict[str, str] = {}
        self._unwanted = 0  # NodeClaims that ended before their nodes could take pods, and pods that had to move
        world.cluster.store.listen(NodeClaim, self._claim_changed)
        world.cluster.store.listen(Pod, self._pod_changed)

    def excuse(self) -> None:
        """The story takes something away: a node's pods may need another one."""
        self._excused += sum(1 for _ in self._world.cluster.store.all(Pod))

    def now(self) -> None:
        """What must hold at any moment."""
        machines = [item for item in self._world.cluster.linode.machines.all() if item.status != "deleting"]
        prefix = f"{labels.NODECLAIM_TAG}="
        owners = Counter(tag for item in machines for tag in item.coming_tags or item.tags if tag.startswith(prefix))
        for tag, count in owners.items():
            if count > 1 and not self.overlaps:
                self._note(f"{count} Linodes carry {tag}")
        many = [
            item.id for item in machines if sum(tag.startswith(prefix) for tag in item.coming_tags or item.tags) > 1
        ]
        for number in many:
            self._note(f"Linode {number} serves two NodeClaims")

    def at_the_end(self, *, ended: bool) -> list[str]:
        """What must hold when the story is over."""
        store, found = self._world.cluster.store, []
        if not ended:
            found += [f"pod {pod.key} never ended: {_state(pod)}" for pod in store.all(Pod) if _is_left(pod)]
            found += [f"NodeClaim {claim.name} is left" for claim in store.all(NodeClaim)]
            found += [f"Linode {item.instance} is billed" for item in self._world.cluster.linode.billing.running()]
            found += [f"Node {node.name} is left" for node in store.all(Node)]
        bought = len(self._world.cluster.linode.billing.charges)
        if not self.overlaps and bought > len(self._claims) + self.recycled:
            found.append(f"{bought} Linodes for {len(self._claims)} NodeClaims (late POSTs: {self.late_posts})")
        wanted = len(self._pods) + self._unwanted + self._excused
        if not self.overlaps and len(self._claims) > wanted:
            found.append(f"{len(self._claims)} NodeClaims for {wanted} needs")
        return found

    def of_the_journal(self, token: str) -> list[str]:
        """What no line may say."""
        entries = self._world.cluster.journal.entries
        found = [f"shows the token: {entry.message}" for entry in entries if entry.mentions(token)]
        for entry in entries:
            error = str(entry.fields.get("error", ""))
            if entry.message.startswith("controller crashed") or _EXCEPTION.match(error):
                found.append(f"{entry.message}: {error} ({entry.fields.get('controller')})")
            elif entry.message.startswith("Evicted pod: Empty") and "Pod default/agent-" not in entry.subject:
                found.append(f"{entry.subject} was evicted from a node that counted as empty")
        return list(dict.fromkeys(found))

    def _claim_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        claim = change.stored.decode(NodeClaim)
        self._claims[claim.uid] = claim
        if change.type == "DELETED" and not is_true(claim.status.conditions, INITIALIZED):
            self._unwanted += 1

    def _pod_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        pod = change.stored.decode(Pod)
        if not cannot_run(pod):
            self._pods[pod.uid] = pod.key

    def _note(self, text: str) -> None:
        if text not in self.wrong:
            self.wrong.append(text)


def _is_left(pod: Pod) -> bool:
    return not is_terminal(pod) and not cannot_run(pod)


def _state(pod: Pod) -> Any:
    reasons = [item.message for item in pod.status.conditions if item.type == "PodScheduled"]
    return f"{pod.status.phase} on {pod.spec.node_name or 'no node'} {reasons}"
