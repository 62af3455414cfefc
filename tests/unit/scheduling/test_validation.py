from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model import labels
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.scheduling.validation import Restrictions, requirement_errors, validate
from karpenter_linode.scheduling.volumes import VolumeIndex

RULES = Restrictions(labels.WELL_KNOWN, labels.RESTRICTED_DOMAINS)
NOTHING = VolumeIndex((), (), ())


def affinity(kind: str, **expression: Any) -> dict[str, Any]:
    term = {"matchExpressions": [expression]}
    if kind == "required":
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    preferred = [{"weight": 1, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def test_a_plain_pod_is_valid(make: Any) -> None:
    assert validate(make.pod(), NOTHING, RULES) == ""


@pytest.mark.parametrize("kind", ["required", "preferred"])
def test_a_pod_that_refuses_our_nodes_is_ignored(make: Any, kind: str) -> None:
    pod = make.pod(affinity=affinity(kind, key="karpenter.sh/nodepool", operator="DoesNotExist"))
    assert validate(pod, NOTHING, RULES) == (
        "configured to not run on a Karpenter provisioned node (requirement=karpenter.sh/nodepool DoesNotExist)"
    )


def test_match_fields_are_not_supported(make: Any) -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert validate(make.pod(affinity={"nodeAffinity": required}), NOTHING, RULES) == (
        "node selector term with matchFields is not supported"
    )


def test_a_bad_preference_is_not_refused(make: Any) -> None:
    pod = make.pod(affinity=affinity("preferred", key="kubernetes.io/hostname", operator="In", values=["n"]))
    assert validate(pod, NOTHING, RULES) == ""


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (("a", "Near", ("1",)), "key a has an unsupported operator Near not in "),
        (("kubernetes.io/hostname", "In", ("n",)), "using label kubernetes.io/hostname is not allowed"),
        (("karpenter.sh/custom", "In", ("n",)), "using label karpenter.sh/custom is not allowed"),
        (("sub.karpenter.sh/custom", "Exists", ()), "using label sub.karpenter.sh/custom is not allowed"),
        (
            ("karpenter.sh/capacity-type", "In", ("free",)),
            "no valid values found in [free] for karpenter.sh/capacity-type",
        ),
        (("-bad", "Exists", ()), "key -bad is not a qualified name"),
        (("a", "In", ("b c",)), "invalid value b c for key a"),
        (("a", "In", ()), "key a with operator In must have a value defined"),
        (("a", "Gt", ("-1",)), "key a with operator Gt must have a single positive integer value"),
        (("a", "Lt", ("1", "2")), "key a with operator Lt must have a single positive integer value"),
    ],
)
def test_what_is_wrong_with_a_requirement(item: tuple[str, str, tuple[str, ...]], text: str) -> None:
    errors = list(requirement_errors(NodeSelectorRequirement(*item), RULES))
    assert [error for error in errors if error.startswith(text)]


@pytest.mark.parametrize(
    "item",
    [
        ("karpenter.sh/nodepool", "In", ("a",)),
        ("mykarpenter.sh/x", "In", ("a",)),
        ("node.kubernetes.io/x", "Exists", ()),
        ("kops.k8s.io/x", "In", ("a",)),
        ("karpenter.sh/capacity-type", "In", ("spot", "free")),
        ("beta.kubernetes.io/arch", "In", ("amd64",)),
        ("a", "Gte", ("0",)),
    ],
)
def test_what_is_fine(item: tuple[str, str, tuple[str, ...]]) -> None:
    assert list(requirement_errors(NodeSelectorRequirement(*item), RULES)) == []


def test_several_reasons_are_joined(make: Any) -> None:
    pod = make.pod(nodeSelector={"kubernetes.io/hostname": "n", "a": "b c"})
    assert validate(pod, NOTHING, RULES).count("; ") >= 2
