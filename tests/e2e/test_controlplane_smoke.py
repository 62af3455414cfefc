from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import controlplane_binary
import pytest
from controlplane import ControlPlane
from kube_api import KubeApi, Object, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e

DRA = "/apis/resource.k8s.io/v1"
DRIVER = "gpu.example.com"


@pytest.fixture
def node(api: KubeApi) -> Iterator[str]:
    """A Ready node that nobody runs, with one device on it."""
    api.create(f"{DRA}/deviceclasses", device_class())
    name = str(api.create("/api/v1/nodes", ready_node())["metadata"]["name"])
    api.create(f"{DRA}/resourceslices", resource_slice(name))
    yield name
    api.delete(f"{DRA}/resourceslices/{name}")
    api.delete(f"/api/v1/nodes/{name}")
    api.delete(f"{DRA}/deviceclasses/{DRIVER}")


@pytest.fixture
def namespace(api: KubeApi) -> Iterator[str]:
    """A new namespace, with a claim template and the service account that pods need."""
    created = api.create("/api/v1/namespaces", {"metadata": {"generateName": "smoke-"}})
    name = created["metadata"]["name"]
    api.create(f"{DRA}/namespaces/{name}/resourceclaimtemplates", claim_template())
    wait_for("the service account", lambda: api.find(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
    yield name
    api.delete(f"/api/v1/namespaces/{name}/pods")  # at once: no kubelet would ever end those that are bound
    api.delete(f"/api/v1/namespaces/{name}")


def test_the_server_says_which_release_it_is(api: KubeApi) -> None:
    version = api.get("/version")
    assert version["gitVersion"] == controlplane_binary.patch_release()
    assert f"{version['major']}.{version['minor']}" == controlplane_binary.minor_release()


def test_device_claims_are_served_at_v1(api: KubeApi) -> None:
    served = {resource["name"] for resource in api.get(DRA)["resources"]}
    assert {"deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"} <= served


def test_a_claim_is_made_from_its_template_and_allocated_and_the_pod_bound(
    api: KubeApi, namespace: str, node: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    claims = f"{DRA}/namespaces/{namespace}/resourceclaims"
    pod = api.create(pods, pod_with_claim("first"))

    bound = wait_for("the pod to be bound", lambda: bound_pod(api, f"{pods}/first"))

    assert bound["spec"]["nodeName"] == node
    (claim,) = api.get(claims)["items"]
    assert claim["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"], result["device"]) == (DRIVER, node, "gpu-0")
    assert [user["name"] for user in claim["status"]["reservedFor"]] == ["first"]

    api.delete(f"{pods}/first")
    wait_for("the claim to go with its pod", lambda: api.get(claims)["items"] == [])


def test_a_pod_waits_while_the_only_device_is_taken_and_gets_it_afterwards(
    api: KubeApi, namespace: str, node: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.create(pods, pod_with_claim("first"))
    wait_for("the first pod to be bound", lambda: bound_pod(api, f"{pods}/first"))
    api.create(pods, pod_with_claim("second"))

    message = wait_for("the scheduler's refusal", lambda: refusal(api, f"{pods}/second"))
    assert "cannot allocate all claims" in message

    api.delete(f"{pods}/first")
    assert wait_for("the second pod to be bound", lambda: bound_pod(api, f"{pods}/second"))["spec"]["nodeName"] == node


def test_a_service_account_may_do_only_what_a_role_allows(
    control_plane: ControlPlane, api: KubeApi, namespace: str
) -> None:
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    token = api.create(f"{account}/token", {"spec": {}})["status"]["token"]
    with control_plane.http_client(token) as client:
        assert client.get("/api/v1/nodes").status_code == 403
        me = client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json={}).json()
    assert me["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"


def test_a_crashed_api_server_comes_back_at_the_same_address_and_the_others_go_on(
    control_plane: ControlPlane, api: KubeApi, namespace: str, node: str
) -> None:
    others = [server.pid for server in (control_plane.controller_manager, control_plane.scheduler)]
    control_plane.api_server.kill()
    control_plane.start_api_server()

    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.create(pods, pod_with_claim("after"))
    assert wait_for("the pod to be bound", lambda: bound_pod(api, f"{pods}/after"))["spec"]["nodeName"] == node
    assert [server.pid for server in (control_plane.controller_manager, control_plane.scheduler)] == others


def test_a_deleted_namespace_is_emptied_and_goes(api: KubeApi) -> None:
    name = api.create("/api/v1/namespaces", {"metadata": {"generateName": "smoke-"}})["metadata"]["name"]
    claims = f"{DRA}/namespaces/{name}/resourceclaims"
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    api.create(claims, {"metadata": {"name": "left"}, "spec": {"devices": {"requests": [request]}}})

    api.delete(f"/api/v1/namespaces/{name}")

    wait_for("the namespace to go", lambda: api.find(f"/api/v1/namespaces/{name}") is None)
    assert api.find(f"{claims}/left") is None


def test_nothing_runs_after_stop(binary: Path, tmp_path: Path) -> None:
    with ControlPlane(binary, tmp_path / "cp") as running:
        assert len(processes_of(running.directory)) == 4
    assert processes_of(running.directory) == []


def test_nothing_runs_after_the_test_run_was_killed(binary: Path, tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    starter = (
        "import sys, pathlib, server_process as s\n"
        "s.ServerProcess('etcd', sys.argv[2:], pathlib.Path(sys.argv[1])).start()\n"
        "print('started', flush=True); sys.stdin.read()"
    )
    etcd = [str(binary), "etcd", f"--data-dir={tmp_path / 'data'}", f"--listen-client-urls=unix://{tmp_path / 's'}"]
    etcd += ["--advertise-client-urls=http://127.0.0.1:0", "--listen-peer-urls=http://127.0.0.1:0"]
    command = [sys.executable, "-c", starter, str(log), *etcd]
    here, pipe = Path(__file__).parent, subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=here) as killed:  # noqa: S603  # written above
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"started\n"
        wait_for("etcd to be up", (tmp_path / "s").exists)
        os.kill(killed.pid, signal.SIGKILL)

    wait_for("etcd to end", lambda: processes_of(tmp_path) == [])


def processes_of(directory: Path) -> list[int]:
    """The processes that were told of `directory` in their arguments."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = entry.read_bytes()
        except OSError:  # it has just ended
            continue
        if str(directory).encode() in arguments:
            found.append(int(entry.parent.name))
    return found


def bound_pod(api: KubeApi, path: str) -> Object | None:
    pod = api.get(path)
    return pod if pod["spec"].get("nodeName") else None


def refusal(api: KubeApi, path: str) -> str | None:
    for condition in api.get(path)["status"].get("conditions", []):
        if (condition["type"], condition["status"]) == ("PodScheduled", "False"):
            return str(condition["message"])
    return None


def device_class() -> Object:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}}


def ready_node() -> Object:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played by a test"}
    return {
        "metadata": {"generateName": "played-"},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
    }


def resource_slice(node: str) -> Object:
    device = {"name": "gpu-0", "attributes": {"model": {"string": "small"}}, "capacity": {"memory": {"value": "16Gi"}}}
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": node},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [device]},
    }


def claim_template() -> Object:
    big_enough = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("16Gi")) >= 0'
    wanted = {"deviceClassName": DRIVER, "selectors": [{"cel": {"expression": big_enough}}]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}}
    return {"metadata": {"name": "one-gpu"}, "spec": {"spec": spec}}


def pod_with_claim(name: str) -> Object:
    resources = {"requests": {"cpu": "100m"}, "claims": [{"name": "gpu"}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "main", "image": "none.invalid/nothing", "resources": resources}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        },
    }
