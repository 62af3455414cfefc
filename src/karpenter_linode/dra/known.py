"""What a round knows of each claim, worked out once for each object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.dra.errors import AllocationError
from karpenter_linode.dra.explain import check_compiles
from karpenter_linode.dra.in_use import released

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from karpenter_linode.dra.prepare import PreparedClaim, Preparer
    from karpenter_linode.model.reason import Reason
    from karpenter_linode.model.resource import ResourceClaim

Refusals = dict[Any, "Reason"]
"""Place -> why claims of one spec cannot be allocated there."""


class KnownClaim:
    """A claim with what a round needs of it.

    Args:
        claim: the claim; held, so that its identity stays its own.
        prepared: ready for the search, or why it never can be.
        allocated: whether the cluster has given it devices that stay.
        refused: refusals shared by all claims of equal spec, None where more than the spec decides.
    """

    __slots__ = ("allocated", "claim", "key", "prepared", "refused")

    def __init__(
        self,
        claim: ResourceClaim,
        prepared: PreparedClaim | AllocationError,
        refused: Refusals | None,
        *,
        allocated: bool,
    ) -> None:
        self.claim = claim
        self.key = claim.key
        self.prepared = prepared
        self.allocated = allocated
        self.refused = refused


class KnownClaims:
    """Finds what is known of claims, and what was refused to others like them.

    Within a round devices only get fewer until some are released, so that a refusal holds for every later claim of
    equal spec.
    """

    def __init__(self, preparer: Preparer, deleting_pod_uids: frozenset[str]) -> None:
        self._preparer = preparer
        self._deleting = deleting_pod_uids
        self._by_object: dict[int, KnownClaim] = {}
        self._by_key: dict[str, list[KnownClaim]] = {}
        self._given: set[str] = set()
        self._compiled: set[int] = set()
        self._refused: dict[Hashable, Refusals] = {}

    def of(self, claim: ResourceClaim) -> KnownClaim:
        """What is known of a claim."""
        known = self._by_object.get(id(claim))
        return self._learn(claim) if known is None else known

    def refusals(self, known: Sequence[KnownClaim]) -> Refusals | None:
        """Where claims like these were refused together; None where more than their specs decides."""
        if len(known) == 1:
            return known[0].refused
        shape = []
        for item in known:
            if item.refused is None or isinstance(item.prepared, AllocationError):
                return None
            shape.append(item.prepared.spec.number)
        return self._refused.setdefault(tuple(shape), {})

    def give(self, key: str) -> None:
        """A claim was given devices in this round."""
        self._given.add(key)
        for known in self._by_key.get(key, ()):
            known.refused = None

    def forget_refusals(self) -> None:
        """Devices were released: everything may be tried again."""
        for refused in self._refused.values():
            refused.clear()

    def forget_refusals_of(self, target_id: str) -> None:
        """Devices of one existing node were released."""
        for refused in self._refused.values():
            refused.pop(target_id, None)

    def _learn(self, claim: ResourceClaim) -> KnownClaim:
        prepared = self._prepared(claim)
        allocated = claim.status.allocation is not None and not released(claim, self._deleting)
        refused: Refusals | None = None
        if not allocated and not isinstance(prepared, AllocationError) and claim.key not in self._given:
            refused = self._refused.setdefault(prepared.spec.number, {})
        known = self._by_object[id(claim)] = KnownClaim(claim, prepared, refused, allocated=allocated)
        self._by_key.setdefault(known.key, []).append(known)
        return known

    def _prepared(self, claim: ResourceClaim) -> PreparedClaim | AllocationError:
        try:
            prepared = self._preparer.claim(claim)
            if prepared.spec.number not in self._compiled:
                check_compiles(prepared)
                self._compiled.add(prepared.spec.number)
        except AllocationError as error:
            return error.with_traceback(None)
        return prepared
