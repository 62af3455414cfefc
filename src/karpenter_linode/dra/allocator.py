"""The allocator of a scheduling round: which devices could a pod's claims be given on a target?

Semantics: spec/dra-allocation.md 5 and 6. Where the spec marks an oddity of the original, the safer behaviour is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from karpenter_linode.dra import explain as why
from karpenter_linode.dra.allocation import Allocation, ClaimAllocation, Target
from karpenter_linode.dra.answer import Answer
from karpenter_linode.dra.cluster import PublishedDevices
from karpenter_linode.dra.errors import AllocationError
from karpenter_linode.dra.features import ALL_FEATURES, Features
from karpenter_linode.dra.given import Wanted, wanted
from karpenter_linode.dra.hints import hints
from karpenter_linode.dra.in_use import NOBODY, in_use
from karpenter_linode.dra.known import KnownClaim, KnownClaims
from karpenter_linode.dra.ledger import Ledger
from karpenter_linode.dra.places import Place, Places
from karpenter_linode.dra.predicted import Predictions
from karpenter_linode.dra.prepare import PreparedClaim, Preparer
from karpenter_linode.dra.search import Found, Search
from karpenter_linode.dra.selector import Selectors, Shapes
from karpenter_linode.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from karpenter_linode.dra.view import Usage
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.requirements import Requirements
    from karpenter_linode.model.resource import DeviceClass, ResourceClaim, ResourceSlice

DEFAULT_STEPS: Final = 200_000
_Outcome = Found | AllocationError | None


class Allocator:
    """Gives devices to claims within one round of scheduling.

    ``allocate`` only reads; ``commit`` reserves what it found, ``release`` gives back instance types that dropped out.

    Args:
        slices: every ResourceSlice of the cluster.
        classes: every DeviceClass.
        claims: every ResourceClaim; what they hold is in use.
        initialized_nodes: names of initialized Nodes; slices that belong to another Node are hidden (spec 3.2).
        deleting_pod_uids: pods that are leaving; what they alone hold counts as free.
        instance_types: of each NodePool; predictions and attribute bindings are read from them once.
        steps: how many devices one search may try.
        features: what the cluster has switched on; objects carry no fields of features that are off.
    """

    def __init__(
        self,
        *,
        slices: Iterable[ResourceSlice] = (),
        classes: Iterable[DeviceClass] = (),
        claims: Iterable[ResourceClaim] = (),
        initialized_nodes: frozenset[str] = NOBODY,
        deleting_pod_uids: frozenset[str] = NOBODY,
        instance_types: Mapping[str, Sequence[InstanceType]] | None = None,
        steps: int = DEFAULT_STEPS,
        features: Features = ALL_FEATURES,
    ) -> None:
        shapes = Shapes()
        predictions = Predictions(features, shapes)
        for types in (instance_types or {}).values():
            for instance_type in types:
                predictions.of(instance_type.dynamic_resources)
        published = PublishedDevices(slices, initialized_nodes, features, shapes)
        self._places = Places(published, predictions, in_use(claims, deleting_pod_uids), features)
        self._known = KnownClaims(Preparer(classes, features, Selectors()), deleting_pod_uids)
        self._steps = steps
        self._ledger = Ledger()
        self._claims: dict[str, ClaimAllocation] = {}
        self._on_target: dict[str, list[str]] = {}
        self._releases: dict[str, int] = {}
        self._names_of: dict[str, tuple[tuple[InstanceType, ...], tuple[str, ...]]] = {}
        self._explained: dict[Hashable, Reason] = {}
        self._searched: dict[tuple[int, ...], dict[Hashable, Found | None]] = {}

    def allocate(
        self, target: Target, claims: Sequence[ResourceClaim], *, explain: bool = False
    ) -> Allocation | Reason:
        """Find devices for a pod's claims on a target.

        Args:
            target: where.
            claims: the pod's claims in the pod's order; a claim listed twice counts once.
            explain: on refusal, work out the whole tree of reasons: per instance type, request and device, with the
                clause that alone stands in the way where there is one (facts ``hint``). Costly, and never needed while
                other places are still to be tried.

        Returns:
            What the claims would get, or why they cannot get it here. Without ``explain`` the Reason has no children.
        """
        if len(claims) == 1 and not explain:  # tried on every node for every pod: the short way to a known refusal
            refused = self._known.of(claims[0]).refused
            if refused is not None and target.id in refused:
                return refused[target.id]
        known = [self._known.of(claim) for claim in claims]
        refused = self._known.refusals(known)
        place: Hashable = target.id
        if refused is not None:
            if not target.node_name:
                place = (target.id, self._releases.get(target.id, 0), target.requirements, self._names(target))
            if not explain and place in refused:
                return refused[place]
        found, certain = self._find(target, known, explain=explain)
        if certain and refused is not None and isinstance(found, Reason):
            refused[place] = why.no_instance_type(target)
        if explain and isinstance(found, Reason) and found.children:
            lines = hints(claims, found, lambda changed: self.allocate(target, changed))
            return structs.replace(found, facts=tuple(("hint", line) for line in lines))
        return found

    def commit(self, allocation: Allocation) -> None:
        """Reserve what an allocation was given.

        Raises:
            AssertionError: a programming error: the devices or the claim were given away since.
        """
        for claim in allocation.claims:
            if claim.claim in self._claims:
                raise AssertionError(f"attempted to commit claim which was already allocated: {claim.claim}")
        self._ledger.commit(allocation)
        for claim in allocation.claims:
            self._claims[claim.claim] = claim
            self._on_target.setdefault(claim.target_id, []).append(claim.claim)
            self._known.give(claim.claim)

    def release(self, target_id: str, instance_types: Iterable[str]) -> None:
        """Give back what some instance types of a target hold. Unknown ones are ignored."""
        names = frozenset(instance_types)
        for key in self._on_target.get(target_id, ()):
            claim = self._claims[key]
            if not names.isdisjoint(claim.devices):
                self._claims[key] = ClaimAllocation(
                    claim.claim,
                    target_id,
                    {name: grants for name, grants in claim.devices.items() if name not in names},
                    {name: narrowed for name, narrowed in claim.contributed.items() if name not in names},
                    claim.bound,
                )
        if self._ledger.release(target_id, sorted(names)):
            self._known.forget_refusals()
        else:  # predicted devices are of use to nobody else
            self._known.forget_refusals_of(target_id)
            self._releases[target_id] = self._releases.get(target_id, 0) + 1

    def placements(self) -> tuple[ClaimAllocation, ...]:
        """What this round gave to claims, in the order of the commits."""
        return tuple(self._claims.values())

    def _names(self, target: Target) -> tuple[str, ...]:
        types = target.instance_types
        known = self._names_of.get(target.id)
        if known is None or known[0] is not types:
            names = tuple([item.name for item in types]) or ("",)
            known = self._names_of[target.id] = (types, names)
        return known[1]

    # --- one search for each instance type -------------------------------------------------------------------------

    def _find(self, target: Target, known: Sequence[KnownClaim], *, explain: bool) -> tuple[Allocation | Reason, bool]:
        """The allocation, or the refusal; and whether a refusal stays one while devices only get fewer."""
        left = wanted(target, known, self._claims)
        if isinstance(left, Reason):
            return left, False
        if not left.pending:
            names = tuple(name for name in self._names(target) if left.allowed is None or name in left.allowed)
            satisfied = Allocation(target.id, names, left.requirements)
            return (satisfied if names else why.no_instance_type(target)), False
        prepared = []
        for item in left.pending:
            if isinstance(item.prepared, AllocationError):
                return why.of_error(item.prepared, target), False
            prepared.append(item.prepared)
        return self._allocate(target, prepared, left, explain=explain)

    def _allocate(
        self, target: Target, claims: Sequence[PreparedClaim], left: Wanted, *, explain: bool
    ) -> tuple[Allocation | Reason, bool]:
        """As ``_find``. A refusal because a selector fails may end once the device that it fails on is taken."""
        requirements = left.requirements
        answer = Answer(target.id, claims)
        rejected: list[Reason] = []
        certain = True
        seen: dict[Hashable, _Outcome] = {}
        known = self._searched.setdefault(tuple([claim.spec.number for claim in claims]), {})
        for instance_type in target.instance_types or (None,):
            name = "" if instance_type is None else instance_type.name
            if left.allowed is not None and name not in left.allowed:
                rejected.append(why.not_of_shared_claim(name))
                continue
            place = self._places.of(target, instance_type)
            usage = self._places.usage(place, target, name, self._ledger)
            alike = (place.number, usage.taken, requirements) if usage.plain else name
            if alike not in seen:
                seen[alike] = self._search(claims, place, usage, None if target.node_name else requirements, known)
            outcome = seen[alike]
            if isinstance(outcome, Found):
                answer.add(name, place.view, outcome)
                requirements = requirements if outcome.requirements is None else outcome.requirements
                continue
            certain = certain and outcome is None
            rejected.append(self._rejection(target, name, claims, (place, usage, outcome), explain=explain))
        if answer:
            return answer.allocation(requirements, rejected), certain
        return why.no_instance_type(target, tuple(rejected) if explain else ()), certain

    def _search(
        self,
        claims: Sequence[PreparedClaim],
        place: Place,
        usage: Usage,
        requirements: Requirements | None,
        known: dict[Hashable, Found | None],
    ) -> _Outcome:
        """Search, unless claims of equal specs had an answer from equal devices before: ``known``."""
        key = (place.number, usage.taken, requirements)
        if usage.plain and key in known:
            return known[key]
        try:
            found = Search(claims, place.view, usage, requirements, self._steps).run()
        except AllocationError as error:  # it names a claim, so it is not kept
            return error.with_traceback(None)
        if usage.plain:
            known[key] = found
        return found

    def _rejection(
        self,
        target: Target,
        name: str,
        claims: Sequence[PreparedClaim],
        finding: tuple[Place, Usage, _Outcome],
        *,
        explain: bool,
    ) -> Reason:
        """Why an instance type cannot carry the claims; equal findings are explained once."""
        place, usage, outcome = finding
        if target.node_name and not explain:
            return why.short(target, name)
        specs = tuple(claim.spec.number if len(claims) == 1 else (claim.key, claim.spec.number) for claim in claims)
        key = (place.number, usage.taken, specs, target.requirements) if usage.plain else None
        reason = self._explained.get(key) if key is not None else None
        if reason is None:
            error = outcome if isinstance(outcome, AllocationError) else None
            reason = why.refusal(claims, place.view, usage, target.requirements, error)
            if key is not None:
                self._explained[key] = reason
        return why.about(target, name, reason)
