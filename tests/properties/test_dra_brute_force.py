"""The allocator against a brute-force search on small random instances, judged by an independent set of rules."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dra_judge
import run_vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karpenter_linode.dra import outlook, search

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

CONFORMANCE = Path(__file__).parents[1] / "conformance"


EXPRESSIONS = (
    "device.attributes['gpu.nvidia.com'].k == 0",
    "device.attributes['gpu.nvidia.com'].k < 2",
    "device.attributes['gpu.nvidia.com'].k != 1",
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
)


@st.composite
def devices(draw: st.DrawFn, features: dict[str, bool]) -> list[dict[str, Any]]:
    found = []
    for index in range(draw(st.integers(1, 5))):
        device: dict[str, Any] = {
            "name": f"d{index}",
            "attributes": {"k": {"int": draw(st.integers(0, 2))}},
            "capacity": {"memory": {"value": str(draw(st.sampled_from((4, 8))))}},
        }
        if features["consumable"] and draw(st.booleans()):
            device["allowMultipleAllocations"] = True
            if draw(st.booleans()):
                policy = {"default": "2", "validRange": {"min": "2", "step": "2"}}
                device["capacity"]["memory"]["requestPolicy"] = policy
        if features["partitionable"] and draw(st.booleans()):
            amount = str(draw(st.integers(1, 3)))
            device["consumesCounters"] = [{"counterSet": "cs", "counters": {"slots": {"value": amount}}}]
        if features["taints"] and draw(st.integers(0, 3)) == 0:
            device["taints"] = [{"key": "bad", "effect": draw(st.sampled_from(("NoSchedule", "None")))}]
        found.append(device)
    return found


@st.composite
def items(draw: st.DrawFn, features: dict[str, bool]) -> dict[str, Any]:
    item: dict[str, Any] = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": draw(st.integers(1, 2))}
    if draw(st.integers(0, 4)) == 0:
        item = {"deviceClassName": "any", "allocationMode": "All"}
    chosen = draw(st.lists(st.sampled_from(EXPRESSIONS), max_size=1))
    item["selectors"] = [{"cel": {"expression": text}} for text in chosen]
    if features["consumable"] and draw(st.booleans()):
        item["capacity"] = {"requests": {"memory": str(draw(st.sampled_from((1, 3, 5))))}}
    if features["taints"] and draw(st.booleans()):
        item["tolerations"] = [{"key": "bad", "operator": "Exists"}]
    return item


@st.composite
def claims(draw: st.DrawFn, features: dict[str, bool]) -> list[dict[str, Any]]:
    found = []
    for position in range(draw(st.integers(1, 2))):
        requests = []
        for index in range(draw(st.integers(1, 2))):
            if draw(st.integers(0, 3)) == 0:
                alternatives = [{"name": f"s{sub}", **draw(items(features))} for sub in range(2)]
                requests.append({"name": f"r{index}", "firstAvailable": alternatives})
                continue
            item = draw(items(features))
            if draw(st.integers(0, 5)) == 0:
                item["adminAccess"] = True
            requests.append({"name": f"r{index}", "exactly": item})
        devices: dict[str, Any] = {"requests": requests}
        if draw(st.booleans()):
            kind = draw(st.sampled_from(("matchAttribute", "distinctAttribute")[: 1 + features["consumable"]]))
            scope = draw(st.lists(st.sampled_from([request["name"] for request in requests]), unique=True))
            devices["constraints"] = [{kind: "gpu.nvidia.com/k", "requests": scope}]
        found.append({"metadata": {"name": f"c{position}", "namespace": "ns"}, "spec": {"devices": devices}})
    return found


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    features = {name: draw(st.booleans()) for name in ("taints", "partitionable", "consumable")}
    found = draw(devices(features))
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    base = {"driver": "gpu.nvidia.com", "nodeName": "n1"}
    slices = [{"metadata": {"name": "s"}, "spec": {**base, "pool": pool, "devices": found}}]
    if any(device.get("consumesCounters") for device in found):
        pool["resourceSliceCount"] = 2
        counters = [{"name": "cs", "counters": {"slots": {"value": str(draw(st.integers(2, 5)))}}}]
        slices.append({"metadata": {"name": "cs"}, "spec": {**base, "pool": pool, "sharedCounters": counters}})
    exclusive = [device["name"] for device in found if not device.get("allowMultipleAllocations")]
    taken = draw(st.lists(st.sampled_from(exclusive), unique=True, max_size=2)) if exclusive else []
    return {
        "id": "random",
        "input": {
            "node": {"metadata": {"name": "n1", "labels": {}}},
            "classes": [{"metadata": {"name": "any"}, "spec": {}}],
            "slices": slices,
            "claims": draw(claims(features)),
            "allocated": [f"gpu.nvidia.com/n1/{name}" for name in taken],
            "features": features,
        },
    }


def every_result(row: dict[str, Any]) -> Iterator[dict[str, list[list[str]]]]:
    """Every way to hand out devices, legal or not, as long as the numbers are right."""
    names = [
        f"gpu.nvidia.com/n1/{device['name']}"
        for item in row["input"]["slices"]
        for device in item["spec"].get("devices", ())
    ]
    per_claim = []
    for claim in row["input"]["claims"]:
        options = []
        for request in claim["spec"]["devices"]["requests"]:
            ways = [(request["name"], request["exactly"])] if "exactly" in request else []
            ways += [(f"{request['name']}/{item['name']}", item) for item in request.get("firstAvailable", ())]
            options.append(
                [
                    [[label, name] for name in chosen]
                    for label, item in ways
                    for size in ([item["count"]] if "count" in item else range(1, len(names) + 1))
                    for chosen in itertools.combinations(names, size)
                ]
            )
        per_claim.append([list(itertools.chain(*parts)) for parts in itertools.product(*options)])
    for chosen in itertools.product(*per_claim):
        yield {claim["metadata"]["name"]: result for claim, result in zip(row["input"]["claims"], chosen, strict=True)}


def legal_result(row: dict[str, Any]) -> dict[str, list[list[str]]] | None:
    judge = dra_judge.Judge(row)
    bounded = itertools.islice(every_result(row), 20_000)
    return next((result for result in bounded if not judge.problem(result)), None)


def gives_up(row: dict[str, Any]) -> bool:
    """Whether Kubernetes may end with an error although a legal set exists: ``All`` against a constraint."""
    return any(
        claim["spec"]["devices"].get("constraints")
        and any(
            item.get("allocationMode") == "All"
            for request in claim["spec"]["devices"]["requests"]
            for item in [request.get("exactly") or {}, *request.get("firstAvailable", ())]
        )
        for claim in row["input"]["claims"]
    )


def check(row: dict[str, Any]) -> None:
    answer = run_vectors.answer_dra(row)
    if answer["outcome"] == "allocated":
        assert not dra_judge.Judge(row).problem(answer["results"])
    elif answer["outcome"] == "error":
        assert gives_up(row), answer
    else:
        legal = legal_result(row)
        assert legal is None, f"missed {legal}"


@given(rows())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_finds_a_legal_answer_exactly_when_there_is_one(row: dict[str, Any]) -> None:
    check(row)


def test_looking_ahead_from_the_first_step_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "LOOK_AHEAD", 0)
    monkeypatch.setattr(outlook, "PATIENCE", 0)

    @given(rows())
    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    def looking_ahead(row: dict[str, Any]) -> None:
        check(row)

    looking_ahead()
