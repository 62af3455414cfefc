"""A control plane with our CRDs, the Linode emulator, played nodes and the controller process, for one test."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx2
import yaml
from kube_api import KubeApi, wait_for
from linode_emulator import LinodeEmulator
from played_nodes import PlayedNodes
from server_process import LEASH, ServerProcess
from stories import ClaimDiary

from karpenter_linode.sim.nvidia import DriverBehaviour

if TYPE_CHECKING:
    from controlplane import ControlPlane
    from stories import Notes

Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
CRDS = ROOT / "charts" / "karpenter-crd" / "templates"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLASSES = "/apis/karpenter.k8s.linode/v1alpha1/linodenodeclasses"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
_CLUSTER_WIDE = (POOLS, CLAIMS, CLASSES, "/api/v1/nodes", DEVICE_CLASSES, "/apis/resource.k8s.io/v1/resourceslices")
DRA_OFF = {"IGNORE_DRA_REQUESTS": "true"}
_LOST = "/karpenter-leader-election lost to silence"
_PATHS = {
    "DeviceClass": DEVICE_CLASSES,
    "Event": "/api/v1/namespaces/{namespace}/events",
    "LinodeNodeClass": CLASSES,
    "Node": "/api/v1/nodes",
    "NodeClaim": CLAIMS,
    "NodePool": POOLS,
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates",
}


class KarpenterWorld:
    """A context manager; inside, one controller leads and nothing is applied yet. It leaves the cluster empty.

    While a test waits, a controller that lost its lease to silence is started again, as by the kubelet of its pod: on a
    busy machine the API server may be slower than a leader may wait. Any other end that nobody asked for is a failure.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        directory: Path,
        environment: dict[str, str] | None = None,
        *,
        autostart: bool = True,
        driver: DriverBehaviour | None = None,
    ) -> None:
        """Prepares; nothing is done yet.

        Args:
            control_plane: where.
            directory: for logs.
            environment: added to every controller's.
            autostart: whether a controller runs from the start.
            driver: how devices are published.
        """
        self.control_plane, self.directory = control_plane, directory
        self.environment, self._autostart = environment or {}, autostart
        self._driver = driver or DriverBehaviour()
        self.controllers: list[ServerProcess] = []
        self._to_delete: list[str] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _start(self) -> None:
        client = self._stack.enter_context(self.control_plane.http_client())
        self.client, self.api = client, KubeApi(client)
        install_crds(self.api)
        for path in (CLAIMS, POOLS, CLASSES):  # a new kind's storage starts later than the kind
            wait_for(f"{path} to be served", lambda path=path: client.get(path).is_success)
        empty_cluster(client)
        created = self.api.create("/api/v1/namespaces", {"metadata": {"generateName": "e2e-"}})
        self.namespace = created["metadata"]["name"]
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        wait_for("the service account", lambda: self.api.find(account))
        self.cloud = self._stack.enter_context(LinodeEmulator())
        nodes_client = self._stack.enter_context(self.control_plane.http_client())
        self.nodes = self._stack.enter_context(PlayedNodes(nodes_client, self.cloud))
        self.nodes.driver = self._driver
        watch_client = self._stack.enter_context(self.control_plane.http_client())
        self._diary = self._stack.enter_context(ClaimDiary(watch_client, self.namespace, self.cloud.calls.lines))
        if self._autostart:
            self.start_controller()

    def __exit__(self, *_: object) -> None:
        for controller in self.controllers:
            controller.kill()
        try:
            with suppress(httpx2.TransportError):  # no API server after a test that failed: the next one cleans
                self._clean()
        finally:
            self._stack.close()

    # What the test does

    def start_controller(self, **environment: str) -> ServerProcess:
        """One more controller process."""
        number = len(self.controllers)
        settings = {
            "KUBECONFIG": str(self.control_plane.kubeconfig),
            "LINODE_URL": self.cloud.url,
            "LINODE_TOKEN": "any",
            "CLUSTER_NAME": self.cloud.cluster_name,
            "IGNORE_DRA_REQUESTS": "false",
            "METRICS_PORT": "0",
            "HEALTH_PROBE_PORT": "0",
            "LEADER_ELECTION_NAMESPACE": self.namespace,
            "LOG_LEVEL": "debug",
            **self.environment,
            **environment,
        }
        program = [sys.executable, str(LEASH), sys.executable, "-m", "karpenter_linode.cli", "controller"]
        log = self.directory / f"controller-{number}.log"
        controller = ServerProcess(f"controller {number}", program, log, settings)
        controller.start()
        self.controllers.append(controller)
        return controller

    def apply(self, *manifests: Object) -> None:
        """Creates objects, namespaced ones in the test's namespace, pods last."""
        for manifest in sorted(manifests, key=lambda item: item["kind"] == "Pod"):
            path = self.path(manifest["kind"])
            if self.api.find(f"{path}/{manifest['metadata']['name']}") is None:
                self.api.create(path, manifest)

    def delete(self, kind: str, name: str) -> None:
        """As `kubectl delete`, without waiting."""
        answer = self.client.delete(f"{self.path(kind)}/{name}")
        assert answer.is_success, answer.text

    def path(self, kind: str) -> str:
        """Where objects of a kind are; namespaced ones in the test's namespace."""
        return _PATHS[kind].format(namespace=self.namespace)

    def kubeconfig_of(self, account: str, rules: list[Object]) -> Path:
        """A kubeconfig for a new service account that may do what the rules say, and nothing else."""
        name = f"{self.namespace}-{account}"
        accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        self.api.create(accounts, {"metadata": {"name": account}})
        self.api.create(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": rules})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace}],
        }
        self.api.create(f"{rbac}/clusterrolebindings", binding)
        self._to_delete += [f"{rbac}/clusterroles/{name}", f"{rbac}/clusterrolebindings/{name}"]
        token = self.api.create(f"{accounts}/{account}/token", {"spec": {}})["status"]["token"]
        cluster = {
            "server": self.control_plane.url,
            "certificate-authority": str(self.control_plane.credentials / "ca.crt"),
        }
        config = {
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": account, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": account}}],
            "current-context": "e2e",
        }
        path = self.directory / f"{account}.kubeconfig"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    def pod(self, name: str) -> Object:
        """A pod of the test's namespace."""
        return self.api.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def claims(self) -> list[Object]:
        """All NodeClaims."""
        return list(self.api.get(CLAIMS)["items"])

    def wait(self, what: str, probe: Any, seconds: float = 300.0, every: float = 0.2) -> Any:
        """As `wait_for`, and shows what went on where it does not come. A controller that ends by itself fails it."""

        def look() -> Any:
            for controller in self.controllers:
                if controller.ended() and _LOST in controller.log_tail():
                    controller.kill()
                    controller.start()
                controller.check()
            return probe() or None

        try:
            return wait_for(what, look, seconds, every)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.report()}") from None

    def log(self, number: int = 0) -> list[Object]:
        """The log lines of a controller."""
        text = (self.directory / f"controller-{number}.log").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def events(self, reason: str) -> list[Object]:
        """The events with that reason in the test's namespace and the default one."""
        namespaces = (self.namespace, "default")
        items = [item for name in namespaces for item in self.api.get(f"/api/v1/namespaces/{name}/events")["items"]]
        return [item for item in items if item["reason"] == reason]

    def notes(self) -> Notes:
        """What happened in the cluster and at Linode so far."""
        found = self._diary.notes()
        namespaces = (self.namespace, "default")
        events = [item for name in namespaces for item in self.api.get(f"/api/v1/namespaces/{name}/events")["items"]]
        for event in sorted(events, key=_nanoseconds):
            found.event(event)
        return found

    def report(self) -> str:
        """What went on, for a failed test."""
        logs = [controller.log_tail() for controller in self.controllers]
        claims = [json.dumps(claim.get("status", {}).get("conditions")) for claim in self.claims()]
        return "\n".join([*logs, "played:", *self.nodes.story, *self.nodes.problems[-5:], "NodeClaims:", *claims])

    def _clean(self) -> None:
        """Takes away what the test left, finalizers or not."""
        self.client.delete(f"/api/v1/namespaces/{self.namespace}/pods", params={"gracePeriodSeconds": "0"})
        empty_cluster(self.client)
        for path in (*self._to_delete, f"/api/v1/namespaces/{self.namespace}"):
            self.client.delete(path)


def empty_cluster(client: httpx2.Client) -> None:
    """Deletes all that belongs to no namespace, and waits until it is gone: the next test makes objects of its name.

    What was told of it goes as well: nodes of the emulated cloud have the same names every time.
    """
    wait_for("the cluster to be empty", lambda: sum(_delete_all(client, path) for path in _CLUSTER_WIDE) == 0)
    wait_for("events to go", lambda: client.delete("/api/v1/namespaces/default/events").is_success)


def _delete_all(client: httpx2.Client, path: str) -> int:
    """Begins to delete all objects of a kind; returns how many there were, at least one where the server is busy."""
    answer = client.get(path)
    if not answer.is_success:
        return 1
    items = answer.json()["items"]
    for item in items:
        one = f"{path}/{item['metadata']['name']}"
        client.delete(one)
        if item["metadata"].get("finalizers"):
            free = json.dumps({"metadata": {"finalizers": None}})
            client.patch(one, content=free, headers={"Content-Type": "application/merge-patch+json"})
    return len(items)


def _nanoseconds(event: Object) -> int:
    """When an event was first told, as recorders write it into its name."""
    return int(event["metadata"]["name"].rpartition(".")[2], 16)


def install_crds(api: KubeApi) -> None:
    """Creates our CRDs where they are missing, and waits until they are served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for file in sorted(CRDS.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            name = document["metadata"]["name"]
            if api.find(f"{path}/{name}") is None:
                api.create(path, document)
            wait_for(f"{name} to be served", lambda name=name: _established(api.get(f"{path}/{name}")))


def _established(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any((item["type"], item["status"]) == ("Established", "True") for item in conditions)


def example(name: str) -> dict[str, Object]:
    """The manifests of an example, by kind (the last of each)."""
    found = {}
    for file in sorted((ROOT / "examples" / name).glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            found[document["kind"]] = document
    return found


def is_true(obj: Object, condition: str) -> bool:
    """Whether a status condition holds."""
    conditions = obj.get("status", {}).get("conditions", [])
    return any((item["type"], item["status"]) == (condition, "True") for item in conditions)
