"""Which claims a pod has, and how they are made (spec/dra-allocation.md 1.7, 3.1, 3.3; spec/user-cases.md U03, U13)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.dra import ClaimKey, claim_keys, has_dra_requirements, make_claim
from karpenter_linode.model import codec
from karpenter_linode.model.core import Pod
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.resource import ResourceClaimTemplate


def pod(spec: dict[str, Any], statuses: list[dict[str, Any]] | None = None) -> Pod:
    plain = {
        "metadata": {"name": "job", "namespace": "ns", "uid": "pod-uid"},
        "spec": spec,
        "status": {"resourceClaimStatuses": statuses or []},
    }
    return codec.convert(plain, Pod)


ENTRY = {"name": "g", "resourceClaimTemplateName": "one-gpu"}
USER = {"name": "c", "resources": {"claims": [{"name": "g"}]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, False),
        ({"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}, False),
        ({"resourceClaims": [ENTRY]}, True),
        ({"resourceClaims": [ENTRY], "containers": [{"name": "c"}]}, True),
        ({"containers": [USER]}, True),
        ({"initContainers": [USER]}, True),
        ({"containers": [USER], "initContainers": [USER]}, True),
        ({"resourceClaims": [ENTRY], "containers": [USER], "initContainers": [USER]}, True),
    ],
)
def test_pods_that_ask_for_devices(spec: dict[str, Any], *, expected: bool) -> None:
    assert has_dra_requirements(pod(spec)) is expected


def test_direct_and_generated_claims_by_their_real_names() -> None:
    entries = [ENTRY, {"name": "net", "resourceClaimName": "shared"}]
    found = claim_keys(pod({"resourceClaims": entries}, [{"name": "g", "resourceClaimName": "job-g-x7k2p"}]))
    assert found == (ClaimKey("ns", "job-g-x7k2p", "g"), ClaimKey("ns", "shared", "net"))
    assert [str(key) for key in found] == ["ns/job-g-x7k2p", "ns/shared"]


def test_a_status_entry_without_a_name_needs_no_claim() -> None:
    assert claim_keys(pod({"resourceClaims": [ENTRY]}, [{"name": "g"}])) == ()
    assert claim_keys(pod({"resourceClaims": [ENTRY]}, [{"name": "g", "resourceClaimName": None}])) == ()


def test_a_missing_status_entry_defers_the_pod() -> None:
    found = claim_keys(pod({"resourceClaims": [ENTRY]}))
    assert isinstance(found, Reason)
    assert found.code == "dra-claim-not-created"
    assert found.message.startswith("ResourceClaim not created yet: pod ns/job refers to template 'one-gpu'")


def test_one_claim_under_two_names_counts_once() -> None:
    entries = [{"name": "a", "resourceClaimName": "shared"}, {"name": "z", "resourceClaimName": "shared"}]
    assert claim_keys(pod({"resourceClaims": entries})) == (ClaimKey("ns", "shared", "a"),)


def test_claims_from_templates() -> None:
    plain = {
        "metadata": {"name": "one-gpu", "namespace": "ns"},
        "spec": {
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "x"}},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        },
    }
    owner = pod({"resourceClaims": [ENTRY]})
    made = make_claim(
        owner, owner.spec.resource_claims[0], codec.convert(plain, ResourceClaimTemplate), "job-g-1", "uid"
    )
    assert made.key == "ns/job-g-1"
    assert made.uid == "uid"
    assert made.metadata.labels == {"team": "a"}
    assert made.metadata.annotations == {"note": "x", "resource.kubernetes.io/pod-claim-name": "g"}
    [reference] = made.metadata.owner_references
    assert (reference.kind, reference.name, reference.uid, reference.controller) == ("Pod", "job", "pod-uid", True)
    assert made.spec.devices.requests[0].name == "gpu"
    unnamed = make_claim(owner, owner.spec.resource_claims[0], codec.convert(plain, ResourceClaimTemplate))
    assert (unnamed.name, unnamed.metadata.generate_name) == ("", "job-g-")
