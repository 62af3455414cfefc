"""Nodes played through the API: kubelets, the cloud controller manager and the NVIDIA DRA driver, without machines.

When the Linode emulator boots a machine, its Node registers here, gets ready, publishes its devices and runs what the
real scheduler binds to it. All else is done by the real control plane.
"""

from __future__ import annotations

import threading
import time
import uuid
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from karpenter_linode.model import codec, labels
from karpenter_linode.model.duration import parse_duration
from karpenter_linode.sim.kubelet import RUNTIME_ANNOTATION
from karpenter_linode.sim.linode.events import NodeBooted
from karpenter_linode.sim.machine_shape import shape_of
from karpenter_linode.sim.nodes import CLOUD_LABELS, HOST_UUID_LABEL, NOT_READY, POOL_ID_LABEL, UNINITIALIZED
from karpenter_linode.sim.nvidia import DISCOVERY_LABEL, _board

if TYPE_CHECKING:
    import httpx2
    from linode_emulator import LinodeEmulator

Object = dict[str, Any]
DRIVER = "gpu.nvidia.com"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_TURN_SECONDS = 0.2
_HEARTBEAT_SECONDS = 10.0
_FINAL = ("Succeeded", "Failed")


class PlayedNodes:
    """A context manager that plays in a thread of its own.

    Attributes:
        driver_seconds: from a ready node to its ResourceSlices.
        parts: in how many slices of one pool a node's devices are published, `driver_seconds` apart.
    """

    def __init__(self, client: httpx2.Client, cloud: LinodeEmulator) -> None:
        self._client, self._cloud = client, cloud
        self.driver_seconds = 0.5
        self.parts = 1
        self.problems: list[str] = []
        self.story: list[str] = []
        self._agenda: list[tuple[float, Any]] = []
        self._alive: dict[str, NodeBooted] = {}
        self._ready: dict[str, float] = {}
        self._running: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play, name="nodes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _play(self) -> None:
        while not self._stop.wait(_TURN_SECONDS):
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001 - told by the test that waits; an API server may be restarting
                self.problems.append(f"{type(error).__name__}: {error}")

    def _turn(self) -> None:
        while not self._cloud.events.empty():
            event = self._cloud.events.get()
            if isinstance(event, NodeBooted):
                self._boot(event)
            else:
                self._alive.pop(event.node_name, None)
                self._ready.pop(event.node_name, None)
                self._after(2.0, lambda name=event.node_name: self._remove(name))
        now = time.monotonic()
        due = [item for item in self._agenda if item[0] <= now]
        self._agenda = [item for item in self._agenda if item[0] > now]
        for _, work in due:
            work()
        for name, last in list(self._ready.items()):
            if now - last > _HEARTBEAT_SECONDS:
                self._set_ready(name)
        if self._alive:
            for pod in self._get("/api/v1/pods")["items"]:
                if pod["spec"].get("nodeName") in self._alive:
                    self._tend(pod)

    def _after(self, seconds: float, work: Any) -> None:
        self._agenda.append((time.monotonic() + seconds, work))

    # Nodes

    def _boot(self, event: NodeBooted) -> None:
        self._alive[event.node_name] = event
        shape = shape_of(self._cloud.world.types[event.instance_type])
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": event.node_name,
                "labels": {
                    labels.ARCH: "amd64",
                    labels.OS: "linux",
                    labels.HOSTNAME: event.node_name,
                    **{key: value for key, value in event.labels.items() if key not in CLOUD_LABELS},
                },
            },
            "spec": {
                "taints": [
                    {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
                    {"key": NOT_READY, "effect": "NoSchedule"},
                    *(codec.to_plain(taint) for taint in event.taints),
                ]
            },
            "status": {"capacity": codec.to_plain(shape.capacity), "allocatable": codec.to_plain(shape.allocatable)},
        }
        self._send("POST", "/api/v1/nodes", node)
        self._tell(f"node {event.node_name} registered")
        self._after(0.3, lambda: self._initialize(event))
        self._after(0.8, lambda: self._first_ready(event))

    def _initialize(self, event: NodeBooted) -> None:
        path = f"/api/v1/nodes/{event.node_name}"
        node = self._get(path)
        cloud_labels = {
            labels.INSTANCE_TYPE: event.instance_type,
            labels.REGION: event.region,
            labels.LINODE_TOPOLOGY_REGION: event.region,
            POOL_ID_LABEL: str(event.pool_id),
            HOST_UUID_LABEL: event.host_uuid,
        }
        taints = [taint for taint in node["spec"].get("taints", []) if taint["key"] != UNINITIALIZED]
        lock = {"resourceVersion": node["metadata"]["resourceVersion"], "labels": cloud_labels}
        try:
            self._send("PATCH", path, {"metadata": lock, "spec": {"providerID": event.provider_id, "taints": taints}})
        except _ConflictError:
            self._after(0.1, lambda: self._initialize(event))

    def _first_ready(self, event: NodeBooted) -> None:
        if event.node_name not in self._alive:
            return
        self._set_ready(event.node_name)
        self._tell(f"node {event.node_name} ready")
        gpus = self._cloud.world.types[event.instance_type].gpus
        if gpus:
            self._after(0.2, lambda: self._send("PATCH", f"/api/v1/nodes/{event.node_name}", _DISCOVERED))
            self._after(self.driver_seconds, lambda: self._publish(event, gpus))

    def _set_ready(self, name: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "played",
            "lastHeartbeatTime": now,
        }
        if name not in self._ready:
            ready["lastTransitionTime"] = now
        self._ready[name] = time.monotonic()
        self._send("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, _STRATEGIC)

    def _publish(self, event: NodeBooted, gpus: int) -> None:
        if event.node_name not in self._alive:
            return
        owner = self._get(f"/api/v1/nodes/{event.node_name}")["metadata"]["uid"]
        attributes, capacity = _board(event.instance_type)
        devices = [
            {
                "name": f"gpu-{index}",
                "attributes": {
                    "type": {"string": "gpu"},
                    "uuid": {"string": f"GPU-{uuid.uuid4()}"},
                    **codec.to_plain(attributes),
                },
                "capacity": codec.to_plain(capacity),
            }
            for index in range(gpus)
        ]
        size = -(-len(devices) // self.parts)
        for part in range(self.parts):
            some = devices[part * size : (part + 1) * size]
            self._after(part * self.driver_seconds, partial(self._publish_slice, event.node_name, owner, some))

    def _publish_slice(self, name: str, owner: str, devices: list[Object]) -> None:
        body = {
            "metadata": {
                "generateName": f"{name}-{DRIVER}-",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": name, "uid": owner, "controller": True}
                ],
            },
            "spec": {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": self.parts},
                "devices": devices,
            },
        }
        self._send("POST", _SLICES, body)
        self._tell(f"node {name} published {len(devices)} devices")

    def _remove(self, name: str) -> None:
        self._send("DELETE", f"/api/v1/nodes/{name}", missing_ok=True)

    # Pods

    def _tend(self, pod: Object) -> None:
        meta, phase = pod["metadata"], pod["status"].get("phase")
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if meta.get("deletionTimestamp"):
            if phase not in _FINAL:
                self._send("PATCH", f"{path}/status", {"status": {"phase": "Failed"}}, missing_ok=True)
            self._send("DELETE", path, {"gracePeriodSeconds": 0}, missing_ok=True)
        elif phase == "Pending":
            ready = {"type": "Ready", "status": "True"}
            self._send("PATCH", f"{path}/status", {"status": {"phase": "Running", "conditions": [ready]}}, _STRATEGIC)
            self._running[meta["uid"]] = time.monotonic()
            self._tell(f"pod {meta['name']} runs on {pod['spec']['nodeName']}")
        elif phase == "Running" and self._is_done(pod):
            self._send("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}}, missing_ok=True)
            self._tell(f"pod {meta['name']} succeeded")

    def _is_done(self, pod: Object) -> bool:
        text = pod["metadata"].get("annotations", {}).get(RUNTIME_ANNOTATION)
        since = self._running.get(pod["metadata"]["uid"])
        if text is None or since is None:
            return False
        return time.monotonic() - since > parse_duration(text).total_seconds()

    # Calls

    def _tell(self, line: str) -> None:
        self.story.append(line)

    def _get(self, path: str) -> Object:
        return self._send("GET", path)

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/merge-patch+json",
        *,
        missing_ok: bool = False,
    ) -> Any:
        headers = {"Content-Type": kind if method == "PATCH" else "application/json"} if body is not None else {}
        content = codec.encode(body) if body is not None else None
        answer = self._client.request(method, path, content=content, headers=headers)
        if answer.status_code == 404 and missing_ok:
            return None
        if answer.status_code == 409:
            raise _ConflictError(answer.text)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()


class _ConflictError(Exception):
    pass


_STRATEGIC = "application/strategic-merge-patch+json"
_DISCOVERED = {"metadata": {"labels": {DISCOVERY_LABEL: "true"}}}
