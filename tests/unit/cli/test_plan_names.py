"""Plans that the input names: is there such a plan, and can it back a node here?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., Any]

POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.linode, kind: LinodeNodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: %s, values: [g6-dedicated-4, %s]}]
"""


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("g2-gpu-rtx4000a1-ss", "but there is no plan of that name; is 'g2-gpu-rtx4000a1-s' meant?"),
        ("g6-nanode-1", "no node is built from it: plan g6-nanode-1: Nanodes can't be LKE nodes"),
        ("g3-gpu-rtxpro6000-blackwell-1", "is not available in region us-ord"),
    ],
)
def test_a_plan_that_buys_nothing_is_warned_about(command: Command, tmp_path: Path, plan: str, message: str) -> None:
    file = tmp_path / "pool.yaml"
    file.write_text(POOL % ("In", plan))
    result = command("plan", str(file))
    assert result.code == 0
    (warning,) = [line for line in result.err.splitlines() if line.startswith("warning: ")]
    assert message in warning
    assert f"{file}:9:" in warning
    assert "NodePool gpu, spec.template.spec.requirements[0].values[1]" in warning


def test_plans_that_are_not_wanted_need_not_exist(command: Command, tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(POOL % ("NotIn", "no-such-plan"))
    assert "warning: " not in command("plan", str(tmp_path)).err


def test_replicas_that_name_a_plan_are_warned_about_once(command: Command, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 3\n  template:\n    spec:\n"
        "      nodeSelector: {node.kubernetes.io/instance-type: g6-dedicated-44}\n      containers: [{name: c}]\n"
    )
    result = command("plan", str(tmp_path))
    (warning,) = [line for line in result.err.splitlines() if line.startswith("warning: ")]
    assert "is 'g6-dedicated-4' meant?" in warning
    assert ":8:" in warning


@pytest.mark.parametrize("name", ["plan", "simulate"])
def test_strict_takes_warnings_for_errors(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "pool.yaml").write_text(POOL % ("In", "g2-typo"))
    result = command(name, str(tmp_path), "--strict")
    assert result.code == 2
    assert "error: " in result.err
    assert "there is no plan of that name" in result.err


def test_a_pool_that_a_typo_emptied_stands_below_the_pod_that_asks_for_it(command: Command, tmp_path: Path) -> None:
    (tmp_path / "gpu.yaml").write_text(POOL.replace("g6-dedicated-4, ", "") % ("In", "g2-typo"))
    (tmp_path / "cpu.yaml").write_text(POOL.replace("name: gpu", "name: cpu") % ("In", "g6-dedicated-8"))
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        "spec: {nodeSelector: {karpenter.sh/nodepool: gpu}, containers: [{name: c}]}\n"
    )
    result = command("plan", str(tmp_path), "-o", "json")
    (refused,) = result.data["unplaced"]
    pools = {child["subject"]: child["message"] for child in refused["reason"]["children"]}
    assert "filtered out all instance types" in pools["NodePool gpu"]
    assert refused["reason"]["message"] == pools["NodePool cpu"], "the event tells of pools that have plans"
