from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.lifecycle.effects import LogLine, Patch
from karpenter_linode.lifecycle.initialization import complete_drivers, initialize
from karpenter_linode.model.meta import find_condition

REGISTERED = {"Launched": "True", "Registered": "True"}
WITH_ID = {"status": {"providerID": "linode://1"}}
ASKS_FOR_GPU = {"metadata": {"annotations": {"karpenter.sh/requested-dra-drivers": "gpu.nvidia.com"}}}


@pytest.fixture
def gate(cluster: Any, now: Any) -> Any:
    def check(claim: Any, *objects: Any, ignore_dra_requests: bool = False) -> tuple[str, str, str]:
        step = initialize(claim, cluster(*objects), now, ignore_dra_requests=ignore_dra_requests)
        condition = find_condition(step.claim.status.conditions, "Initialized")
        return condition.status, condition.reason, condition.message

    return check


@pytest.fixture
def ready(node: Any) -> Any:
    def make(**changes: Any) -> Any:
        changes.setdefault("spec", {}).setdefault("taints", [])
        return node(**changes)

    return make


def test_an_unregistered_claim_is_not_looked_at(claim: Any, gate: Any, ready: Any) -> None:
    assert gate(claim(**WITH_ID), ready())[1] == "AwaitingReconciliation"


def test_a_node_that_is_ready_is_labelled_and_told(claim: Any, ready: Any, cluster: Any, now: Any) -> None:
    step = initialize(claim(REGISTERED, **WITH_ID), cluster(ready()), now, ignore_dra_requests=False)
    patch, line = step.effects
    assert isinstance(patch, Patch)
    assert patch.patch == {"metadata": {"labels": {"karpenter.sh/initialized": "true"}}}
    assert patch.lock == ""
    assert isinstance(line, LogLine)
    assert line.message == "initialized nodeclaim"
    assert find_condition(step.claim.status.conditions, "Initialized").status == "True"


def test_no_node(claim: Any, gate: Any) -> None:
    assert gate(claim(REGISTERED, **WITH_ID)) == ("Unknown", "NodeNotFound", "Node not registered with cluster")


def test_a_node_that_is_not_ready_waits(claim: Any, gate: Any, ready: Any) -> None:
    waiting = ready(status={"conditions": [{"type": "Ready", "status": "False"}]})
    assert gate(claim(REGISTERED, **WITH_ID), waiting) == ("Unknown", "NodeNotReady", "Node status is NotReady")


def test_a_startup_taint_waits_whatever_its_value_and_is_never_removed_by_us(
    claim: Any, ready: Any, cluster: Any, now: Any
) -> None:
    made = claim(
        REGISTERED, **WITH_ID, spec={"startupTaints": [{"key": "app", "value": "kong", "effect": "NoSchedule"}]}
    )
    tainted = ready(spec={"taints": [{"key": "app", "value": "other", "effect": "NoSchedule"}]})
    step = initialize(made, cluster(tainted), now, ignore_dra_requests=False)
    condition = find_condition(step.claim.status.conditions, "Initialized")
    assert condition.reason == "StartupTaintsExist"
    assert condition.message == 'StartupTaint "app=kong:NoSchedule" still exists'
    assert step.effects == ()


@pytest.mark.parametrize(
    ("key", "effect"),
    [
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        ("readiness.k8s.io/gpu", "NoSchedule"),
    ],
)
def test_taints_that_vanish_by_themselves_wait(claim: Any, gate: Any, ready: Any, key: str, effect: str) -> None:
    tainted = ready(spec={"taints": [{"key": key, "effect": effect}]})
    message = f'KnownEphemeralTaint "{key}:{effect}" still exists'
    assert gate(claim(REGISTERED, **WITH_ID), tainted) == ("Unknown", "KnownEphemeralTaintsExist", message)


@pytest.mark.parametrize("reported", [{}, {"nvidia.com/gpu": "0"}])
def test_a_requested_resource_must_be_reported(claim: Any, gate: Any, ready: Any, reported: dict[str, str]) -> None:
    made = claim(REGISTERED, **WITH_ID, spec={"resources": {"requests": {"nvidia.com/gpu": "1"}}})
    message = 'Resource "nvidia.com/gpu" was requested but not registered'
    waiting = ready(status={"allocatable": reported})
    assert gate(made, waiting) == ("Unknown", "ResourceNotRegistered", message)
    assert gate(made, ready(status={"allocatable": {"nvidia.com/gpu": "1"}}))[0] == "True"


def test_a_resource_of_the_plan_that_no_pod_asked_for_is_not_waited_for(claim: Any, gate: Any, ready: Any) -> None:
    made = claim(REGISTERED, status={"providerID": "linode://1", "capacity": {"nvidia.com/gpu": "1"}})
    assert gate(made, ready())[0] == "True"


class TestDriverGate:
    message = 'DRA driver "gpu.nvidia.com" has not published a complete resource pool'

    def test_no_slice(self, claim: Any, gate: Any, ready: Any) -> None:
        made = claim(REGISTERED, **WITH_ID, **ASKS_FOR_GPU)
        assert gate(made, ready()) == ("Unknown", "DRADriverPoolsNotPublished", self.message)

    def test_a_complete_pool_opens_it(self, claim: Any, gate: Any, ready: Any, slice_: Any) -> None:
        assert gate(claim(REGISTERED, **WITH_ID, **ASKS_FOR_GPU), ready(), slice_())[0] == "True"

    def test_half_a_pool_does_not(self, claim: Any, gate: Any, ready: Any, slice_: Any) -> None:
        made = claim(REGISTERED, **WITH_ID, **ASKS_FOR_GPU)
        assert gate(made, ready(), slice_(count=2))[1] == "DRADriverPoolsNotPublished"
        assert gate(made, ready(), slice_(count=2), slice_("t", count=2))[0] == "True"

    def test_slices_of_an_older_generation_do_not_complete_a_newer_pool(
        self, claim: Any, gate: Any, ready: Any, slice_: Any
    ) -> None:
        old, new = slice_("old", generation=1, count=2), slice_("new", generation=2, count=2)
        assert gate(claim(REGISTERED, **WITH_ID, **ASKS_FOR_GPU), ready(), old, new)[1] == "DRADriverPoolsNotPublished"

    def test_slices_that_disagree_on_their_number_are_no_pool_in_any_order(self, slice_: Any) -> None:
        first, second = slice_(count=2), slice_(name="b", count=1)
        assert complete_drivers([first, second]) == {}
        assert complete_drivers([second, first]) == {}

    def test_a_count_of_zero_is_no_pool(self, slice_: Any) -> None:
        assert complete_drivers([slice_(count=0)]) == {}

    def test_every_driver_is_needed_and_the_first_missing_one_is_named(
        self, claim: Any, gate: Any, ready: Any, slice_: Any
    ) -> None:
        drivers = "gpu.nvidia.com, , nic.example.com"
        made = claim(REGISTERED, **WITH_ID, metadata={"annotations": {"karpenter.sh/requested-dra-drivers": drivers}})
        assert gate(made, ready(), slice_())[2].startswith('DRA driver "nic.example.com"')
        assert gate(made, ready(), slice_(), slice_("n", driver="nic.example.com"))[0] == "True"

    def test_without_the_annotation_there_is_no_gate(self, claim: Any, gate: Any, ready: Any) -> None:
        assert gate(claim(REGISTERED, **WITH_ID), ready())[0] == "True"

    def test_with_dra_off_there_is_no_gate(self, claim: Any, gate: Any, ready: Any) -> None:
        made = claim(REGISTERED, **WITH_ID, **ASKS_FOR_GPU)
        assert gate(made, ready(), ignore_dra_requests=True)[0] == "True"

    def test_a_complete_pool_with_fewer_devices_than_the_plan_has_is_too_small(
        self, claim: Any, gate: Any, ready: Any, slice_: Any
    ) -> None:
        metadata = {**ASKS_FOR_GPU["metadata"], "labels": {"karpenter.k8s.linode/instance-gpu-count": "2"}}
        status, reason, message = gate(claim(REGISTERED, **WITH_ID, metadata=metadata), ready(), slice_())
        assert (status, reason) == ("Unknown", "DRADriverPoolsNotPublished")
        assert message == f"{self.message}: 0 of the 2 devices that the plan has"
