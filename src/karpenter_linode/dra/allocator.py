"""The allocator of a scheduling round: which devices could a pod's claims be given on a target?

Semantics: spec/dra-allocation.md 5 and 6. Where the spec marks an oddity of the original, the safer behaviour is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.dra import explain as why
from karpenter_linode.dra.allocation import Allocation, ClaimAllocation, CounterCharge, DeviceGrant, Target
from karpenter_linode.dra.cluster import PublishedDevices
from karpenter_linode.dra.errors import AllocationError
from karpenter_linode.dra.features import ALL_FEATURES, Features
from karpenter_linode.dra.in_use import NOBODY, in_use, released
from karpenter_linode.dra.ledger import Ledger
from karpenter_linode.dra.places import Place, Places, labels_of
from karpenter_linode.dra.pools import selector_requirements
from karpenter_linode.dra.predicted import Predictions
from karpenter_linode.dra.prepare import PreparedClaim, Preparer
from karpenter_linode.dra.search import Found, Search
from karpenter_linode.dra.selector import Selectors, Shapes
from karpenter_linode.model.labels import WELL_KNOWN
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirements import EMPTY, Requirements
from karpenter_linode.model.selectors import term_holds

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from karpenter_linode.dra.view import Usage
    from karpenter_linode.model.core import NodeSelector
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.resource import DeviceClass, ResourceClaim, ResourceSlice

DEFAULT_STEPS: Final = 200_000
_Outcome = Found | AllocationError | None


class _Known:
    """A claim with what a round needs of it worked out once.

    Args:
        claim: the claim; held, so that its identity stays its own.
        prepared: ready for the search, or why it never can be.
        deleting: pods that are leaving.

    ``spec`` tells claims apart that ask for different things. It is None where more than the spec decides: the claim
    has devices already, or can never be allocated. Within a round devices only get fewer until some are released, so
    that a refusal holds for every later claim of equal spec.
    """

    __slots__ = ("allocated", "claim", "key", "prepared", "spec")

    def __init__(
        self, claim: ResourceClaim, prepared: PreparedClaim | AllocationError, deleting: frozenset[str]
    ) -> None:
        self.claim = claim
        self.key = claim.key
        self.prepared = prepared
        self.allocated = claim.status.allocation is not None and not released(claim, deleting)
        self.spec: int | None = (
            None if self.allocated or isinstance(prepared, AllocationError) else prepared.spec.number
        )


class _Wanted:
    """Claims still to be allocated, and what the pod's other claims leave of a target."""

    __slots__ = ("allowed", "pending", "requirements")

    def __init__(self, pending: list[_Known], requirements: Requirements, allowed: frozenset[str] | None) -> None:
        self.pending = pending
        self.requirements = requirements
        self.allowed = allowed


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
        self._preparer = Preparer(classes, features, Selectors())
        predictions = Predictions(features, shapes)
        for types in (instance_types or {}).values():
            for instance_type in types:
                predictions.of(instance_type.dynamic_resources)
        published = PublishedDevices(slices, initialized_nodes, features, shapes)
        self._places = Places(published, predictions, in_use(claims, deleting_pod_uids), features)
        self._deleting = deleting_pod_uids
        self._steps = steps
        self._ledger = Ledger()
        self._claims: dict[str, ClaimAllocation] = {}
        self._by_object: dict[int, _Known] = {}
        self._by_key: dict[str, list[_Known]] = {}
        self._names_of: dict[int, tuple[tuple[InstanceType, ...], tuple[str, ...]]] = {}
        self._compiled: set[int] = set()
        self._refused: dict[Hashable, Reason] = {}
        self._explained: dict[Hashable, Reason] = {}

    def allocate(
        self, target: Target, claims: Sequence[ResourceClaim], *, explain: bool = False
    ) -> Allocation | Reason:
        """Find devices for a pod's claims on a target.

        Args:
            target: where.
            claims: the pod's claims in the pod's order; a claim listed twice counts once (trap T4).
            explain: on refusal, work out the whole tree of reasons: per instance type, request and device. Costly,
                and never needed while other places are still to be tried.

        Returns:
            What the claims would get, or why they cannot get it here. Without ``explain`` the Reason has no children.
        """
        if len(claims) == 1:  # the common case, worth its own way: tried on every node for every pod
            one = self._by_object.get(id(claims[0])) or self._learn(claims[0])
            known = [one]
            shape: Hashable = one.spec
        else:
            known = [self._by_object.get(id(claim)) or self._learn(claim) for claim in claims]
            shape = _shape(known)
        key: Hashable = None
        if shape is not None:
            key = (
                (target.id, shape) if target.node_name else (target.id, shape, target.requirements, self._names(target))
            )
            if not explain and key in self._refused:
                return self._refused[key]
        wanted = self._classify(target, {item.key: item for item in known})
        if isinstance(wanted, Reason):
            return wanted
        if not wanted.pending:
            names = tuple(name for name in self._names(target) if wanted.allowed is None or name in wanted.allowed)
            return Allocation(target.id, names, wanted.requirements) if names else why.no_instance_type(target)
        prepared = []
        for item in wanted.pending:
            if isinstance(item.prepared, AllocationError):
                return why.of_error(item.prepared, target)
            prepared.append(item.prepared)
        return self._allocate(target, prepared, wanted, key=key, explain=explain)

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
            for known in self._by_key.get(claim.claim, ()):
                known.spec = None

    def release(self, target_id: str, instance_types: Iterable[str]) -> None:
        """Give back what some instance types of a target hold. Unknown ones are ignored."""
        names = frozenset(instance_types)
        for key, claim in self._claims.items():
            if claim.target_id == target_id and not names.isdisjoint(claim.devices):
                self._claims[key] = ClaimAllocation(
                    claim.claim,
                    target_id,
                    {name: grants for name, grants in claim.devices.items() if name not in names},
                    {name: narrowed for name, narrowed in claim.contributed.items() if name not in names},
                    claim.bound,
                )
        self._ledger.release(target_id, sorted(names))
        self._refused.clear()

    def template_drivers(self, target_id: str) -> tuple[str, ...]:
        """Drivers whose predicted devices a target was given, for ``karpenter.sh/requested-dra-drivers``.

        Drivers of published devices are left out: they may never publish anything on the new node (spec 9.2).
        """
        return tuple(
            sorted(
                {
                    grant.id.driver
                    for claim in self._claims.values()
                    if claim.target_id == target_id
                    for grants in claim.devices.values()
                    for grant in grants
                    if grant.id.template
                }
            )
        )

    def placements(self) -> tuple[ClaimAllocation, ...]:
        """What this round gave to claims, in the order of the commits."""
        return tuple(self._claims.values())

    # --- which claims are still to be allocated --------------------------------------------------------------------

    def _learn(self, claim: ResourceClaim) -> _Known:
        """What this round needs to know of a claim, worked out once for each object."""
        known = self._by_object[id(claim)] = _Known(claim, self._prepared(claim), self._deleting)
        self._by_key.setdefault(known.key, []).append(known)
        if known.key in self._claims:
            known.spec = None
        return known

    def _prepared(self, claim: ResourceClaim) -> PreparedClaim | AllocationError:
        try:
            prepared = self._preparer.claim(claim)
            if prepared.spec.number not in self._compiled:
                why.check_compiles(prepared)
                self._compiled.add(prepared.spec.number)
        except AllocationError as error:
            return error.with_traceback(None)
        return prepared

    def _names(self, target: Target) -> tuple[str, ...]:
        types = target.instance_types
        found = self._names_of.get(id(types))
        if found is None:
            names = tuple([item.name for item in types]) or ("",)
            found = self._names_of[id(types)] = (types, names)
        return found[1]

    def _classify(self, target: Target, claims: Mapping[str, _Known]) -> _Wanted | Reason:
        """Claims to allocate, the requirements that allocated ones leave, and the instance types they allow."""
        requirements = target.requirements
        allowed: frozenset[str] | None = None
        pending = []
        for key, item in claims.items():
            mine = self._claims.get(key)
            if mine is not None:
                narrowed = _in_memory(target, mine, requirements)
                if mine.bound:
                    names = frozenset(mine.devices)
                    allowed = names if allowed is None else allowed & names
            elif item.allocated:
                narrowed = _in_cluster(target, item.claim, requirements)
            else:
                pending.append(item)
                continue
            if isinstance(narrowed, Reason):
                return narrowed
            requirements = narrowed
        return _Wanted(pending, requirements, allowed)

    # --- one search for each instance type -------------------------------------------------------------------------

    def _allocate(
        self,
        target: Target,
        claims: Sequence[PreparedClaim],
        wanted: _Wanted,
        *,
        key: Hashable,
        explain: bool,
    ) -> Allocation | Reason:
        requirements, allowed = wanted.requirements, wanted.allowed
        answers: dict[str, tuple[Place, Found]] = {}
        rejected: list[Reason] = []
        certain = True
        specs = tuple(claim.spec.number for claim in claims)
        seen: dict[Hashable, _Outcome] = {}
        for instance_type in target.instance_types or (None,):
            name = "" if instance_type is None else instance_type.name
            if allowed is not None and name not in allowed:
                rejected.append(why.not_of_shared_claim(name))
                continue
            place = self._places.of(target, instance_type)
            usage = self._places.usage(place, target, name, self._ledger)
            same = (place.number, usage.taken, requirements) if not usage.shares and not usage.remaining else name
            if same not in seen:
                seen[same] = self._search(claims, place, usage, None if target.node_name else requirements)
            outcome = seen[same]
            if isinstance(outcome, Found):
                answers[name] = (place, outcome)
                requirements = requirements if outcome.requirements is None else outcome.requirements
                continue
            certain = certain and outcome is None
            rejected.append(self._rejection(target, name, claims, specs, (place, usage, outcome), explain=explain))
        if answers:
            return _answer(target, claims, answers, requirements, tuple(rejected))
        refusal = why.no_instance_type(target)
        if certain and key is not None:
            self._refused[key] = refusal
        return why.no_instance_type(target, tuple(rejected)) if explain else refusal

    def _search(
        self, claims: Sequence[PreparedClaim], place: Place, usage: Usage, requirements: Requirements | None
    ) -> _Outcome:
        try:
            return Search(claims, place.view, usage, requirements, self._steps).run()
        except AllocationError as error:
            return error.with_traceback(None)

    def _rejection(
        self,
        target: Target,
        name: str,
        claims: Sequence[PreparedClaim],
        specs: tuple[int, ...],
        finding: tuple[Place, Usage, _Outcome],
        *,
        explain: bool,
    ) -> Reason:
        place, usage, outcome = finding
        if target.node_name and not explain:
            return why.short(target, name)
        key = (place.number, usage.taken, specs) if not usage.shares and not usage.remaining else None
        reason = self._explained.get(key) if key is not None else None
        if reason is None:
            error = outcome if isinstance(outcome, AllocationError) else None
            reason = why.refusal(claims, place.view, usage, target.requirements, error)
            if key is not None:
                self._explained[key] = reason
        return why.about(target, name, reason)


def _shape(known: Sequence[_Known]) -> Hashable:
    """The specs of several claims, or None when more than their specs decides."""
    specs = tuple([item.spec for item in known])
    return None if None in specs or not specs else specs


def _in_memory(target: Target, claim: ClaimAllocation, requirements: Requirements) -> Requirements | Reason:
    """A claim that was given devices earlier in this round (spec 5.2, rule 3)."""
    if claim.bound:
        return requirements if claim.target_id == target.id else why.bound_elsewhere(claim, target)
    total = claim.total_requirements
    if not requirements.compatible(total, WELL_KNOWN):
        return why.incompatible("in-memory", claim.claim, target, requirements.incompatibility(total, WELL_KNOWN))
    return requirements.merge(total)


def _in_cluster(target: Target, claim: ResourceClaim, requirements: Requirements) -> Requirements | Reason:
    """A claim that is allocated already (spec 5.2, rule 2, and traps T7 and T8)."""
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    if selector is None:
        return requirements
    if target.node_name:
        node_labels = labels_of(target.requirements)
        if any(term_holds(term, node_labels, target.node_name) for term in selector.node_selector_terms):
            return requirements
        return why.incompatible("in-cluster", claim.key, target, None)
    return _narrowed(target, claim, requirements, selector)


def _narrowed(
    target: Target, claim: ResourceClaim, requirements: Requirements, selector: NodeSelector
) -> Requirements | Reason:
    for term in selector.node_selector_terms:
        if term.match_fields or not term.match_expressions:
            continue
        wanted = selector_requirements(type(selector)((term,)))
        if len(wanted) and requirements.compatible(wanted, WELL_KNOWN):
            return requirements.merge(wanted)
    return why.incompatible("in-cluster", claim.key, target, None)


def _answer(
    target: Target,
    claims: Sequence[PreparedClaim],
    answers: Mapping[str, tuple[Place, Found]],
    requirements: Requirements,
    rejected: tuple[Reason, ...],
) -> Allocation:
    devices: list[dict[str, tuple[DeviceGrant, ...]]] = [{} for _ in claims]
    contributed: list[dict[str, Requirements]] = [{} for _ in claims]
    bound = [False] * len(claims)
    charges: dict[str, tuple[CounterCharge, ...]] = {}
    for name, (place, found) in answers.items():
        grants: list[list[DeviceGrant]] = [[] for _ in claims]
        narrowed = [EMPTY] * len(claims)
        drawn: list[CounterCharge] = []
        for choice in found.choices:
            candidate = place.view.candidates[choice.index]
            consumed = choice.consumed
            grants[choice.claim].append(
                DeviceGrant(
                    candidate.id,
                    choice.alternative.label,
                    None
                    if consumed is None
                    else tuple(
                        (item, Quantity(amount, candidate.device.capacity[item].value.notation))
                        for item, amount in consumed.items()
                    ),
                    choice.alternative.admin,
                )
            )
            narrowed[choice.claim] = narrowed[choice.claim].merge(candidate.requirements)
            bound[choice.claim] |= candidate.local
            if choice.pays and not choice.alternative.admin:
                drawn.extend((candidate.pool, counter, amount) for counter, amount in candidate.counters)
        for position in range(len(claims)):
            devices[position][name] = tuple(grants[position])
            contributed[position][name] = narrowed[position]
        if drawn:
            charges[name] = tuple(drawn)
    return Allocation(
        target.id,
        tuple(answers),
        requirements,
        tuple(
            ClaimAllocation(claim.key, target.id, devices[position], contributed[position], bound[position])
            for position, claim in enumerate(claims)
        ),
        rejected,
        charges,
    )
