"""The real kubectl against a served world: what its users do, from apply to the emptied pool."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples/one-gpu")
READY = "Ctrl-C ends it."
SPEED = "60"

pytestmark = pytest.mark.timeout(400)


class World:
    """A served world in a process of its own, and a kubectl that knows it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.config = folder / "kubeconfig"
        command = [sys.executable, "-m", "karpenter_linode.cli", "simulate", "--serve", "--speed", SPEED]
        command += ["--pod-runtime", "1000h", "--kubeconfig", str(self.config), *arguments]
        self._log = (folder / "story").open("w+")
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            cwd=ROOT,
            stdout=self._log,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, "HOME": str(folder)},
        )
        assert self.process.stderr is not None
        self.told: list[str] = []
        for line in self.process.stderr:
            self.told.append(line.rstrip())
            if line.rstrip() == READY:
                break
        assert self.told[-1:] == [READY], self.told
        kubectl = shutil.which("kubectl", path=str(Path(sys.executable).parent))
        assert kubectl is not None, "kubectl comes with the development dependencies: run `make setup`"
        self._kubectl = kubectl
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(self.config)}

    def run(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl to its end."""
        return subprocess.run(  # noqa: S603 - the kubectl of the dependencies
            [self._kubectl, *arguments],
            env=self._environment,
            input=given,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            cwd=ROOT,
        )

    def do(self, *arguments: str, given: str | None = None) -> str:
        """What kubectl prints; it must succeed."""
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def refused(self, *arguments: str, given: str | None = None) -> str:
        """What kubectl says; it must fail as it does for a user's mistake."""
        done = self.run(*arguments, given=given)
        assert done.returncode == 1, (arguments, done.stdout, done.stderr)
        assert "InternalError" not in done.stderr
        return done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kubectl and let it run."""
        return subprocess.Popen(  # noqa: S603 - likewise
            [self._kubectl, *arguments], env=self._environment, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End the world; its exit code, and the story with what it came to."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        assert self.process.stderr is not None
        self.told += self.process.stderr.read().splitlines()
        self.process.stderr.close()
        code = self.process.wait(60)
        self._log.seek(0)
        story = self._log.read()
        self._log.close()
        return code, story


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Serve a world; it is ended after the test."""
    worlds: list[World] = []

    def start(*arguments: str) -> World:
        worlds.append(World(tmp_path, *arguments))
        return worlds[-1]

    yield start
    for world in worlds:
        if world.process.poll() is None:
            world.process.kill()
            world.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """An empty world for tests that stay out of each other's way."""
    shared = World(tmp_path_factory.mktemp("shared"))
    yield shared
    code, story = shared.end()
    assert (code, shared.told[-1:]) == (0, [READY]), (story, shared.told)


def pool(name: str, **spec: Any) -> str:
    reference = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "absent"}
    full = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}, **spec}
    return json.dumps({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": full})


def test_the_described_example_from_apply_to_the_emptied_pool(serve: Callable[..., World]) -> None:
    world = serve()
    watching = world.start("get", "nodes", "--watch", "-o", "name")
    applied = world.do("apply", "-f", EXAMPLE)
    assert "nodepool.karpenter.sh/gpu created" in applied
    world.do("wait", "--for=condition=Ready", "pod/gpu-job", "--timeout=100s")
    node = world.do("get", "nodes", "-o", "name").strip()
    assert watching.stdout is not None
    assert watching.stdout.readline().strip() == node, "the watch saw the node come"
    watching.kill()
    watching.communicate()

    assert world.do("get", "pods", "--no-headers").split()[:4] == ["gpu-job", "1/1", "Running", "0"]
    wide = world.do("get", "nodeclaims", "-o", "wide").splitlines()
    assert wide[0].split() == [
        *(
            "NAME",
            "TYPE",
            "CAPACITY",
            "ZONE",
            "NODE",
            "READY",
            "AGE",
            "IMAGEID",
            "ID",
            "NODEPOOL",
            "NODECLASS",
            "DRIFTED",
        )
    ]
    assert wide[1].split()[1:5] == ["g2-gpu-rtx4000a1-s", "on-demand", "us-ord", node.removeprefix("node/")]
    assert world.do("get", "resourceclaims", "--no-headers").split()[1] == "allocated,reserved"
    described = world.do("describe", "pod", "gpu-job")
    assert "Successfully assigned default/gpu-job to" in described
    assert "Nominated" in described
    assert "gpu.nvidia.com" in world.do("describe", node)

    drained = world.do("drain", node, "--ignore-daemonsets", "--force", "--timeout=100s")
    assert "evicting pod default/gpu-job" in drained
    assert "drained" in drained
    assert world.do("get", "pods") == ""
    tries = 0
    while world.do("get", "nodes,nodeclaims", "-o", "name"):
        tries += 1
        assert tries < 500, world.do("describe", "nodes,nodeclaims")
    world.do("delete", "-f", EXAMPLE, "--ignore-not-found", "--timeout=60s")

    code, story = world.end(signal.SIGINT)
    assert code == 0
    assert "Pod default/gpu-job: Pod is Running" in story
    assert "1 pod placed; 1 node built; $0.52 billed; nothing left billed" in story.splitlines()[-1]
    assert not world.config.exists(), "a kubeconfig of no use is taken away"


def test_versions_resources_and_who_i_am(world: World) -> None:
    assert json.loads(world.do("version", "-o", "json"))["serverVersion"]["gitVersion"].startswith("v1.")
    names = world.do("api-resources", "-o", "name").split()
    assert {"pods", "nodepools.karpenter.sh", "resourceslices.resource.k8s.io"} <= set(names)
    assert world.do("get", "karpenter").strip() == ""
    assert "karpenter.k8s.linode/v1alpha1" in world.do("api-versions").split()
    assert world.do("auth", "can-i", "delete", "nodeclaims").strip() == "yes"
    assert "kubernetes-admin" in world.do("auth", "whoami")
    assert "consolidateAfter" in world.do("explain", "nodepool.spec.disruption")
    assert "nodeName" in world.do("explain", "pod.spec", "--recursive")


def test_apply_edit_and_the_small_verbs(world: World) -> None:
    manifest = pool("small", weight=3)
    assert world.do("create", "-f", "-", given=manifest).strip() == "nodepool.karpenter.sh/small created"
    world.run("apply", "-f", "-", given=manifest)
    assert world.do("apply", "-f", "-", given=manifest).strip() == "nodepool.karpenter.sh/small unchanged"
    changed = pool("small", weight=4)
    assert "configured" in world.do("apply", "-f", "-", given=changed)
    assert world.do("get", "nodepool", "small", "-o", "jsonpath={.spec.weight} {.metadata.generation}") == "4 2"
    world.do("label", "nodepool", "small", "team=a")
    world.do("annotate", "nodepool", "small", "note=x")
    world.do("patch", "nodepool", "small", "--type=merge", "-p", '{"spec":{"weight":5}}')
    world.do("patch", "nodepool", "small", "--type=json", "-p", '[{"op":"remove","path":"/metadata/annotations/note"}]')
    replaced = json.loads(world.do("get", "nodepool", "small", "-o", "json"))
    assert (replaced["spec"]["weight"], "note" in replaced["metadata"]["annotations"]) == (5, False)
    replaced["spec"]["weight"] = 6
    world.do("replace", "-f", "-", given=json.dumps(replaced))
    rows = world.do("get", "nodepools", "-l", "team=a", "-o", "custom-columns=N:.metadata.name,W:.spec.weight").split()
    assert rows == ["N", "W", "small", "6"]
    assert world.do("delete", "nodepool", "small", "--timeout=60s").startswith('nodepool.karpenter.sh "small" deleted')


def test_server_side_apply_and_its_conflicts(world: World) -> None:
    ours = ("apply", "--server-side", "-f", "-")
    assert world.do(*ours, given=pool("ssa", weight=3)).strip() == "nodepool.karpenter.sh/ssa serverside-applied"
    theirs = (*ours, "--field-manager", "other")
    said = world.refused(*theirs, given=pool("ssa", weight=4))
    assert 'Apply failed with 1 conflict: conflict with "kubectl" using karpenter.sh/v1: .spec.weight' in said
    world.do(*theirs, "--force-conflicts", given=pool("ssa", weight=4))
    said = world.refused(*ours, given=pool("ssa", weight=3))
    assert 'conflict with "other" using karpenter.sh/v1: .spec.weight' in said
    assert world.do("get", "nodepool", "ssa", "-o", "jsonpath={.spec.weight}") == "4"
    fields = world.do("get", "nodepool", "ssa", "-o", "yaml", "--show-managed-fields")
    assert "manager: other" in fields
    world.do("delete", "nodepool", "ssa")


def test_typed_creation_namespaces_and_selectors(world: World) -> None:
    world.do("create", "namespace", "team")
    world.do("create", "configmap", "settings", "--from-literal=a=b", "-n", "team")
    world.do("create", "secret", "generic", "key", "--from-literal=a=b", "-n", "team")
    world.do("create", "serviceaccount", "robot", "-n", "team")
    world.do("create", "priorityclass", "high", "--value=1000")
    world.do("create", "poddisruptionbudget", "none", "--selector=app=x", "--max-unavailable=0", "-n", "team")
    assert world.do("get", "cm", "-A", "-o", "name").strip() == "configmap/settings"
    assert world.do("get", "secret", "key", "-n", "team", "-o", "jsonpath={.data.a}") == "Yg=="
    assert world.do("get", "pdb", "-n", "team", "--no-headers").split()[:4] == ["none", "N/A", "0", "0"]
    world.do("run", "waits", "--image=pause", "-n", "team", "--labels=app=x")
    assert (
        world.do("get", "pods", "-A", "--field-selector", "status.phase=Pending", "-o", "name").strip() == "pod/waits"
    )
    assert world.do("get", "pods", "-n", "team", "-l", "app!=x", "-o", "name") == ""
    world.do("wait", "--for=jsonpath={.status.phase}=Pending", "pod/waits", "-n", "team", "--timeout=60s")
    assert "no containers" not in world.refused("logs", "waits", "-n", "team")
    assert "run nothing" in world.refused("logs", "waits", "-n", "team")
    assert "Metrics API not available" in world.refused("top", "nodes")
    world.do("delete", "pod", "waits", "-n", "team", "--grace-period=0", "--force")
    world.do("delete", "namespace", "team", "--timeout=60s")
    assert world.do("get", "cm,secrets,pdb", "-A") == ""
    world.do("delete", "priorityclass", "high")


def test_nodes_are_cordoned_tainted_and_scaled_pools_are_scaled(world: World) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "by-hand"}}
    world.do("create", "-f", "-", given=json.dumps(node))
    world.do("cordon", "by-hand")
    assert world.do("get", "node", "by-hand", "--no-headers").split()[1] == "Unknown,SchedulingDisabled"
    world.do("uncordon", "by-hand")
    world.do("taint", "node", "by-hand", "key=value:NoSchedule")
    assert "key=value:NoSchedule" in world.do("describe", "node", "by-hand")
    world.do("taint", "node", "by-hand", "key-")
    world.do("delete", "node", "by-hand", "--timeout=60s")
    world.do("create", "-f", "-", given=pool("static", replicas=0))
    world.do("scale", "nodepool", "static", "--replicas=2")
    assert world.do("get", "nodepool", "static", "-o", "jsonpath={.spec.replicas}") == "2"
    world.do("delete", "nodepool", "static", "--timeout=60s")


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (("get", "pod", "nope"), None, 'Error from server (NotFound): pods "nope" not found'),
        (("get", "nonsense"), None, 'the server doesn\'t have a resource type "nonsense"'),
        (("get", "pods", "--field-selector", "spec.foo=1"), None, "field label not supported: spec.foo"),
        (("create", "-f", "-"), pool("Bad_Name"), "a lowercase RFC 1123 subdomain"),
        (("apply", "-f", "-"), pool("x", wieght=1), 'strict decoding error: unknown field "spec.wieght"'),
        (("apply", "-f", "-"), pool("x", weight="heavy"), 'found string "heavy", expected integer'),
        (("apply", "-f", "-"), pool("x", weight=1000), 'The NodePool "x" is invalid: spec.weight: Invalid value: 1000'),
        (("apply", "-f", "-"), '{"apiVersion":"v9","kind":"Pod","metadata":{"name":"x"}}', 'no matches for kind "Pod"'),
        (("patch", "ns", "default", "-p", "[]"), None, "patch"),
        (("delete", "nodeclaim", "nope"), None, 'nodeclaims.karpenter.sh "nope" not found'),
        (("scale", "nodepool", "nope", "--replicas=1"), None, "not found"),
    ],
)
def test_mistakes_are_told_as_kubectl_tells_them(
    world: World, arguments: tuple[str, ...], given: str | None, said: str
) -> None:
    assert said in world.refused(*arguments, given=given)


def test_an_input_that_the_world_refuses_and_a_file_that_is_not_ours(tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text("apiVersion: v1\n")
    command = [sys.executable, "-m", "karpenter_linode.cli", "simulate", "--serve", "--kubeconfig", str(theirs)]
    done = subprocess.run(  # noqa: S603 - our own command
        command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.returncode == 2
    assert "there is a file here that this command did not write" in done.stderr
    assert theirs.read_text() == "apiVersion: v1\n"
