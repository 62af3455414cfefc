"""Events that repeat another one."""

from __future__ import annotations

from karpenter_linode.model.core import Pod
from karpenter_linode.model.meta import ObjectMeta
from karpenter_linode.model.repetitions import Repetitions

POD = Pod(metadata=ObjectMeta(name="p", namespace="team"))
OTHER = Pod(metadata=ObjectMeta(name="q", namespace="team"))


def said(*events: tuple[float, Pod, str, str, tuple[str, ...]], keep: int | None = 4096, window: float = 120) -> str:
    """``x`` for each event that is told, ``.`` for each that is not."""
    known = Repetitions(keep)
    return "".join(
        "x" if known.is_new(obj, reason, message, dedupe=dedupe, window=window, now=now) else "."
        for now, obj, reason, message, dedupe in events
    )


def test_without_dedupe_values_object_and_message_tell_events_apart() -> None:
    assert (
        said((0, POD, "R", "a", ()), (1, POD, "r", "a", ()), (1, POD, "R", "b", ()), (1, OTHER, "R", "a", ())) == "x.xx"
    )


def test_with_dedupe_values_only_they_and_the_reason_do() -> None:
    assert said((0, POD, "R", "a", ("u",)), (1, OTHER, "R", "b", ("u",)), (1, POD, "S", "a", ("u",))) == "x.x"


def test_the_window_opens_with_what_was_told_last() -> None:
    event = (POD, "R", "a", ())
    assert said((0, *event), (119, *event), (120, *event), (200, *event), (240, *event)) == "x.x.x"


def test_a_window_of_nothing_tells_everything() -> None:
    assert said((0, POD, "R", "a", ()), (0, POD, "R", "a", ()), window=0) == "xx"


def test_the_oldest_are_forgotten_first() -> None:
    events = [(0, POD, "R", str(number), ()) for number in (1, 2, 3, 1, 3)]
    assert said(*events, keep=2) == "xxxx."
    assert said(*events, keep=None) == "xxx.."
