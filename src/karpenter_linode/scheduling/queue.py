"""The queue: pods in order, round after round, until a round places nothing (spec/karpenter-scheduling.md 2.6, 2.7)."""

from __future__ import annotations

from collections import deque
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model.core import Pod
from karpenter_linode.scheduling.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from karpenter_linode.scheduling.placement import Placer
    from karpenter_linode.scheduling.shape import Shapes

OUT_OF_STEPS: Final = "out-of-steps"
OUT_OF_TIME: Final = "out-of-time"
_LONGEST_RUN: Final = 512


class Left(Struct, frozen=True):
    """A pod without a place.

    Args:
        pod: the pod.
        first: its shape as the user wrote it.
        last: its shape after the last preference was given up.
        outcome: how the attempt ended; one of ``OUT_OF_STEPS`` and ``OUT_OF_TIME`` where there was none.
    """

    pod: Pod
    first: Shape
    last: Shape
    outcome: str


class Queue:
    """Pods that wait for a place.

    Args:
        shapes: gives up preferences.
        placer: finds places.
        admitted: the pods in queue order, each with its shape.
    """

    def __init__(self, shapes: Shapes, placer: Placer, admitted: Sequence[tuple[Pod, Shape]]) -> None:
        self._shapes, self._placer, self._admitted = shapes, placer, admitted
        self._waiting = deque(range(len(admitted)))
        self._outcomes: dict[int, tuple[Shape, str]] = {}
        self._relaxed: list[tuple[Pod, Shape, Shape]] = []
        self._placements = 0
        self._cut = False

    def __len__(self) -> int:
        return len(self._waiting)

    def cut(self) -> None:
        """Let no further pod have an attempt."""
        self._cut = True

    def turns(self) -> Iterator[None]:
        """Place pods; yields between two attempts."""
        last_length: dict[int, int] = {}
        waiting, outcomes = self._waiting, self._outcomes
        while waiting and last_length.get(waiting[0]) != len(waiting):
            if self._cut or self._placer.steps_left <= 0:
                code = OUT_OF_TIME if self._cut else OUT_OF_STEPS
                for unreached in waiting:  # one that was tried before keeps what it was told
                    outcomes.setdefault(unreached, (self._admitted[unreached][1], code))
                break
            index = waiting.popleft()
            pod, shape = self._admitted[index]
            last, outcome = self._attempt(pod, shape)
            if outcome == "placed":
                self._placements += 1
                outcomes.pop(index, None)
                if last is shape:
                    self._place_equals(shape)
                else:
                    self._relaxed.append((pod, shape, last))
            else:
                outcomes[index] = (last, outcome)
                waiting.append(index)
                last_length[index] = len(waiting)
            yield

    def left(self) -> list[Left]:
        """Pods that found no place, in queue order."""
        return [Left(*self._admitted[index], *self._outcomes[index]) for index in sorted(self._outcomes)]

    def relaxed(self) -> Iterator[tuple[Pod, str]]:
        """Pods that found a place after giving something up, with what it was; one entry for each thing given up."""
        for pod, shape, last in self._relaxed:
            step: Shape | None = shape
            while step is not None and step is not last:
                yield pod, step.relaxed_text
                step = step.relaxed

    def _place_equals(self, shape: Shape) -> None:
        """Place the pods at the head of the queue that are equal to the one just placed, many at a time."""
        waiting, admitted = self._waiting, self._admitted
        while waiting and admitted[waiting[0]][1] is shape and self._placer.may_repeat(shape):
            run = list(takewhile(lambda index: admitted[index][1] is shape, islice(waiting, _LONGEST_RUN)))
            placed = self._placer.place_more([admitted[index][0] for index in run], shape)
            for _ in range(placed):
                self._outcomes.pop(waiting.popleft(), None)
            self._placements += placed
            if placed < len(run):
                return

    def _attempt(self, pod: Pod, shape: Shape) -> tuple[Shape, str]:
        """Try a pod as it is, then with one preference less at a time; preferences come back at the next attempt."""
        first = shape
        if not shape.dra and shape.failed_at == self._placements:
            return shape.failed_as or shape, "refused"  # nothing was placed since an equal pod failed
        while True:
            outcome = self._placer.place(pod, shape)
            if outcome != "refused":
                return shape, outcome
            relaxed = self._shapes.relax(shape)
            if relaxed is None:
                first.failed_at, first.failed_as = self._placements, shape
                return shape, outcome
            shape = relaxed
