from __future__ import annotations

import pytest

from karpenter_linode.model.core import Taint, Toleration
from karpenter_linode.scheduling import taints

GPU = Taint("nvidia.com/gpu", "true", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("nvidia.com/gpu", "Equal", "true", "NoSchedule"), True),
        (Toleration("nvidia.com/gpu", "", "true"), True),
        (Toleration("nvidia.com/gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoSchedule"), True),
        (Toleration("", "Equal", "true"), True),
        (Toleration("nvidia.com/gpu", "Equal", "false"), False),
        (Toleration("nvidia.com/gpu", "Exists", "", "NoExecute"), False),
        (Toleration("other", "Exists"), False),
        (Toleration("nvidia.com/gpu", "Like", "true"), False),
    ],
)
def test_tolerations(toleration: Toleration, *, expected: bool) -> None:
    assert taints.tolerates(toleration, GPU) is expected


@pytest.mark.parametrize(
    ("operator", "bound", "value", "expected"),
    [
        ("Lt", "10", "5", True),
        ("Lt", "5", "5", False),
        ("Gt", "5", "10", True),
        ("Gt", "10", "x", False),
        ("Gt", "05", "10", False),
    ],
)
def test_numeric_tolerations_compare_whole_numbers(operator: str, bound: str, value: str, *, expected: bool) -> None:
    assert taints.tolerates(Toleration("k", operator, bound), Taint("k", value, "NoSchedule")) is expected


def test_untolerated_taints_are_named_in_the_contract_text() -> None:
    left = taints.untolerated((GPU, Taint("b", "", "NoExecute")), ())
    assert taints.refusal(left) == (
        "did not tolerate taint (taint=nvidia.com/gpu=true:NoSchedule); did not tolerate taint (taint=b:NoExecute)"
    )


def test_prefer_no_schedule_is_as_hard_as_any_until_it_is_relaxed() -> None:
    soft = Taint("a", "b", "PreferNoSchedule")
    assert taints.untolerated((soft,), ()) == (soft,)
    assert taints.untolerated((soft,), (taints.TOLERATE_PREFER_NO_SCHEDULE,)) == ()


def test_merge_keeps_the_first_of_equal_key_and_effect() -> None:
    other = Taint("nvidia.com/gpu", "false", "NoSchedule")
    more = Taint("nvidia.com/gpu", "", "NoExecute")
    assert taints.merge((GPU,), (other, more)) == (GPU, more)


@pytest.mark.parametrize(
    ("taint", "expected"),
    [
        (Taint("node.kubernetes.io/not-ready", "", "NoSchedule"), True),
        (Taint("node.kubernetes.io/not-ready", "any", "NoExecute"), True),
        (Taint("node.kubernetes.io/unreachable", "", "NoSchedule"), True),
        (Taint("node.kubernetes.io/unreachable", "", "NoExecute"), False),
        (Taint("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule"), True),
        (Taint("karpenter.sh/unregistered", "", "NoExecute"), True),
        (Taint("readiness.k8s.io/gpu", "", "NoExecute"), True),
        (Taint("x/readiness.k8s.io", "", "NoExecute"), False),
        (Taint("karpenter.sh/disrupted", "", "NoSchedule"), False),
    ],
)
def test_ephemeral_taints_match_by_key_and_effect(taint: Taint, *, expected: bool) -> None:
    assert taints.is_ephemeral(taint) is expected


def test_an_endless_number_is_no_integer() -> None:
    toleration = Toleration("k", "Gt", "9" * 5000, "NoSchedule")
    assert not taints.tolerates(toleration, Taint("k", "5", "NoSchedule"))
    assert not taints.tolerates(Toleration("k", "Lt", "5", "NoSchedule"), Taint("k", "9" * 5000, "NoSchedule"))
