"""What one search looks at: candidates in order, pools that cannot be used, and what is already taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cel import CompileError, EvaluationError
from karpenter_linode.dra.bindings import NO_BINDINGS
from karpenter_linode.dra.capacity import Amounts, consumption, unserved
from karpenter_linode.dra.errors import AllocationError
from karpenter_linode.dra.key_hints import key_hint
from karpenter_linode.dra.pools import INVALID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.dra.bindings import BoundDevices
    from karpenter_linode.dra.devices import Candidate, CounterKey, PoolKey
    from karpenter_linode.dra.features import Features
    from karpenter_linode.dra.pools import Pool
    from karpenter_linode.dra.prepare import Alternative, PlacedSelector
    from karpenter_linode.model.resource import DeviceTaint, DeviceToleration

_BLOCKING: Final = frozenset({"NoSchedule", "NoExecute"})


class Matches:
    """Which candidates serve one alternative, as far as they have been looked at. Bit i stands for candidate i."""

    __slots__ = ("known", "served")

    def __init__(self) -> None:
        self.known = 0
        self.served = 0


class View:
    """The devices of one place, in the order in which they are tried.

    Args:
        candidates: published devices by pool, then predicted ones.
        broken: pools whose devices cannot be used now.
        features: what the cluster has switched on.
        bindings: devices that will share a value nobody knows yet.
    """

    def __init__(
        self,
        candidates: Iterable[Candidate],
        broken: tuple[Pool, ...],
        features: Features,
        bindings: BoundDevices = NO_BINDINGS,
    ) -> None:
        self.candidates = tuple(candidates)
        self.broken = broken
        self.features = features
        self.bindings = bindings
        self.position = {candidate.id: index for index, candidate in enumerate(self.candidates)}
        self.shared = sum(1 << index for index, candidate in enumerate(self.candidates) if candidate.shared)
        self._matches: dict[int, Matches] = {}
        self._everything: dict[int, tuple[int, ...]] = {}

    def matches(self, alternative: Alternative) -> Matches:
        """What is known of an alternative; kept for later searches over the same devices."""
        found = self._matches.get(alternative.number)
        if found is None:
            found = self._matches[alternative.number] = Matches()
        return found

    def serves(self, alternative: Alternative, index: int) -> bool:
        """Whether a candidate serves an alternative, whoever holds it now.

        Raises:
            AllocationError: a selector does not compile or fails on the device.
        """
        matches = self.matches(alternative)
        bit = 1 << index
        if not matches.known & bit:
            candidate = self.candidates[index]
            if (
                selected(alternative, candidate)
                and not candidate.unusable
                and not (candidate.id.template and alternative.limits)
                and not self.untolerated(alternative, candidate)
                and not self.unserved(alternative, candidate)
            ):
                matches.served |= bit
            matches.known |= bit
        return bool(matches.served & bit)

    def everything(self, alternative: Alternative) -> tuple[int, ...]:
        """The devices that an ``All`` alternative asks for: all that match and can serve the capacity asked.

        Raises:
            AllocationError: some pool in reach is incomplete or invalid, or a selector fails on a device.
        """
        found = self._everything.get(alternative.number)
        if found is None:
            for pool in self.broken:
                raise unusable_pool(alternative, pool, "asks for all devices, but")
            found = self._everything[alternative.number] = tuple(
                index
                for index, candidate in enumerate(self.candidates)
                if selected(alternative, candidate) and not self.unserved(alternative, candidate)
            )
        if alternative.limits and any(self.candidates[index].id.template for index in found):
            raise not_promised(alternative)
        return found

    def refuse_invalid(self, alternative: Alternative) -> None:
        """Fail when a pool in reach is invalid: Kubernetes does not look past such a pool for more devices.

        The order of pools is undefined there; here an invalid one comes last, so that it never hides a device.
        """
        for pool in self.broken:
            if pool.state == INVALID:
                raise unusable_pool(alternative, pool, "no device left to try, and")

    def untolerated(self, alternative: Alternative, candidate: Candidate) -> DeviceTaint | None:
        """The first taint of a device that keeps the alternative off it."""
        if not self.features.taints:
            return None
        for taint in candidate.device.taints:
            if taint.effect in _BLOCKING and not any(tolerates(item, taint) for item in alternative.tolerations):
                return taint
        return None

    def unserved(self, alternative: Alternative, candidate: Candidate) -> str:
        """Why the device can never serve the capacity asked, or an empty text."""
        if candidate.shared:
            amounts = consumption(candidate.device, alternative.capacity)
            return amounts if isinstance(amounts, str) else ""
        return unserved(candidate.device, alternative.capacity) if alternative.capacity else ""


class Usage:
    """What is taken of a view's devices before a search begins.

    Args:
        taken: devices that are out of the question, as bits: exclusive ones in use, shared ones while one claim holds
            them exclusively, exclusive ones while a share of them lives on.
        shares: nano-units in use of each capacity of shared devices.
        remaining: what is left of each pool's counters; pools without counters may be missing.
    """

    __slots__ = ("remaining", "shares", "taken")

    def __init__(
        self,
        taken: int = 0,
        shares: dict[int, Amounts] | None = None,
        remaining: dict[PoolKey, dict[CounterKey, int]] | None = None,
    ) -> None:
        self.taken = taken
        self.shares = shares or {}
        self.remaining = remaining or {}

    @property
    def plain(self) -> bool:
        """Whether ``taken`` says it all: nothing is shared, nothing is counted."""
        return not self.shares and not self.remaining


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether a toleration covers a device taint (spec 1.6)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if not toleration.key and toleration.operator != "Exists":
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def selected(alternative: Alternative, candidate: Candidate) -> bool:
    """Whether all selectors hold for a device, those of the class first, stopping at the first that does not.

    Raises:
        AllocationError: a selector does not compile or fails on the device: Kubernetes gives the claim up, too.
    """
    for placed in alternative.selectors:
        try:
            if not placed.selector.holds(candidate.shape):
                return False
        except CompileError as error:
            raise compile_failure(placed, error) from None
        except EvaluationError as error:
            raise _runtime_failure(alternative, placed, candidate, error) from None
    return True


def unusable_pool(alternative: Alternative, pool: Pool, context: str) -> AllocationError:
    """A pool whose devices cannot be used now keeps a request from being served."""
    driver, name, _ = pool.key
    return AllocationError(
        "dra-pool-unusable",
        f"request {alternative.label}: {context} resource pool {driver}/{name} is {pool.state} ({pool.detail})",
        (("driver", driver), ("pool", name), ("detail", pool.detail)),
    )


def not_promised(alternative: Alternative) -> AllocationError:
    """An alternative relies on what no predicted device can promise."""
    limits = ", ".join(str(limit) for limit in alternative.limits)
    facts = tuple((limit.feature, limit.field) for limit in alternative.limits)
    message = f"request {alternative.label}: predicted devices cannot promise {limits}"
    return AllocationError("dra-not-promised", message, facts)


def compile_failure(placed: PlacedSelector, error: CompileError) -> AllocationError:
    """A selector that is no valid expression."""
    facts = (
        ("expression", placed.selector.text),
        ("position", f"{error.line}:{error.column}"),
        ("error", error.message),
    )
    return AllocationError("dra-selector-compile", f"{placed.place}: CEL compile error: {error}", facts)


def _runtime_failure(
    alternative: Alternative, placed: PlacedSelector, candidate: Candidate, error: EvaluationError
) -> AllocationError:
    where = "" if placed.owner.startswith("request") else f"request {alternative.label}: "
    facts: tuple[tuple[str, str], ...] = (
        ("expression", placed.selector.text),
        ("device", str(candidate.id)),
        ("error", error.message),
    )
    hint = key_hint(error.message, candidate.shape.driver, candidate.shape.device)
    facts += (("hint", hint),) if hint else ()
    device = f"predicted device {candidate.id.device}" if candidate.id.template else f"device {candidate.id}"
    return AllocationError(
        "dra-selector-error", f"{where}{placed.place} on {device}: CEL runtime error: {error.message}", facts
    )
