"""The tree of reasons: contract texts on top, plans below, devices with the clause and the value below those."""

from __future__ import annotations

from typing import Any

from karpenter_linode.dra import Allocation
from karpenter_linode.model.reason import Reason

A = "device.attributes['gpu.nvidia.com']"
C = "device.capacity['gpu.nvidia.com']"


def refuse(b: Any, item: Any, *types: Any, **fields: Any) -> Reason:
    found = b.allocator(**fields).allocate(b.new_node(*(types or (b.gpu_plan(),))), [item], explain=True)
    assert isinstance(found, Reason), found
    return found


def test_count_against_prediction(b: Any) -> None:
    found = refuse(b, b.claim("c", b.exactly("gpu", count=2)))
    assert found.code == "dra-no-instance-type"
    assert found.message == "no instance type can satisfy the allocation"
    [plan] = found.children
    assert (plan.subject, plan.message) == ("plan g2-gpu-rtx4000a1-s", "predicts 1 device, 2 asked")
    assert (plan.fact("predicted"), plan.fact("asked")) == ("1", "2")


def test_without_explanation_the_refusal_is_bare(b: Any) -> None:
    found = b.allocator().allocate(b.new_node(b.gpu_plan()), [b.claim("c", b.exactly(count=2))])
    assert found.message == "no instance type can satisfy the allocation"
    assert found.children == ()


def test_the_false_clause_and_the_value_seen(b: Any) -> None:
    clause = f"{C}.memory.compareTo(quantity('24Gi')) >= 0"
    found = refuse(b, b.claim("c", b.exactly("gpu", f"{A}.type == 'gpu' && {clause}")))
    [plan] = found.children
    assert plan.message == "predicts 1 device, 0 of them fit, 1 asked"
    [device] = plan.children
    assert device.subject == "device gpu-0"
    assert device.message == f"{clause} is false: memory is 20475Mi"
    assert device.fact("clause") == clause


def test_equal_devices_are_named_together(b: Any) -> None:
    found = refuse(b, b.claim("c", b.exactly("gpu", f"{A}.architecture == 'Ada'")), b.gpu_plan("g2-gpu-rtx4000a4-s", 4))
    [device] = found.children[0].children
    assert device.subject == "devices gpu-0, gpu-1, gpu-2, gpu-3"
    assert device.message == f"{A}.architecture == 'Ada' is false: architecture is \"Ada Lovelace\""


def test_a_missing_key_is_named_and_other_plans_still_are_chosen(b: Any) -> None:
    unknown, known = b.gpu_plan("g1-gpu-rtx6000-1"), b.gpu_plan()
    item = b.claim("c", b.exactly("gpu", f"{A}.productName == 'NVIDIA RTX 4000 Ada Generation'"))
    found = b.allocator().allocate(b.new_node(unknown, known), [item])
    assert isinstance(found, Allocation)
    assert found.instance_types == (known.name,)
    [reason] = found.rejected
    assert reason.subject == "plan g1-gpu-rtx6000-1"
    assert "no such key: productName" in reason.message
    assert "request gpu, selector 1" in reason.message
    assert "gpu-0" in reason.message


def test_a_selector_that_does_not_compile_names_claim_request_and_place(b: Any) -> None:
    found = refuse(b, b.claim("c", b.exactly("gpu", "true", f"{C}.memory >= quantity('20Gi')")))
    assert found.code == "dra-selector-compile"
    assert found.message.startswith("claim ns/c, request gpu, selector 2 of 2: CEL compile error: 1:")
    assert found.fact("position").startswith("1:")
    assert found.fact("ResourceClaim") == "ns/c"


def test_a_class_selector_that_does_not_compile_names_the_class(b: Any) -> None:
    found = refuse(b, b.claim("c"), classes=(b.device_class("gpu", "device.pool == 'p'"),))
    assert found.message.startswith("claim ns/c, class gpu, selector 1: CEL compile error: ")
    assert "undefined field 'pool'" in found.message


def test_an_unknown_class_is_named(b: Any) -> None:
    found = refuse(b, b.claim("c", b.exactly("gpu", device_class="nope")))
    assert found.message == "claim ns/c, request gpu: DeviceClass 'nope' not found"
    assert found.code == "dra-class-missing"


def test_unknown_modes_and_empty_requests_are_named(b: Any) -> None:
    found = refuse(b, b.claim("c", b.exactly("gpu", allocationMode="Some")))
    assert found.message == "claim ns/c, request gpu: unsupported allocation mode 'Some', expected ExactCount or All"
    found = refuse(b, b.claim("c", {"name": "gpu"}))
    assert found.message == "claim ns/c, request gpu: neither exactly nor firstAvailable is set"


def test_a_constraint_without_an_attribute_is_named(b: Any) -> None:
    found = refuse(b, b.claim("c", constraints=[{"requests": ["r0"]}]))
    assert found.message.startswith("claim ns/c, constraint #0: unsupported constraint")


def test_a_selector_that_is_not_cel_is_named(b: Any) -> None:
    request = b.exactly("gpu")
    request["exactly"]["selectors"] = [{}]
    found = refuse(b, b.claim("c", request))
    assert found.message == "claim ns/c, request gpu, selector 1: unsupported selector type (only CEL is supported)"


def test_in_use_tainted_and_incomplete_on_a_node(b: Any) -> None:
    devices = [
        b.device("a"),
        b.device("c", taints=[{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}]),
    ]
    held = b.claim("old", status=b.allocated("gpu.nvidia.com/n1/a", pods=("p",)))
    allocator = b.allocator(b.slice_of(devices, node="n1"), claims=[held])
    text = b.tree(allocator.allocate(b.node(), [b.claim("c")], explain=True))
    assert "Node n1: publishes 2 devices, 0 of them fit, 1 asked" in text
    assert "device n1/a: in use by another claim" in text
    assert "device n1/c: taint gpu.nvidia.com/xid=79:NoSchedule is not tolerated" in text


def test_an_incomplete_pool_is_reported_with_generation_and_slices(b: Any) -> None:
    allocator = b.allocator(b.slice_of([b.device("a")], node="n1", count=3, generation=7))
    text = b.tree(allocator.allocate(b.node(), [b.claim("c")], explain=True))
    assert "pool gpu.nvidia.com/n1: currently being updated: generation 7 shows 1 of 3 slices" in text


def test_requests_that_only_fail_together(b: Any) -> None:
    devices = [b.device("a", driver_attributes={"k": 1}), b.device("c", driver_attributes={"k": 2})]
    item = b.claim("c", b.exactly("x", f"{A}.k == 1"), b.exactly("y", f"{A}.k == 1"))
    text = b.tree(b.allocator(b.slice_of(devices, node="n1")).allocate(b.node(), [item], explain=True))
    assert "publishes 2 devices; each request could be served, but not all of them together" in text
    assert "the requests want the same devices" in text


def test_several_claims_are_told_apart_by_name(b: Any) -> None:
    items = [b.claim("good"), b.claim("bad", b.exactly("gpu", f"{A}.architecture == 'Ada'"))]
    found = b.allocator().allocate(b.new_node(b.gpu_plan("g2-gpu-rtx4000a2-s", 2)), items, explain=True)
    assert "too few for claim ns/bad request gpu" in b.tree(found)


def test_equal_refusals_do_not_carry_another_claims_name(b: Any) -> None:
    allocator = b.allocator()
    picky = b.exactly("gpu", f"{A}.nope == 1")
    for name in ("first", "second"):
        found = allocator.allocate(b.new_node(b.gpu_plan()), [b.claim(name, picky)], explain=True)
        assert "ns/" not in "".join(reason.message for reason in found.walk())


def test_the_step_bound_is_told(b: Any) -> None:
    devices = [b.device(f"d{i}", driver_attributes={"k": i, "j": i % 7}) for i in range(14)]
    item = b.claim("c", b.exactly(count=8), constraints=[{"distinctAttribute": "gpu.nvidia.com/j"}])
    allocator = b.allocator(b.slice_of(devices, node="n1"), steps=20)
    text = b.tree(allocator.allocate(b.node(), [item], explain=True))
    assert "the device search gave up after 20 tried devices without an answer" in text


def test_the_one_clause_in_the_way_is_offered(b: Any) -> None:
    clause = f"{C}.memory.compareTo(quantity('24Gi')) >= 0"
    item = b.claim("c", b.exactly("gpu", f"{A}.type == 'gpu' && {clause}"))
    found = refuse(b, item, b.gpu_plan(), b.gpu_plan("g2-gpu-rtx4000a1-m"))
    plans = "g2-gpu-rtx4000a1-s, g2-gpu-rtx4000a1-m"
    assert found.fact("hint") == f"memory >= 20475Mi would match 2 plans: {plans}"


def test_no_hint_where_one_clause_is_not_enough(b: Any) -> None:
    item = b.claim("c", b.exactly("gpu", f"{A}.architecture == 'Ada' && {A}.brand == 'Ada'"))
    assert refuse(b, item).fact("hint") is None


def test_of_several_values_the_one_that_changes_least_is_offered(b: Any) -> None:
    memory = f"{C}.memory.compareTo(quantity('80Gi')) >= 0"
    item = b.claim("c", b.exactly("gpu", f"{memory} && {A}.type == 'gpu'"))
    devices = [
        b.device(name, capacity={"memory": {"value": amount}})
        for name, amount in (("small", "16Gi"), ("large", "48Gi"))
    ]
    found = b.allocator(b.slice_of(devices, node="n1")).allocate(b.node(), [item], explain=True)
    assert found.fact("hint") == "memory >= 48Gi would fit"


def test_a_clause_of_another_form_is_offered_to_be_left_out(b: Any) -> None:
    clause = f"{A}.productName.startsWith('Tesla')"
    found = refuse(b, b.claim("c", b.exactly("gpu", clause)))
    assert found.fact("hint").startswith(
        f"without {clause} the claims would fit on g2-gpu-rtx4000a1-s (productName is "
    )
