"""Why plans are not among those of a new NodeClaim."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from karpenter_linode.scheduling.rejected import with_rejected


def rejected(make: Any, pods: Any, plans: Any, **given: Any) -> list[Any]:
    problem = make.problem(pods, plans=plans, **given)
    (claim,) = with_rejected(problem, make.solve(pods, plans=plans, **given)).new_node_claims
    return list(claim.rejected)


def test_a_plan_that_holds_only_some_of_the_pods_would_not_do_alone(make: Any) -> None:
    pods = [make.pod(requests={"cpu": "1500m"}) for _ in range(2)]
    reasons = rejected(make, pods, make.sized_plans(1, 2, 3, 4, 5))
    assert {reason.message for reason in reasons} == {"cannot hold all 2 pods of this NodeClaim at once"}
    assert [reason.subject for reason in reasons] == ["plan it-1", "plan it-2", "plan it-3"]


def test_nothing_is_told_of_the_trial_that_explains(make: Any) -> None:
    (reason,) = rejected(make, [make.pod(requests={"cpu": "3500m"})], make.sized_plans(1, 2, 3, 4, 5))
    assert reason.code == "resources"
    assert reason.message == "3 plan(s) are too small: it-1, it-2, it-3"
    (shortfall,) = reason.children
    assert shortfall.message.startswith("cpu: 3500m needed with daemons, at most 2900m on it-3")


def test_devices_and_size_are_told_plan_by_plan(make: Any) -> None:
    plans = (
        make.plan("small", price=1, devices=1),
        make.plan("large", price=3, devices=2, capacity={"cpu": "8"}),
        make.plan("plain", price=2, capacity={"cpu": "8"}),
    )
    pods = [make.claim_pod("two", requests={"cpu": "5"})]
    given = {"resource_claims": [make.claim("two", count=2)], "device_classes": [make.gpu_class()]}
    reasons = rejected(make, pods, plans, options={"ignore_dra_requests": False}, **given)
    told = {line for reason in reasons for line in (f"{item.subject}: {item.message}" for item in reason.walk())}
    assert any(line.startswith("plan small: predicts 1 device, 2 asked") for line in told)
    assert any(line.startswith("plan plain: predicts no device") for line in told)
    assert not any("NodePool" in line or "NodeClaim" in line for line in told)


def test_an_allowed_plan_that_is_sold_out_is_told_with_and_without_a_node(make: Any) -> None:
    (offering, *_) = make.plan("other").offerings
    sold_out = replace(make.plan("gone", capacity={"cpu": "64"}), offerings=(replace(offering, available=False),))
    plans = (make.plan("small", capacity={"cpu": "2"}), sold_out)
    text = "no available offering that meets the requirements of the NodePool"
    (reason,) = rejected(make, [make.pod(requests={"cpu": "1"})], plans)
    assert (reason.subject, reason.message) == ("plan gone", text)
    (unplaced,) = make.solve([make.pod(requests={"cpu": "32"})], plans=plans).unplaced
    assert ("plan gone", text) in {(item.subject, item.message) for item in unplaced.reason.walk()}
