"""``plan`` on the examples: what is built, what is not and why, exit codes, snapshots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.cluster.view import CORE_KINDS, DRA_KINDS
from karpenter_linode.model.resource import ResourceClaimTemplate
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syrupy.assertion import SnapshotAssertion

    Command = Callable[..., Any]

A1_S = "g2-gpu-rtx4000a1-s"
ROOT = Path(__file__).parents[3]
UNKNOWN_GPU = "examples/plans/with-unknown-gpu.json"


def example(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def messages(reason: dict[str, Any]) -> Iterator[str]:
    yield f"{reason.get('subject', '')}: {reason['message']}"
    for child in reason.get("children", ()):
        yield from messages(child)


def unplaced(data: dict[str, Any]) -> str:
    return "\n".join(line for item in data["unplaced"] for line in messages(item["reason"]))


@pytest.mark.parametrize(
    "name",
    ["one-gpu", "two-gpus", "any-plan", "five-pods", "ada-gpu", "ada-gpu-24gi", "shared-claim", "no-toleration"],
)
def test_what_people_read(command: Command, name: str, snapshot: SnapshotAssertion) -> None:
    result = command("plan", f"examples/{name}")
    assert f"exit {result.code}\n{result.out}--\n{result.err}" == snapshot


def test_one_gpu_gets_one_node_of_the_only_allowed_plan(command: Command) -> None:
    result = command("plan", "examples/one-gpu", "-o", "json")
    assert result.code == 0
    (claim,) = result.data["newNodeClaims"]
    assert claim["plans"] == [A1_S]
    assert claim["pricePerHour"] == "0.52"
    assert claim["pods"] == ["default/gpu-job"]
    assert claim["object"]["metadata"]["annotations"]["karpenter.sh/requested-dra-drivers"] == "gpu.nvidia.com"


def test_a_claim_for_more_devices_than_the_plan_has(command: Command) -> None:
    result = command("plan", "examples/two-gpus", "-o", "json")
    assert result.code == 1
    assert result.data["newNodeClaims"] == []
    text = unplaced(result.data)
    assert "no instance type can satisfy the allocation" in text
    assert f"plan {A1_S}: predicts 1 device, 2 asked" in text


def test_without_requirements_the_cheapest_gpu_plan_of_the_catalog_is_taken(command: Command) -> None:
    (claim,) = command("plan", "examples/any-plan", "-o", "json").data["newNodeClaims"]
    assert claim["plans"][0] == A1_S
    assert all("-gpu-" in plan for plan in claim["plans"])


def test_plans_that_the_limits_exclude_are_told_with_what_is_left(command: Command) -> None:
    (claim,) = command("plan", "examples/any-plan", "--explain", "-o", "json").data["newNodeClaims"]
    reasons = {reason["subject"]: reason for reason in claim["rejected"]}
    large = reasons["plan g2-gpu-rtx4000a4-m"]
    assert large["message"] == "excluded because it would breach limits: cpu limit 16, 16 left"
    assert large["facts"] == {"cpu limit": "16", "cpu left": "16"}
    unsold = reasons["plan g3-gpu-rtxpro6000-blackwell-1"]
    assert unsold["message"] == "no available offering that meets the requirements of the NodePool"
    catalog = command("catalog", "list", "-o", "json").data["plans"]
    told = {f"plan {name}" for name in claim["plans"]} | reasons.keys()
    assert told >= {f"plan {plan['plan']}" for plan in catalog if plan["usable"]}


def test_limits_are_those_left_by_the_claims_before(command: Command, tmp_path: Path) -> None:
    cluster = example("examples/any-plan/cluster.yaml").replace('cpu: "16"', 'cpu: "20"')
    template, pod = example("examples/any-plan/workload.yaml").split("\n---\n")
    alone = pod.replace("      resources:", "      ports: [{containerPort: 80, hostPort: 80}]\n      resources:")
    pods = [alone.replace("name: gpu-job", f"name: gpu-job-{number}") for number in (1, 2)]
    (tmp_path / "all.yaml").write_text("\n---\n".join([cluster, template, *pods]))
    first, second = command("plan", str(tmp_path), "--explain", "-o", "json").data["newNodeClaims"]
    assert over_limits(first) == {"excluded because it would breach limits: cpu limit 20, 20 left"}
    assert over_limits(second) == {"excluded because it would breach limits: cpu limit 20, at most 4 left"}


def over_limits(claim: dict[str, Any]) -> set[str]:
    return {reason["message"] for reason in claim["rejected"] if reason["code"] == "plan-over-limits"}


def test_the_limit_holds_four_nodes_and_the_fifth_pod_says_so(command: Command) -> None:
    result = command("plan", "examples/five-pods", "-o", "json")
    assert result.code == 1
    assert [claim["pods"] for claim in result.data["newNodeClaims"]] == [[f"default/gpu-job-{n}"] for n in range(1, 5)]
    assert [item["pod"] for item in result.data["unplaced"]] == ["default/gpu-job-5"]
    assert "all available instance types exceed limits for nodepool" in unplaced(result.data)


def test_ignoring_claims_builds_nothing_and_says_what_the_controller_logs(command: Command) -> None:
    result = command("plan", "examples/one-gpu", "--ignore-dra-requests")
    assert result.code == 1
    assert "0 new nodes" in result.out
    assert "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter" in result.out
    log = "skipping pod with Dynamic Resource Allocation requirements, not yet supported by Karpenter"
    assert log in result.err


def test_a_full_selector_matches_and_one_with_too_much_memory_shows_clause_and_value(command: Command) -> None:
    assert command("plan", "examples/ada-gpu", "-o", "json").data["newNodeClaims"][0]["plans"][0] == A1_S
    result = command("plan", "examples/ada-gpu-24gi", "-o", "json")
    assert result.code == 1
    text = unplaced(result.data)
    assert "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('24Gi')) >= 0" in text
    assert "20475Mi" in text


def test_an_unguarded_selector_rules_out_the_plan_without_the_key_and_no_other(command: Command) -> None:
    result = command("plan", "examples/unguarded-selector", "--plans", UNKNOWN_GPU, "--explain", "-o", "json")
    assert result.code == 0
    (claim,) = result.data["newNodeClaims"]
    assert claim["plans"] == [A1_S, "g2-gpu-rtx4000a2-s"], "the cheaper plan of unknown model is not among them"
    reasons = {reason["subject"]: "\n".join(messages(reason)) for reason in claim["rejected"]}
    assert "no such key: productName" in reasons["plan g9-gpu-example-1"]


def test_two_pods_share_one_claim_and_one_node(command: Command) -> None:
    (claim,) = command("plan", "examples/shared-claim", "-o", "json").data["newNodeClaims"]
    assert claim["pods"] == ["default/reader", "default/writer"]
    assert claim["resourceClaims"] == ["default/shared"]


def test_the_taint_that_is_not_tolerated_is_named(command: Command) -> None:
    result = command("plan", "examples/no-toleration", "-o", "json")
    assert result.code == 1
    assert "nvidia.com/gpu=true:NoSchedule" in unplaced(result.data)


@pytest.mark.parametrize(
    ("name", "place", "message"),
    [
        (
            "bad-selector",
            "workload.yaml:16:29: document 1, ResourceClaim default/broken, spec.devices",
            "compilation failed: 1:49: ",
        ),
        (
            "unknown-class",
            "workload.yaml:11:28: document 1, ResourceClaim default/broken, spec.devices",
            "is 'gpu.nvidia.com'",
        ),
        ("malformed", "workload.yaml:8:1: malformed YAML", "while scanning a quoted scalar that starts at 5:9"),
    ],
)
def test_bad_input_is_located_and_ends_with_two(command: Command, name: str, place: str, message: str) -> None:
    result = command("plan", f"examples/broken/{name}")
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith(f"error: examples/broken/{name}/{place}")
    assert message in result.err
    assert "Traceback" not in result.err


def test_the_note_says_that_claims_count_here(command: Command) -> None:
    assert "the controller itself ignores them by default" in command("plan", "examples/one-gpu").err


def test_the_same_input_gives_the_same_bytes(command: Command) -> None:
    first, second = (command("plan", "examples/five-pods", "--explain", "-o", "json").out for _ in range(2))
    assert first == second


def test_a_dumped_problem_is_solved_to_the_same_answer(command: Command, tmp_path: Path) -> None:
    dump = str(tmp_path / "problem.json")
    direct = command("plan", "examples/five-pods", "--explain", "-o", "json", "--dump-problem", dump).data
    again = command("plan", "--snapshot", dump, "--explain", "-o", "json")
    assert again.code == 1
    assert {**again.data, "assumptions": direct["assumptions"]} == direct


def test_yaml_output_holds_the_same_as_json(command: Command) -> None:
    import yaml  # noqa: PLC0415 - for this test alone

    assert (
        yaml.safe_load(command("plan", "examples/one-gpu", "-o", "yaml").out)
        == command("plan", "examples/one-gpu", "-o", "json").data
    )


def test_a_region_without_the_plan_gives_no_node(command: Command) -> None:
    result = command("plan", "examples/one-gpu", "--region", "us-east", "-o", "json")
    assert result.code == 1
    assert result.data["newNodeClaims"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give PATHs of manifests, or --snapshot FILE"),
        (("examples/one-gpu", "--snapshot", "x"), "give PATHs of manifests, or --snapshot FILE"),
        (("--snapshot", "x", "--region", "us-ord"), "a snapshot has its own region"),
        (("examples/one-gpu", "--region", "mars"), "no region 'mars'"),
        (("examples/one-gpu", "-o", "xml"), "'xml' is not one of"),
        (("examples/one-gpu", "--colour"), "--colour"),
        (("missing.yaml",), "missing.yaml: no such file or directory"),
        (("--snapshot", "missing.json"), "missing.json: cannot be read"),
        (("--snapshot", "examples/README.md"), "no problem written by --dump-problem"),
        (("examples/one-gpu", "--plans", "examples/README.md"), "expected a JSON list of Linode types"),
        (("examples/one-gpu", "--dump-problem", "/no/such/folder/x"), "cannot be written"),
    ],
)
def test_bad_usage_ends_with_two(command: Command, arguments: tuple[str, ...], message: str) -> None:
    result = command("plan", *arguments)
    assert result.code == 2
    assert message in result.err


def test_warnings_and_ignored_kinds_are_told(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeselector: {}, containers: [{name: c}]}\n"
    )
    result = command("plan", str(tmp_path))
    assert result.code == 1
    assert "is 'nodeSelector' meant?" in result.err
    assert "without a say here, ignored: v1 Service" in result.err


MANY_SIZES = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.linode, kind: LinodeNodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g6-dedicated-2%s]}]
  limits: {cpu: 4}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: c, image: x}]
"""


@pytest.mark.parametrize(
    ("more_plans", "replicas", "code", "noted"),
    [(", g6-dedicated-4", 2, 1, True), ("", 2, 0, False), ("", 3, 1, False), (", g6-dedicated-4", 1, 0, False)],
)
def test_limits_that_may_leave_more_once_nodes_are_launched(
    command: Command, tmp_path: Path, more_plans: str, replicas: int, *, code: int, noted: bool
) -> None:
    (tmp_path / "a.yaml").write_text(MANY_SIZES % (more_plans, replicas))
    result = command("plan", str(tmp_path))
    assert (result.code, "the controller tries again then and may place more" in result.err) == (code, noted)


def test_no_pods_is_no_failure(command: Command) -> None:
    result = command("plan", "examples/one-gpu/nodepool.yaml")
    assert (result.code, result.out) == (0, "no pods to place\n")


def test_pods_that_chose_not_to_run_on_karpenter_nodes_are_no_failure(command: Command, tmp_path: Path) -> None:
    expression = {"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "system"},
        "spec": {"affinity": affinity, "containers": [{"name": "c"}]},
    }
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    result = command("plan", str(tmp_path), "examples/one-gpu/nodepool.yaml")
    assert result.code == 0
    assert "configured to not run on a Karpenter provisioned node" in result.out


def test_an_invalid_pod_is_told_with_its_reason(command: Command, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        "spec: {nodeSelector: {karpenter.sh/unknown: x}, containers: [{name: c}]}\n"
    )
    result = command("plan", str(tmp_path), "examples/one-gpu/nodepool.yaml")
    assert result.code == 1
    assert "using label karpenter.sh/unknown is not allowed" in result.out


def test_an_input_without_pods_says_that_nothing_was_checked(command: Command) -> None:
    result = command("plan", "examples/one-gpu/nodepool.yaml")
    assert result.code == 0
    assert "the input holds no pod that waits for a node: nothing was checked" in result.err


def test_ignored_claims_point_to_the_setting(command: Command) -> None:
    result = command("plan", "examples/one-gpu", "--ignore-dra-requests")
    assert result.code == 1
    assert "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter" in result.out
    assert "IGNORE_DRA_REQUESTS=false" in result.err


def test_help_and_guide_list_every_kind_that_matters_in_a_cluster(command: Command) -> None:
    wanted = {type_of(kind).plural for kind in (*CORE_KINDS, *DRA_KINDS, ResourceClaimTemplate)} | {"priorityclasses"}
    for text in (command("plan", "--help").out, Path("docs/user-guide.md").read_text(encoding="utf-8")):
        assert {word for word in wanted if word not in text} == set()


def test_a_misspelt_attribute_is_answered_with_the_right_one(command: Command, tmp_path: Path) -> None:
    workload = Path("examples/unguarded-selector/workload.yaml").read_text(encoding="utf-8")
    assert "productName" in workload
    (tmp_path / "workload.yaml").write_text(workload.replace("productName", "productname"), encoding="utf-8")
    result = command("plan", "examples/unguarded-selector/cluster.yaml", str(tmp_path))
    assert result.code == 1
    assert "CEL runtime error: no such key: productname" in result.out
    assert "hint: is productName meant? names are case-sensitive" in result.out
