"""What was said already: an event that repeats another one is not told (spec/karpenter-lifecycle.md 7.2)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject

REMEMBERED: Final = 4096


class Repetitions:
    """Remembers events, the youngest of them.

    Two events are the same when reason and dedupe values are; where there are no dedupe values, when reason, object and
    message are.

    Args:
        keep: how many are remembered; None for all.
    """

    def __init__(self, keep: int | None = REMEMBERED) -> None:
        self._keep = keep
        self._until: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def is_new(
        self, obj: KubeObject, reason: str, message: str, *, dedupe: tuple[str, ...], window: float, now: float
    ) -> bool:
        """Whether to tell an event. One that is told opens its window.

        Args:
            obj: the object that it is about.
            reason: its reason, in any case.
            message: its text.
            dedupe: what makes it the same as another one.
            window: seconds in which it is told once.
            now: seconds that only go forward.
        """
        key = (reason.lower(), *(dedupe or (obj.KIND, obj.key, message)))
        until = self._until.get(key)
        if until is not None and now < until:
            return False
        self._until[key] = now + window
        self._until.move_to_end(key)
        if self._keep is not None and len(self._until) > self._keep:
            self._until.popitem(last=False)
        return True
