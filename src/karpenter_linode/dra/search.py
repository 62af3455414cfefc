"""The search: depth first over claims, requests, alternatives and devices; the first complete answer wins.

Order and preference are kube-scheduler's (spec/dra-allocation.md 1.8, 5.4): claims and requests in order, alternatives
by preference, devices in list order, combinations within one request instead of permutations. It is complete within
its bound: states that have led nowhere are remembered, and so are devices that cannot be told apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.dra.bindings import device_key
from karpenter_linode.dra.capacity import Amounts, consumption
from karpenter_linode.dra.errors import AllocationError, StepLimitError
from karpenter_linode.dra.outlook import Outlook
from karpenter_linode.dra.prepare import Alternative
from karpenter_linode.model.labels import WELL_KNOWN
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.model.resource import MAX_DEVICES_PER_CLAIM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from karpenter_linode.dra.constraints import State
    from karpenter_linode.dra.devices import Candidate, CounterKey
    from karpenter_linode.dra.prepare import PreparedClaim
    from karpenter_linode.dra.view import Usage, View


LOOK_AHEAD: Final = 64  # tried devices before looking ahead pays


class Choice(Struct, frozen=True, gc=False):
    """A device chosen for a claim.

    Args:
        claim: position of the claim.
        alternative: what it serves.
        index: position of the device in the view.
        consumed: nano-units of each capacity, for a shared device.
        pays: whether it draws from its counters here; a device that is shared already does not.
    """

    claim: int
    alternative: Alternative
    index: int
    consumed: Amounts | None
    pays: bool


class Found(Struct, frozen=True, gc=False):
    """A complete answer: every choice in order, and the requirements that the devices leave."""

    choices: tuple[Choice, ...]
    requirements: Requirements | None


class _Frame:
    """A decision on the stack: which alternative (``slot`` -1), or which device for one slot of the alternative."""

    __slots__ = (
        "alternative",
        "choice",
        "claim",
        "consumed",
        "key",
        "next",
        "pays",
        "pins",
        "request",
        "requirements",
        "skip",
        "slot",
        "start",
        "used",
    )

    def __init__(self, claim: int, request: int, alternative: int = -1, slot: int = -1, start: int = 0) -> None:
        self.claim = claim
        self.request = request
        self.alternative = alternative
        self.slot = slot
        self.start = start
        self.next = start
        self.skip = 0
        self.choice = -1
        self.key: object = None
        self.consumed: Amounts | None = None
        self.pays = False
        self.used = (0, 0)
        self.pins: tuple[State, ...] = ()
        self.requirements: Requirements | None = None


class Search:
    """One search over one view.

    Args:
        claims: to be allocated together, in this order.
        view: the devices.
        usage: what is taken already.
        requirements: what the place must already meet; devices may narrow it. None for a node: its devices reach it.
        steps: how many devices may be tried.
    """

    def __init__(
        self, claims: Sequence[PreparedClaim], view: View, usage: Usage, requirements: Requirements | None, steps: int
    ) -> None:
        self._claims = claims
        self._view = view
        self._usage = usage
        self._limit = steps
        self._everything: dict[int, tuple[int, ...]] = {}
        self._dead: set[object] = set()
        self._outlook = Outlook(claims, view)
        self._all = (1 << len(view.candidates)) - 1
        self.steps = 0
        self.requirements = requirements
        self.used = 0
        self.in_claim = [0] * len(claims)
        self.size = [0] * len(claims)
        self.pins: list[tuple[State, ...]] = [(None,) * len(claim.spec.constraints) for claim in claims]
        self.shares: dict[int, list[Amounts]] = {}
        self.remaining = {pool: dict(counters) for pool, counters in usage.remaining.items()}

    def run(self) -> Found | None:
        """The first legal answer, or None when there is none.

        Raises:
            AllocationError: Kubernetes would give these claims up here: a selector fails, a claim is too large, ``All``
                meets an unusable pool or a constraint that it breaks. The message names the claim.
            StepLimitError: no answer within the bound.
        """
        for position, claim in enumerate(self._claims):
            try:
                self._size_up(claim)
            except AllocationError as error:
                raise error.of_claim(self._claims[position].key) from None
        stack: list[_Frame] = []
        frame = self._enter(0, 0)
        while frame is not None:
            try:
                advanced = self._step(frame)
            except StepLimitError:
                raise
            except AllocationError as error:
                raise error.of_claim(self._claims[frame.claim].key) from None
            if advanced:
                stack.append(frame)
                frame = self._successor(frame)
                continue
            self._dead.add(frame.key or self._key(frame))
            if not stack:
                return None
            frame = stack.pop()
        return Found(tuple(self._choice(item) for item in stack if item.choice >= 0), self.requirements)

    def _size_up(self, claim: PreparedClaim) -> None:
        total = 0
        for request in claim.spec.requests:
            sizes = []
            for alternative in request.alternatives:
                if alternative.everything:
                    self._everything[alternative.number] = self._view.everything(alternative)
                sizes.append(self._wanted(alternative))
            total += min(sizes)
        if total > MAX_DEVICES_PER_CLAIM:
            raise AllocationError(
                "dra-claim-limit",
                f"requests {total} devices in total, which exceeds the claim limit of {MAX_DEVICES_PER_CLAIM}",
                (("asked", str(total)), ("limit", str(MAX_DEVICES_PER_CLAIM))),
            )

    def _wanted(self, alternative: Alternative) -> int:
        return len(self._everything[alternative.number]) if alternative.everything else alternative.count

    # --- moving over the stack -------------------------------------------------------------------------------------

    def _enter(self, claim: int, request: int) -> _Frame | None:
        """The frame of the next request at or after a position, or None when every request is served."""
        while claim < len(self._claims):
            if request < len(self._claims[claim].spec.requests):
                return _Frame(claim, request)
            claim, request = claim + 1, 0
        return None

    def _successor(self, frame: _Frame) -> _Frame | None:
        alternative = self._alternative(frame)
        slot = frame.slot + 1
        if slot >= self._wanted(alternative):
            return self._enter(frame.claim, frame.request + 1)
        start = slot if alternative.everything else frame.choice + 1  # no choice yet: 0
        return _Frame(frame.claim, frame.request, frame.alternative, slot, start)

    def _alternative(self, frame: _Frame) -> Alternative:
        return self._claims[frame.claim].spec.requests[frame.request].alternatives[frame.alternative]

    def _step(self, frame: _Frame) -> bool:
        """Take the frame's next choice; False when none is left."""
        if self._dead and frame.key is None:
            frame.key = self._key(frame)
            if frame.key in self._dead:
                return False
        if frame.slot < 0:
            return self._step_alternative(frame)
        if frame.choice >= 0:
            self._undo(frame)
        alternative = self._alternative(frame)
        if alternative.everything:
            return self._step_everything(frame, alternative)
        return self._step_device(frame, alternative)

    def _step_alternative(self, frame: _Frame) -> bool:
        alternatives = self._claims[frame.claim].spec.requests[frame.request].alternatives
        while frame.next < len(alternatives):
            frame.alternative = frame.next
            frame.next += 1
            alternative = alternatives[frame.alternative]
            wanted = self._wanted(alternative)
            if alternative.everything and not wanted:
                continue
            if self.size[frame.claim] + wanted > MAX_DEVICES_PER_CLAIM:
                continue
            return True
        return False

    def _step_everything(self, frame: _Frame, alternative: Alternative) -> bool:
        devices = self._everything[alternative.number]
        if frame.next != frame.slot:
            return False
        frame.next += 1
        return self._try(frame, alternative, devices[frame.slot])

    def _step_device(self, frame: _Frame, alternative: Alternative) -> bool:
        view = self._view
        matches = view.matches(alternative)
        if frame.choice >= 0:
            frame.skip |= self._outlook.twins(frame.choice, self.steps)
            frame.choice = -1
        elif self._hopeless(frame, alternative):
            return False
        free = self._all & ~self._blocked(frame.claim, alternative)
        wanted = alternative.count - frame.slot
        while True:
            rest = free & ~frame.skip & ~((1 << frame.next) - 1)
            open_ = rest & (matches.served | ~matches.known)
            if not open_ or (open_.bit_count() < wanted and not rest & ~matches.known):
                view.refuse_invalid(alternative)
                return False
            index = (open_ & -open_).bit_length() - 1
            frame.next = index + 1
            if view.serves(alternative, index) and self._try(frame, alternative, index):
                return True

    def _hopeless(self, frame: _Frame, alternative: Alternative) -> bool:
        """Whether the requests from here on cannot all be served, as far as they are settled."""
        if self.steps < LOOK_AHEAD or alternative.admin:
            return False
        self.steps += 1
        return self._outlook.hopeless(self._groups(frame, alternative))

    def _groups(self, frame: _Frame, alternative: Alternative) -> Iterator[tuple[int, int]]:
        """Devices wanted and devices possible for each settled request from a frame on, in order."""
        free = self._all & ~(self._usage.taken | (self.used & ~self._view.shared))
        tail = free & ~((1 << frame.next) - 1)
        if tail & ~self._view.matches(alternative).known:
            return
        devices = tail & self._view.matches(alternative).served
        claim = self._claims[frame.claim]
        yield (
            alternative.count - frame.slot,
            self._outlook.accepted(claim, alternative, self.pins[frame.claim], devices),
        )
        request = frame.request + 1
        for position in range(frame.claim, len(self._claims)):
            claim = self._claims[position]
            for following in claim.spec.requests[request:]:
                if not self._outlook.settled(following, free):
                    return
                only = following.alternatives[0]
                if len(following.alternatives) == 1 and not only.everything:
                    devices = free & self._view.matches(only).served
                    yield only.count, self._outlook.accepted(claim, only, self.pins[position], devices)
            request = 0

    def _blocked(self, claim: int, alternative: Alternative) -> int:
        """Devices that this request may not have, whatever its selectors say."""
        exclusive = ~self._view.shared
        if alternative.admin:
            return self.in_claim[claim] & exclusive
        return self._usage.taken | (self.used & exclusive)

    # --- one device ------------------------------------------------------------------------------------------------

    def _try(self, frame: _Frame, alternative: Alternative, index: int) -> bool:
        self.steps += 1
        if self.steps > self._limit:
            raise StepLimitError(self._limit)
        candidate = self._view.candidates[index]
        if alternative.everything and not self._may_have(frame.claim, alternative, index, candidate):
            return False
        pays = candidate.counters and not (candidate.shared and self._in_use(index))
        if pays and not self._counters_last(candidate):
            return False
        consumed: Amounts | None = None
        if candidate.shared:
            consumed = self._fitting_share(candidate, alternative, index)
            if consumed is None:
                return False
        pins = self._pinned(frame.claim, alternative, candidate)
        if pins is None:
            return False
        requirements = self.requirements
        if requirements is not None and len(candidate.requirements):
            if not requirements.compatible(candidate.requirements, WELL_KNOWN):
                return False
            requirements = requirements.merge(candidate.requirements)
        self._take(frame, index, candidate, consumed, pins, requirements, pays=bool(pays))
        return True

    def _may_have(self, claim: int, alternative: Alternative, index: int, candidate: Candidate) -> bool:
        if self._blocked(claim, alternative) >> index & 1 or candidate.unusable:
            return False
        return self._view.untolerated(alternative, candidate) is None

    def _in_use(self, index: int) -> bool:
        return index in self._usage.shares or index in self.shares or bool(self._usage.taken >> index & 1)

    def _counters_last(self, candidate: Candidate) -> bool:
        remaining = self.remaining.get(candidate.pool, {})
        return all(remaining.get(counter, -1) >= amount for counter, amount in _summed(candidate))

    def _fitting_share(self, candidate: Candidate, alternative: Alternative, index: int) -> Amounts | None:
        amounts = consumption(candidate.device, alternative.capacity)
        if isinstance(amounts, str):
            return None
        held = self._usage.shares.get(index, {})
        here = self.shares.get(index, ())
        for name, amount in amounts.items():
            total = amount + held.get(name, 0) + sum(item[name] for item in here)
            if total > candidate.device.capacity[name].value.nano:
                return None
        return amounts

    def _pinned(self, claim: int, alternative: Alternative, candidate: Candidate) -> tuple[State, ...] | None:
        pins = self.pins[claim]
        if not alternative.scope:
            return pins
        constraints = self._claims[claim].spec.constraints
        changed = list(pins)
        key = device_key(candidate.id)
        for position in alternative.scope:
            state = constraints[position].extend(
                pins[position], candidate.id.driver, candidate.device, key, self._view.bindings
            )
            if state is None:
                if alternative.everything:
                    raise _all_breaks_constraint(alternative, candidate, constraints[position].attribute)
                return None
            changed[position] = state
        return tuple(changed)

    def _take(
        self,
        frame: _Frame,
        index: int,
        candidate: Candidate,
        consumed: Amounts | None,
        pins: tuple[State, ...],
        requirements: Requirements | None,
        *,
        pays: bool,
    ) -> None:
        claim = frame.claim
        frame.choice = index
        frame.consumed = consumed
        frame.pins = self.pins[claim]
        frame.requirements = self.requirements
        self.pins[claim] = pins
        self.requirements = requirements
        self.size[claim] += 1
        if consumed is not None:
            self.shares.setdefault(index, []).append(consumed)
        else:
            frame.used = (self.used, self.in_claim[claim])
            self.used |= 1 << index
            self.in_claim[claim] |= 1 << index
        frame.pays = pays
        if pays:
            self._charge(candidate, 1)

    def _undo(self, frame: _Frame) -> None:
        index, claim = frame.choice, frame.claim
        candidate = self._view.candidates[index]
        self.pins[claim] = frame.pins
        self.requirements = frame.requirements
        self.size[claim] -= 1
        if frame.consumed is not None:
            shares = self.shares[index]
            shares.pop()
            if not shares:
                del self.shares[index]
        else:
            self.used, self.in_claim[claim] = frame.used
        if frame.pays:
            self._charge(candidate, -1)

    def _charge(self, candidate: Candidate, sign: int) -> None:
        remaining = self.remaining[candidate.pool]
        for counter, amount in candidate.counters:
            remaining[counter] -= sign * amount

    # --- memory ----------------------------------------------------------------------------------------------------

    def _key(self, frame: _Frame) -> object:
        """Everything that decides whether the frame can succeed."""
        shares = frozenset(
            (index, tuple(sorted((name, sum(item[name] for item in items)) for name in items[0])))
            for index, items in self.shares.items()
        )
        claim = frame.claim
        return (
            claim,
            frame.request,
            frame.alternative if frame.slot >= 0 else -1,
            frame.slot,
            frame.start,
            self.used,
            self.in_claim[claim],
            self.size[claim],
            self.pins[claim],
            shares,
            self.requirements,
        )

    def _choice(self, frame: _Frame) -> Choice:
        return Choice(frame.claim, self._alternative(frame), frame.choice, frame.consumed, frame.pays)


def _summed(candidate: Candidate) -> Iterable[tuple[CounterKey, int]]:
    """What a device draws, with entries for the same counter added up."""
    if len(candidate.counters) == 1:
        return candidate.counters
    total: dict[CounterKey, int] = {}
    for counter, amount in candidate.counters:
        total[counter] = total.get(counter, 0) + amount
    return total.items()


def _all_breaks_constraint(alternative: Alternative, candidate: Candidate, attribute: str) -> AllocationError:
    return AllocationError(
        "dra-all-constraint",
        f"request {alternative.label}: cannot add device {candidate.id} because a claim constraint on {attribute} "
        "would not be satisfied",
        (("device", str(candidate.id)), ("attribute", attribute)),
    )
