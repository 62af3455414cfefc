from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.model.core import Pod
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.scheduling import resources as res


def pod(**spec: Any) -> Pod:
    return codec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod)


def container(cpu: str, memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def cpu_of(**spec: Any) -> str:
    return str(Quantity(res.pod_requests(pod(**spec))["cpu"]))


@pytest.mark.parametrize(
    ("apps", "inits", "expected"),
    [
        (["6"], [("10", ""), ("4900m", "Always")], "10900m"),
        (["6"], [("4900m", "Always"), ("5", "")], "10900m"),
        (["5"], [("4900m", "Always"), ("6", "")], "10900m"),
        (["1", "2"], [], "3"),
        (["1"], [("2", "")], "2"),
    ],
)
def test_init_containers_and_sidecars(apps: list[str], inits: list[tuple[str, str]], expected: str) -> None:
    found = cpu_of(
        containers=[container(cpu) for cpu in apps],
        initContainers=[container(cpu, restartPolicy=policy) for cpu, policy in inits],
    )
    assert found == expected


def test_pod_level_requests_override_the_sum_and_overhead_is_added_to_them() -> None:
    found = res.pod_requests(
        pod(
            containers=[container("20", "20Gi")],
            resources={"requests": {"cpu": "9900m", "memory": "3900Mi"}},
            overhead={"cpu": "100m"},
        )
    )
    assert found["cpu"] == Quantity.parse("10").nano
    assert found["memory"] == Quantity.parse("3900Mi").nano


def test_pod_level_requests_leave_extended_resources_alone() -> None:
    app = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "2"}}}
    found = res.pod_requests(pod(containers=[app], resources={"requests": {"nvidia.com/gpu": "1", "cpu": "1"}}))
    assert found["nvidia.com/gpu"] == Quantity.of(2).nano


def test_a_missing_request_takes_the_limit() -> None:
    app = {"name": "c", "resources": {"limits": {"cpu": "2", "fake.com/gpu": "1"}, "requests": {"cpu": "1"}}}
    found = res.pod_requests(pod(containers=[app]))
    assert (found["cpu"], found["fake.com/gpu"]) == (Quantity.of(1).nano, Quantity.of(1).nano)


def test_every_pod_takes_one_of_pods() -> None:
    assert res.pod_requests(pod(containers=[])) == {"pods": Quantity.of(1).nano}


def test_a_running_resize_counts_the_larger_amount() -> None:
    plain = {
        "metadata": {"name": "p"},
        "spec": {"containers": [container("1")]},
        "status": {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "3"}}]},
    }
    assert res.pod_requests(codec.convert(plain, Pod))["cpu"] == Quantity.of(3).nano


def test_a_resized_sidecar_counts_the_larger_amount_an_init_container_that_ended_does_not() -> None:
    def init(name: str, **more: str) -> dict[str, Any]:
        return {**container("1"), "name": name, **more}

    plain = {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [container("1")],
            "initContainers": [init("side", restartPolicy="Always"), init("first")],
        },
        "status": {
            "initContainerStatuses": [{"name": name, "allocatedResources": {"cpu": "3"}} for name in ("side", "first")]
        },
    }
    assert res.pod_requests(codec.convert(plain, Pod))["cpu"] == Quantity.of(4).nano


def test_nothing_fits_where_any_resource_is_overdrawn() -> None:
    assert not res.fits({"cpu": 1}, {"cpu": 5, "memory": -1})
    assert res.fits({"cpu": 1}, {"cpu": 5, "memory": 0})


def test_a_zero_request_of_an_unknown_resource_fits() -> None:
    assert res.fits({"unknown": 0}, {"cpu": 1})
    assert not res.fits({"unknown": 1}, {"cpu": 1})


def test_subtract_keeps_the_keys_of_the_left_side() -> None:
    assert res.subtract({"cpu": 1}, {"cpu": 3, "memory": 2}) == {"cpu": -2}


def test_minimum_treats_a_missing_resource_as_zero() -> None:
    assert res.minimum({"cpu": 2, "memory": 1}, {"cpu": 1}) == {"cpu": 1}
    assert res.minimum({"cpu": 2}, {}) == {}


def test_maximum_is_over_the_union() -> None:
    assert res.maximum({"cpu": 2}, {"cpu": 3, "memory": 1}) == {"cpu": 3, "memory": 1}


def test_shortfalls_name_what_is_asked_and_what_is_left() -> None:
    assert res.shortfalls({"cpu": 3, "memory": 1}, {"cpu": 2, "memory": 1}) == (("cpu", 3, 2),)


def test_written_lists_are_sorted_and_bytes_are_binary() -> None:
    written = res.to_resource_list({"memory": Quantity.parse("1Gi").nano, "cpu": Quantity.parse("1500m").nano})
    assert {name: str(value) for name, value in written.items()} == {"cpu": "1500m", "memory": "1Gi"}
    assert list(written) == ["cpu", "memory"]
