"""``--scheduler-config``: pods that declare no topology spread get the default one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., Any]

CONFIG = """
podTopologySpread:
  defaultConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]
"""
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  disruption: {consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.linode, kind: LinodeNodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g6-standard-2]}]
---
apiVersion: karpenter.k8s.linode/v1alpha1
kind: LinodeNodeClass
metadata: {name: default}
spec: {}
"""
TEMPLATE = "{metadata: {labels: {app: web}}, spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}}"
DEPLOYMENT = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec: {{replicas: 3, selector: {{matchLabels: {{app: web}}}}, template: {TEMPLATE}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web-%d, labels: {app: web}}
spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}
"""
PODS = "---".join(POD % number for number in range(3))
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}}\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    def files(*documents: str) -> tuple[str, str]:
        (tmp_path / "in.yaml").write_text("\n---\n".join((POOL, *documents)))
        (tmp_path / "config.yml").write_text(CONFIG)
        return str(tmp_path / "in.yaml"), str(tmp_path / "config.yml")

    return files


@pytest.mark.parametrize("documents", [(DEPLOYMENT,), (SERVICE, PODS)])
def test_pods_of_a_workload_or_a_service_are_planned_apart(
    command: Command, write: Callable[..., tuple[str, str]], documents: tuple[str, ...]
) -> None:
    source, config = write(*documents)
    assert len(command("plan", source, "-o", "json").data["newNodeClaims"]) == 1
    result = command("plan", source, "--scheduler-config", config, "-o", "json")
    assert [len(claim["pods"]) for claim in result.data["newNodeClaims"]] == [1, 1, 1]


def test_pods_that_nobody_selects_are_planned_together(command: Command, write: Callable[..., tuple[str, str]]) -> None:
    source, config = write(PODS)
    result = command("plan", source, "--scheduler-config", config, "-o", "json")
    assert [len(claim["pods"]) for claim in result.data["newNodeClaims"]] == [3]


def test_a_dumped_problem_has_the_constraints_in_its_pods(
    command: Command, write: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    source, config = write(DEPLOYMENT)
    dump = str(tmp_path / "problem.json")
    first = command("plan", source, "--scheduler-config", config, "--dump-problem", dump, "-o", "json")
    again = command("plan", "--snapshot", dump, "-o", "json")
    assert first.data["newNodeClaims"] == again.data["newNodeClaims"]
    refused = command("plan", "--snapshot", dump, "--scheduler-config", config)
    assert (refused.code, "a snapshot has its own" in refused.err) == (2, True)


def test_workloads_that_were_read_together_with_their_pods_make_no_further_ones(
    command: Command, write: Callable[..., tuple[str, str]]
) -> None:
    owner = "ownerReferences: [{apiVersion: apps/v1, kind: %s, name: web, uid: %s, controller: true}]"
    owned = PODS.replace("labels: {app: web}", "labels: {app: web}, " + owner % ("ReplicaSet", "u-1"))
    deployment = DEPLOYMENT.replace("{name: web}", "{name: web, uid: u-0}", 1)
    replica_set = DEPLOYMENT.replace("kind: Deployment", "kind: ReplicaSet").replace(
        "metadata: {name: web}", "metadata: {name: web-1, uid: u-1, " + owner % ("Deployment", "u-0") + "}", 1
    )
    source, _ = write(deployment, replica_set, owned)
    (claim,) = command("plan", source, "-o", "json").data["newNodeClaims"]
    assert len(claim["pods"]) == 3


def test_a_faulty_file_is_refused_in_the_controllers_words(command: Command, write: Any, tmp_path: Path) -> None:
    source, _ = write(PODS)
    (tmp_path / "bad.yml").write_text(CONFIG.replace("maxSkew: 1", "maxSkew: 0"))
    for name in ("plan", "simulate"):
        result = command(name, source, "--scheduler-config", str(tmp_path / "bad.yml"))
        assert result.code == 2
        assert "bad.yml: parsing scheduler config, validating scheduler config, podTopologySpread" in result.err


def test_the_controllers_of_a_whole_world_spread_them(command: Command, write: Callable[..., tuple[str, str]]) -> None:
    source, config = write(DEPLOYMENT)
    together = command("simulate", source, "-o", "json").data
    apart = command("simulate", source, "--scheduler-config", config, "-o", "json").data
    assert (len(together["nodeClaims"]), len(apart["nodeClaims"])) == (1, 3)
