"""Nodes for the controller's own pods: their kubelets start each container `controller` as a process here.

The process gets what the pod says: arguments, environment with its Secrets, and a token of its service account.
Other than in a container, ports are free ones instead of those in the spec, and the token comes in a kubeconfig.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import httpx2
import yaml
from kube_api import KubeApi
from server_process import LEASH, ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane import ControlPlane

Object = dict[str, Any]
_TURN_SECONDS = 0.2
_HEARTBEAT_SECONDS = 10.0
_AMOUNTS = {"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "80Gi"}
_STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}


class ControllerPods:
    """A context manager that plays in a thread of its own.

    Args:
        control_plane: where the nodes register.
        directory: for logs and credentials.
        environment: variables that every controller gets besides those of its pod.
        nodes: how many nodes there are; the chart wants one for each replica.
    """

    def __init__(
        self, control_plane: ControlPlane, directory: Path, environment: dict[str, str] | None = None, nodes: int = 2
    ) -> None:
        self._control_plane, self._directory = control_plane, directory
        self._environment = environment or {}
        self._names = [f"system-{number}" for number in range(nodes)]
        self._running: dict[str, _Container] = {}
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play, name="controller-pods", daemon=True)

    def __enter__(self) -> Self:
        self._client = self._control_plane.http_client()
        self._api = KubeApi(self._client)
        for name in self._names:
            self._register(name)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)
        for container in self._running.values():
            container.process.kill()
        for name in self._names:
            self._client.delete(f"/api/v1/nodes/{name}")
        self._client.close()

    def _play(self) -> None:
        beat = time.monotonic()
        while not self._stop.wait(_TURN_SECONDS):
            try:
                if time.monotonic() - beat > _HEARTBEAT_SECONDS:
                    beat = time.monotonic()
                    for name in self._names:
                        self._set_ready(name)
                for name in self._names:
                    self._tend_node(name)
            except Exception as error:  # noqa: BLE001 - told by the test that waits
                self.problems.append(f"{type(error).__name__}: {error}")

    def _register(self, name: str) -> None:
        system = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        status = {"capacity": _AMOUNTS, "allocatable": _AMOUNTS}
        self._api.create("/api/v1/nodes", {"metadata": {"name": name, "labels": system}, "status": status})
        self._set_ready(name)

    def _set_ready(self, name: str) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now()}
        version = {"nodeInfo": {"kubeletVersion": "v1.37.2"}}
        self._patch_status(f"/api/v1/nodes/{name}", {"conditions": [ready], **version})

    def _tend_node(self, name: str) -> None:
        pods = self._api.get(f"/api/v1/pods?fieldSelector=spec.nodeName={name}")["items"]
        for pod in pods:
            if any(container["name"] == "controller" for container in pod["spec"]["containers"]):
                self._tend(pod)

    def _tend(self, pod: Object) -> None:
        uid, meta = pod["metadata"]["uid"], pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        running = self._running.get(uid)
        if meta.get("deletionTimestamp"):
            if running is not None:
                running.process.stop(meta.get("deletionGracePeriodSeconds") or 30)
                del self._running[uid]
            self._client.delete(path, params={"gracePeriodSeconds": "0"})
        elif running is None:
            self._running[uid] = container = self._container(pod)
            container.process.start()
            self._tell(path, container, ready=False)
        elif running.ready != (ready := running.is_ready()):
            running.ready = ready
            self._tell(path, running, ready=ready)

    def _container(self, pod: Object) -> _Container:
        meta, spec = pod["metadata"], pod["spec"]
        (controller,) = [item for item in spec["containers"] if item["name"] == "controller"]
        port = _free_port()
        environment = self._variables(meta["namespace"], controller) | {
            "METRICS_PORT": "0",
            "HEALTH_PROBE_PORT": str(port),
            "LEADER_ELECTION_NAMESPACE": meta["namespace"],  # in a container: the file beside the token
            "KUBECONFIG": str(self._kubeconfig(meta["namespace"], spec["serviceAccountName"])),
            **self._environment,
        }
        program = [sys.executable, "-m", "karpenter_linode.cli", "controller", *controller.get("args", [])]
        log = self._directory / f"{meta['name']}.log"
        process = ServerProcess(meta["name"], [sys.executable, str(LEASH), *program], log, environment)
        return _Container(process, port, controller["image"])

    def _variables(self, namespace: str, container: Object) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in container.get("envFrom", ()):
            secret = self._api.get(f"/api/v1/namespaces/{namespace}/secrets/{source['secretRef']['name']}")
            found |= {key: _decoded(value) for key, value in secret["data"].items()}
        for entry in container.get("env", ()):
            assert "valueFrom" not in entry, f"the played kubelet knows no valueFrom: {json.dumps(entry)}"
            found[entry["name"]] = entry.get("value", "")
        return found

    def _kubeconfig(self, namespace: str, account: str) -> Path:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        authority = str(self._control_plane.credentials / "ca.crt")
        cluster = {"server": self._control_plane.url, "certificate-authority": authority}
        config = {
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": account, "user": {"token": self._api.create(path, {"spec": {}})["status"]["token"]}}],
            "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": account}}],
            "current-context": "cluster",
        }
        target = self._directory / f"{namespace}-{account}.kubeconfig"
        target.write_text(yaml.safe_dump(config), encoding="utf-8")
        return target

    def _tell(self, path: str, container: _Container, *, ready: bool) -> None:
        said = "True" if ready else "False"
        conditions = [{"type": kind, "status": said} for kind in ("Ready", "ContainersReady")]
        state = {
            "name": "controller",
            "image": container.image,
            "imageID": container.image,
            "ready": ready,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": container.started}},
        }
        status = {"phase": "Running", "conditions": conditions, "containerStatuses": [state]}
        self._patch_status(path, {**status, "startTime": container.started})

    def _patch_status(self, path: str, status: Object) -> None:
        answer = self._client.patch(f"{path}/status", content=json.dumps({"status": status}), headers=_STRATEGIC)
        assert answer.is_success, f"{path}: {answer.status_code} {answer.text}"


class _Container:
    def __init__(self, process: ServerProcess, port: int, image: str) -> None:
        self.process, self.image = process, image
        self.ready, self.started = False, _now()
        self._probe = f"http://127.0.0.1:{port}/readyz"

    def is_ready(self) -> bool:
        self.process.check()
        try:
            return httpx2.get(self._probe, timeout=5, trust_env=False).is_success
        except httpx2.TransportError:
            return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
