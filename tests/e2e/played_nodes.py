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

import httpx2

from karpenter_linode.model import codec, labels
from karpenter_linode.model.duration import parse_duration
from karpenter_linode.sim.delays import SimDelays
from karpenter_linode.sim.kubelet import RUNTIME_ANNOTATION
from karpenter_linode.sim.linode.events import NodeBooted
from karpenter_linode.sim.machine_shape import shape_of
from karpenter_linode.sim.nodes import CLOUD_LABELS, HOST_UUID_LABEL, NOT_READY, POOL_ID_LABEL, UNINITIALIZED
from karpenter_linode.sim.nvidia import DISCOVERY_LABEL, DriverBehaviour, _board

if TYPE_CHECKING:
    from collections.abc import Callable

    from linode_emulator import LinodeEmulator

Object = dict[str, Any]
DRIVER = "gpu.nvidia.com"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_TURN_SECONDS = 0.1
_HEARTBEAT_SECONDS = 10.0
_AGAIN_SECONDS = 0.5
_FINAL = ("Succeeded", "Failed")
DELAYS = SimDelays(
    cloud_node_init=(0.3, 0.3),
    node_ready=(0.8, 0.8),
    cloud_node_delete=(2.0, 2.0),
    labels_discovered=(0.2, 0.2),
    driver_start=(0.5, 0.5),
    driver_part=(5.0, 5.0),
    image_pull=(0.1, 0.1),
    container_stop=(0.1, 0.1),
)


class PlayedNodes:
    """A context manager that plays in a thread of its own.

    Attributes:
        driver: how the DRA driver publishes the devices of nodes to come.
        delays: how long things take here.
    """

    def __init__(self, client: httpx2.Client, cloud: LinodeEmulator) -> None:
        self._client, self._cloud = client, cloud
        self.driver = DriverBehaviour()
        self.delays = DELAYS
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
            self._try(self._turn)

    def _try(self, work: Callable[[], object], *, again: bool = False) -> None:
        """Does something; `again` later where the API server is away or busy, or somebody else wrote meanwhile."""
        try:
            work()
        except (httpx2.TransportError, _AgainError) as error:
            self.problems.append(f"{type(error).__name__}: {error}")
            if again:
                self._after(_AGAIN_SECONDS, work)
        except Exception as error:  # noqa: BLE001 - told by the test that waits
            self.problems.append(f"{type(error).__name__}: {error}")

    def _turn(self) -> None:
        while not self._cloud.events.empty():
            event = self._cloud.events.get()
            if isinstance(event, NodeBooted):
                self._alive[event.node_name] = event
                self._after(0.0, partial(self._boot, event))
            else:
                self._alive.pop(event.node_name, None)
                self._ready.pop(event.node_name, None)
                self._after(self.delays.cloud_node_delete[0], partial(self._remove, event.node_name))
        now = time.monotonic()
        due = [item for item in self._agenda if item[0] <= now]
        self._agenda = [item for item in self._agenda if item[0] > now]
        for _, work in due:
            self._try(work, again=True)
        for name, last in list(self._ready.items()):
            if now - last > _HEARTBEAT_SECONDS:
                self._try(partial(self._set_ready, name))
        if self._alive:
            for pod in self._get("/api/v1/pods")["items"]:
                if pod["spec"].get("nodeName") in self._alive:
                    self._try(partial(self._tend, pod))

    def _after(self, seconds: float, work: Any) -> None:
        self._agenda.append((time.monotonic() + seconds, work))

    # Nodes

    def _boot(self, event: NodeBooted) -> None:
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
        self._send("POST", "/api/v1/nodes", node, there_ok=True)
        self._tell(f"node {event.node_name} registered")
        self._after(self.delays.cloud_node_init[0], lambda: self._initialize(event))
        self._after(self.delays.node_ready[0], lambda: self._first_ready(event))

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
        self._send("PATCH", path, {"metadata": lock, "spec": {"providerID": event.provider_id, "taints": taints}})

    def _first_ready(self, event: NodeBooted) -> None:
        if event.node_name not in self._alive:
            return
        self._set_ready(event.node_name)
        self._tell(f"node {event.node_name} ready")
        gpus = self._cloud.world.types[event.instance_type].gpus
        if gpus:
            label = self.delays.labels_discovered[0]
            self._after(label, lambda: self._send("PATCH", f"/api/v1/nodes/{event.node_name}", _DISCOVERED))
            start = self.delays.driver_start[0] + self.driver.late_seconds
            self._after(start, lambda: self._publish(event, gpus))

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
        """As the driver of the embedded world (`sim.nvidia`), after the same delays."""
        if event.node_name not in self._alive:
            return
        name, gap = event.node_name, self.delays.driver_part[0]
        owner = self._get(f"/api/v1/nodes/{name}")["metadata"]["uid"]
        devices = [_device(event.instance_type, index) for index in range(gpus)]
        half = max(1, gpus // 2)
        # Names are drawn here, not by the server, so that a slice whose answer was lost is not made twice.
        first, second = (f"{name}-{DRIVER}-{uuid.uuid4().hex[:5]}" for _ in range(2))
        start, later = (
            partial(self._publish_slice, first, name, owner),
            partial(self._publish_slice, second, name, owner),
        )
        match self.driver.publishing:
            case "complete":
                self._after(0.0, partial(start, devices))
            case "parts":
                self._after(0.0, partial(start, devices[:half], count=2))
                self._after(gap, partial(later, devices[half:], count=2))
            case "regenerated":
                self._after(0.0, partial(start, devices[:half]))
                newest = {"name": name, "generation": 2, "resourceSliceCount": 2}
                self._after(gap, lambda: self._send("PATCH", f"{_SLICES}/{first}", {"spec": {"pool": newest}}))
                self._after(2 * gap, partial(later, devices[half:], generation=2, count=2))

    def _publish_slice(
        self, slice_name: str, name: str, owner: str, devices: list[Object], *, generation: int = 1, count: int = 1
    ) -> None:
        body = {
            "metadata": {
                "name": slice_name,
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": name, "uid": owner, "controller": True}
                ],
            },
            "spec": {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": generation, "resourceSliceCount": count},
                "devices": devices,
            },
        }
        self._send("POST", _SLICES, body, there_ok=True)
        self._tell(f"node {name} published {len(devices)} devices, generation {generation}, of {count} slices")

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
            containers = [_running(container) for container in pod["spec"]["containers"]]
            status = {"phase": "Running", "conditions": [ready], "containerStatuses": containers}
            self._send("PATCH", f"{path}/status", {"status": status}, _STRATEGIC)
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
        there_ok: bool = False,
    ) -> Any:
        headers = {"Content-Type": kind if method == "PATCH" else "application/json"} if body is not None else {}
        content = codec.encode(body) if body is not None else None
        answer = self._client.request(method, path, content=content, headers=headers)
        if (answer.status_code == 404 and missing_ok) or (answer.status_code == 409 and there_ok):
            return None
        if answer.status_code in {409, 429} or answer.status_code >= 500:
            raise _AgainError(answer.text)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()


class _AgainError(Exception):
    pass


def _running(container: Object) -> Object:
    """What a kubelet tells of a container that has started."""
    image, now = container["image"], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    state = {"ready": True, "started": True, "restartCount": 0, "state": {"running": {"startedAt": now}}}
    return {"name": container["name"], "image": image, "imageID": image, **state}


def _device(plan: str, index: int) -> Object:
    attributes, capacity = _board(plan)
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{uuid.uuid4()}"},
            **codec.to_plain(attributes),
        },
        "capacity": codec.to_plain(capacity),
    }


_STRATEGIC = "application/strategic-merge-patch+json"
_DISCOVERED = {"metadata": {"labels": {DISCOVERY_LABEL: "true"}}}
