"""Contract texts in brief."""

from __future__ import annotations

import pytest

from karpenter_linode.explain.brief import brief, summary
from karpenter_linode.model.reason import Reason

SENTENCE = "no instance type has enough resources"
WHERE = ", requirements=karpenter.sh/nodepool In [gpu], node.kubernetes.io/instance-type In [a b], resources="


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f'{SENTENCE}{WHERE}{{"cpu":"1","pods":"1"}}', SENTENCE),
        (f'{SENTENCE}{WHERE}min={{"cpu":"1"}}, max={{"cpu":"2"}}', SENTENCE),
        (f'{SENTENCE}{WHERE}{{"cpu":"1M"}} (CPU request >= 1 Million, m vs M typo?)', None),
        ("did not tolerate taint (taint=a:NoSchedule)", "did not tolerate taint (taint=a:NoSchedule)"),
    ],
)
def test_requirements_and_resources_are_left_out(message: str, expected: str | None) -> None:
    assert brief(message) == (expected or f"{SENTENCE} (CPU request >= 1 Million, m vs M typo?)")


def test_what_several_pools_say_alike_is_said_once() -> None:
    texts = [f'{SENTENCE}{WHERE}{{"cpu":"{cpu}"}}' for cpu in (1, 2)]
    pools = tuple(Reason("instance-types", text, subject=f"NodePool {text[-3]}") for text in texts)
    taints = Reason("taints", "did not tolerate taint", subject="NodePool c")
    nodes = Reason("existing-nodes", "none of 1 existing node(s) takes it")
    reason = Reason("instance-types", "; ".join(texts), children=(*pools, taints, nodes))
    assert summary(reason) == f"{SENTENCE}; did not tolerate taint"


def test_a_refusal_without_pools_is_its_message() -> None:
    assert summary(Reason("pod-invalid", "pod has mistakes", children=(Reason("a", "b"),))) == "pod has mistakes"
