"""Seeing early that a search leads nowhere, without changing which selectors are ever evaluated.

Kubernetes reports the failure of a selector on the first device it tries it on, so nothing may be cut off before every
selector that could still be reached has been evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.dra.bindings import device_key
from karpenter_linode.dra.constraints import attribute_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from karpenter_linode.dra.constraints import State
    from karpenter_linode.dra.prepare import Alternative, PreparedClaim, PreparedRequest
    from karpenter_linode.dra.view import View

PATIENCE: Final = 48  # tried devices before looking ahead pays
_MAX_GROUPS: Final = 6  # requests looked at together; every subset of them is checked


class Outlook:
    """What is known of all devices at once, for one search."""

    def __init__(self, claims: Sequence[PreparedClaim], view: View) -> None:
        self._claims = claims
        self._view = view
        self._all = (1 << len(view.candidates)) - 1
        self._static: list[object] | None = None
        self._alternatives = [
            alternative for claim in claims for request in claim.spec.requests for alternative in request.alternatives
        ]

    def twins(self, index: int, steps: int) -> int:
        """Devices that no request and no constraint can tell from this one, itself included, as bits.

        When a device led nowhere, no twin of it can lead anywhere from the same state. Administrative access tells a
        device in use from a free one, so there are no twins beside it.
        """
        view, bit = self._view, 1 << index
        if steps < PATIENCE or view.shared & bit or any(item.admin for item in self._alternatives):
            return 0
        alike = self._all & ~view.shared
        for alternative in self._alternatives:
            matches = view.matches(alternative)
            if not matches.known:
                continue
            if not matches.known & bit:
                return 0
            alike &= matches.known & (matches.served if matches.served & bit else ~matches.served)
        static = self._statics()
        return sum(1 << other for other in bits(alike) if static[other] == static[index])

    def hopeless(self, groups: Iterator[tuple[int, int]]) -> bool:
        """Whether some requests together want more devices than are left for them (Hall's condition).

        Args:
            groups: for each request, devices wanted and devices that could serve it, as bits.
        """
        subsets: list[tuple[int, int]] = [(0, 0)]
        for position, (wanted, devices) in enumerate(groups):
            if position == _MAX_GROUPS:
                return False
            exclusive = devices & ~self._view.shared
            least = wanted - (devices & self._view.shared).bit_count()
            if least <= 0:
                continue
            for other_least, other_devices in tuple(subsets):
                joint, union = least + other_least, exclusive | other_devices
                if union.bit_count() < joint:
                    return True
                subsets.append((joint, union))
        return False

    def settled(self, request: PreparedRequest, free: int) -> bool:
        """Whether every way to serve a request has been evaluated on every device that is free for it."""
        return all(
            not alternative.admin
            and not (alternative.everything and alternative.scope)
            and not free & ~self._view.matches(alternative).known
            for alternative in request.alternatives
        )

    def accepted(self, claim: PreparedClaim, alternative: Alternative, pins: tuple[State, ...], devices: int) -> int:
        """Those of some devices that the claim's constraints still accept."""
        scope = [position for position in alternative.scope if pins[position] is not None]
        if not scope:
            return devices
        accepted = 0
        for index in bits(devices):
            candidate = self._view.candidates[index]
            key = device_key(candidate.id)
            if all(
                claim.spec.constraints[position].extend(
                    pins[position], candidate.id.driver, candidate.device, key, self._view.bindings
                )
                for position in scope
            ):
                accepted |= 1 << index
        return accepted

    def _statics(self) -> list[object]:
        if self._static is None:
            attributes = sorted(
                {constraint.attribute for claim in self._claims for constraint in claim.spec.constraints}
            )
            everything = [
                frozenset(self._view.everything(alternative))
                for alternative in self._alternatives
                if alternative.everything
            ]
            self._static = [
                self._signature(index, attributes, everything) for index in range(len(self._view.candidates))
            ]
        return self._static

    def _signature(self, index: int, attributes: list[str], everything: list[frozenset[int]]) -> object:
        candidate = self._view.candidates[index]
        key, bindings = device_key(candidate.id), self._view.bindings
        return (
            candidate.pool if candidate.counters else None,
            candidate.counters,
            candidate.requirements,
            candidate.unusable,
            candidate.device.taints if everything else (),
            tuple(index in members for members in everything),
            tuple(attribute_values(name, candidate.id.driver, candidate.device) for name in attributes),
            tuple(bindings[name][key] | {key} if key in bindings.get(name, {}) else None for name in attributes),
        )


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
