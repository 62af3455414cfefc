from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.scheduling.validation import validate
from karpenter_linode.scheduling.volumes import VolumeIndex

NOTHING = VolumeIndex((), (), ())


def affinity(kind: str, **expression: Any) -> dict[str, Any]:
    term = {"matchExpressions": [expression]}
    if kind == "required":
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    preferred = [{"weight": 1, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def test_a_plain_pod_is_valid(make: Any) -> None:
    assert validate(make.pod(), NOTHING) == ""


@pytest.mark.parametrize("kind", ["required", "preferred"])
def test_a_pod_that_refuses_our_nodes_is_ignored(make: Any, kind: str) -> None:
    pod = make.pod(affinity=affinity(kind, key="karpenter.sh/nodepool", operator="DoesNotExist"))
    assert validate(pod, NOTHING) == (
        "configured to not run on a Karpenter provisioned node (requirement=karpenter.sh/nodepool DoesNotExist)"
    )


def test_match_fields_are_not_supported(make: Any) -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert validate(make.pod(affinity={"nodeAffinity": required}), NOTHING) == (
        "node selector term with matchFields is not supported"
    )


def test_a_bad_preference_is_not_refused(make: Any) -> None:
    pod = make.pod(affinity=affinity("preferred", key="kubernetes.io/hostname", operator="In", values=["n"]))
    assert validate(pod, NOTHING) == ""


def test_several_reasons_are_joined(make: Any) -> None:
    pod = make.pod(nodeSelector={"kubernetes.io/hostname": "n", "a": "b c"})
    assert validate(pod, NOTHING).count("; ") >= 2
