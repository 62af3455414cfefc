"""Files to objects, and what is said about those that are wrong."""

from __future__ import annotations

import io
import json
import textwrap
from typing import TYPE_CHECKING

import pytest

from karpenter_linode.cli.errors import InputError
from karpenter_linode.cli.manifests import Manifests, load
from karpenter_linode.model.core import DaemonSet, Pod
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.model.resource import ResourceClaimTemplate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Read = Callable[..., Manifests]
    Errors = Callable[..., list[str]]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: app
      resources:
        limits: {cpu: 500m, memory: 1Gi}
        requests: {cpu: 250m}
"""
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.linode, kind: LinodeNodeClass, name: default}
      requirements: []
"""


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_text(text: str, name: str = "in.yaml") -> Manifests:
        file = tmp_path / name
        file.write_text(textwrap.dedent(text))
        return load([str(file)])

    return read_text


@pytest.fixture
def errors(read: Read, tmp_path: Path) -> Errors:
    def errors_of(text: str, name: str = "in.yaml") -> list[str]:
        with pytest.raises(InputError) as caught:
            read(text, name)
        assert caught.value.exit_code == 2
        return [str(finding).replace(f"{tmp_path}/", "") for finding in caught.value.findings]

    return errors_of


def test_a_pod_gets_the_api_servers_defaults(read: Read) -> None:
    ((pod, loaded),) = read(POD).of(Pod)
    assert pod.key == "default/web"
    assert loaded.subject == "Pod default/web"
    requests = pod.spec.containers[0].resources.requests
    assert {name: str(amount) for name, amount in requests.items()} == {"cpu": "250m", "memory": "1Gi"}
    assert pod.spec.restart_policy == "Always"
    assert [item.key for item in pod.spec.tolerations] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_a_node_pool_gets_defaults(read: Read) -> None:
    ((pool, _),) = read(POOL).of(NodePool)
    assert pool.spec.template.spec.expire_after == "720h"
    assert pool.spec.disruption.consolidate_after == "0s"
    assert pool.namespace == ""


def test_a_claim_request_asks_for_one_device_by_default(read: Read) -> None:
    text = """
    apiVersion: resource.k8s.io/v1
    kind: ResourceClaimTemplate
    metadata: {name: t}
    spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
    """
    ((template, _),) = read(text).of(ResourceClaimTemplate)
    exactly = template.spec.spec.devices.requests[0].exactly
    assert (exactly.allocation_mode, exactly.count) == ("ExactCount", 1)


def test_several_documents_and_a_list(read: Read) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [_pod("a"), _pod("b")]}
    found = read(POD + "---\n" + json.dumps(listed))
    assert [pod.name for pod, _ in found.of(Pod)] == ["web", "a", "b"]


def test_a_typed_list_names_the_kind_of_its_members(read: Read) -> None:
    bare = {key: value for key, value in _pod("a").items() if key not in {"apiVersion", "kind"}}
    found = read(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [bare]}), "in.json")
    assert [pod.key for pod, _ in found.of(Pod)] == ["default/a"]


def test_a_directory_stands_for_the_manifests_in_it(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(POD)
    (tmp_path / "a.json").write_text(json.dumps(_pod("first")))
    (tmp_path / "notes.txt").write_text("not: [yaml")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.yaml").write_text("not: [yaml")
    assert [pod.name for pod, _ in load([str(tmp_path)]).of(Pod)] == ["first", "web"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))
    assert [pod.name for pod, _ in load(["-"]).of(Pod)] == ["web"]


def test_json_in_a_yaml_file_and_flow_style(read: Read) -> None:
    assert len(read(json.dumps(_pod("a"))).objects) == 1
    assert len(read("{apiVersion: v1, kind: Namespace, metadata: {name: x}}").objects) == 1


def test_a_deployment_becomes_its_pods(read: Read) -> None:
    text = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: shop}
    spec:
      replicas: 3
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: a, resources: {limits: {cpu: 1}}}]}
    """
    pods = [pod for pod, _ in read(text).of(Pod)]
    assert [pod.key for pod in pods] == ["shop/web-0", "shop/web-1", "shop/web-2"]
    assert pods[0].metadata.labels == {"app": "web"}
    assert str(pods[0].spec.containers[0].resources.requests["cpu"]) == "1"
    assert pods[0].metadata.owner_references[0].kind == "ReplicaSet"


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({}, 1),
        ({"parallelism": 4}, 4),
        ({"parallelism": 4, "completions": 2}, 2),
        ({"suspend": True}, 0),
        ({"parallelism": 0}, 0),
    ],
)
def test_a_job_runs_as_many_pods_as_it_starts_with(read: Read, spec: dict, count: int) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {**spec, "template": template}}
    assert len(read(json.dumps(job), "j.json").objects) == count


@pytest.mark.parametrize(("suspend", "count"), [(False, 2), (True, 0)])
def test_a_cron_job_runs_the_pods_of_one_job(read: Read, suspend: bool, count: int) -> None:
    job = {"parallelism": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a"}]}}}
    spec = {"schedule": "@daily", "suspend": suspend, "jobTemplate": {"spec": job}}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}
    found = read(json.dumps(cron), "c.json")
    assert len(list(found.of(Pod))) == count
    assert not found.ignored


def test_errors_in_a_cron_job_name_the_field_of_its_job(errors: Errors) -> None:
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate": {}}}
    (error,) = errors(json.dumps(cron), "c.json")
    assert "spec.jobTemplate.spec.template: a mapping with the pod's template is missing" in error


def test_a_file_given_twice_is_read_once_and_said(read: Read, tmp_path: Path) -> None:
    read(POD)
    found = load([str(tmp_path / "in.yaml"), str(tmp_path)])
    assert len(found.objects) == 1
    assert [finding.message for finding in found.warnings] == ["given twice; it is read once"]


def test_a_directory_of_directories_says_what_could_be_meant(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="sub-directories are not read, name the one that is meant: a, b"):
        load([str(tmp_path)])


def test_warnings_are_told_before_the_errors_they_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: a}\n---\nkind: Pod\n"
    (tmp_path / "in.yaml").write_text(old)
    with pytest.raises(InputError) as caught:
        load([str(tmp_path)])
    caught.value.show()
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("warning: ")
    assert "v1beta1 is not read" in first
    assert second.startswith("error: ")


def test_daemon_sets_are_kept_as_they_are(read: Read) -> None:
    text = """
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: d}
    spec: {template: {spec: {containers: [{name: a}]}}}
    """
    assert len(list(read(text).of(DaemonSet))) == 1


def test_priority_classes_give_pods_their_priority_wherever_they_stand(read: Read) -> None:
    text = POD.replace("spec:\n", "spec:\n  priorityClassName: high\n") + (
        "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n"
    )
    ((pod, _),) = read(text).of(Pod)
    assert pod.spec.priority == 1000


def test_kinds_without_a_say_are_counted(read: Read) -> None:
    found = read(
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n"
    )
    assert found.ignored == {"v1 Service": 2}
    assert found.warnings == []


def test_an_older_version_of_a_kind_that_matters_is_warned_about(read: Read) -> None:
    found = read("apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: a}\n")
    assert [finding.message for finding in found.warnings] == [
        "apiVersion resource.k8s.io/v1beta1 is not read, the ResourceClaim is ignored: write resource.k8s.io/v1"
    ]


@pytest.mark.parametrize(
    ("api_version", "kind", "meant"),
    [
        ("karpenter.sh/v1", "Nodepool", "NodePool"),
        ("v1", "Pods", "Pod"),
        ("apps/v1", "Deploymnet", "Deployment"),
        ("resource.k8s.io/v1", "ResourceClaimTemplates", "ResourceClaimTemplate"),
    ],
)
def test_a_misspelt_kind_is_warned_about(read: Read, api_version: str, kind: str, meant: str) -> None:
    found = read(f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n")
    assert [(finding.place.line, finding.message) for finding in found.warnings] == [
        (2, f"there is no kind '{kind}' in {api_version}, the object is ignored; is '{meant}' meant?")
    ]


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("karpenter.sh/v1", "NodeOverlay"), ("v1", "PodTemplate"), ("v1", "Secret"), ("storage.k8s.io/v1", "CSIDriver")],
)
def test_another_kind_is_no_misspelling(read: Read, api_version: str, kind: str) -> None:
    assert read(f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n").warnings == []


def test_a_generated_name_gets_a_number(read: Read) -> None:
    text = POD.replace("{name: web}", "{generateName: job-}")
    found = read(text + "---" + text)
    assert [pod.name for pod, _ in found.of(Pod)] == ["job-1", "job-2"]


def test_a_wrong_type_names_file_document_object_field_found_and_expected(errors: Errors) -> None:
    text = POOL + "  weight: heavy\n"
    assert errors(POD + "---" + text) == [
        "in.yaml:20:11: document 2, NodePool gpu, spec.weight: found the text 'heavy', expected a whole number"
    ]


def test_unquoted_booleans_and_numbers_are_pointed_out(errors: Errors) -> None:
    (message,) = errors(POD.replace("{name: web}", "{name: web, labels: {a: x, debug: yes}}"))
    assert "metadata.labels.debug: found true, expected text; put it in quotes to make it text" in message


def test_a_bad_quantity_is_found_within_its_mapping(errors: Errors) -> None:
    (message,) = errors(POOL + "  limits: {cpu: 16, memory: 1x}\n")
    assert message.startswith("in.yaml:10:29: document 1, NodePool gpu, spec.limits.memory: '1x' is not a quantity")


def test_a_key_with_slashes_and_dots_is_quoted(errors: Errors) -> None:
    (message,) = errors(POD.replace("{name: web}", "{name: web, annotations: {a.b/c: [1]}}"))
    assert "metadata.annotations['a.b/c']: found a list, expected text" in message


def test_the_api_servers_rules_are_applied_with_positions(errors: Errors) -> None:
    text = """
    apiVersion: resource.k8s.io/v1
    kind: ResourceClaim
    metadata: {name: c}
    spec:
      devices:
        requests:
          - name: gpu
            exactly: {deviceClassName: x, count: -1}
          - name: gpu
    """
    claim = "document 1, ResourceClaim default/c"
    one_of = "exactly one of `exactly` or `firstAvailable` is required"
    assert errors(text) == [
        f"in.yaml:9:46: {claim}, spec.devices.requests[0].exactly.count: invalid value: -1: must be greater than zero",
        f"in.yaml:10:9: {claim}, spec.devices.requests[1]: invalid value: {one_of}",
        f'in.yaml:10:15: {claim}, spec.devices.requests[1].name: duplicate value: "gpu"',
    ]


def test_an_unknown_operator_of_a_node_pool(errors: Errors) -> None:
    text = POOL.replace("requirements: []", "requirements: [{key: kubernetes.io/arch, operator: Is, values: [amd64]}]")
    (message,) = errors(text)
    assert "spec.template.spec.requirements[0].operator: unsupported value" in message


def test_all_findings_come_at_once(errors: Errors) -> None:
    assert len(errors(POOL + "  weight: heavy\n---" + POD.replace("500m", "5 m") + "---\n- 1\n")) == 3


def test_duplicates_are_refused(errors: Errors) -> None:
    assert errors(POD + "---" + POD) == [
        "in.yaml:12:1: document 2, Pod default/web: defined twice, first at in.yaml:2:1; keep one of them"
    ]


def test_the_same_name_in_two_namespaces_is_fine(read: Read) -> None:
    other = POD.replace("{name: web}", "{name: web, namespace: b}")
    assert [pod.key for pod, _ in read(POD + "---" + other).of(Pod)] == ["default/web", "b/web"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Pod\n", "in.yaml:1:1: document 1: apiVersion missing: every object names its apiVersion and kind"),
        ("a: 1\n", "in.yaml:1:1: document 1: apiVersion and kind missing: every object names its apiVersion and kind"),
        (
            "just text\n",
            "in.yaml:1:1: document 1: found the text 'just text', expected an object with apiVersion and kind",
        ),
        ("[1]", "in.yaml:1:1: document 1: found a list, expected an object with apiVersion and kind"),
        (
            "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a}]}\n",
            "in.yaml:1:1: document 1, Pod, metadata.name: missing: every object has a name",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: A_b}\nspec: {containers: [{name: a}]}\n",
            "in.yaml:3:18: document 1, Pod, metadata.name: found 'A_b', expected lower-case letters",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
            "in.yaml:1:1: document 1, Pod default/a, spec.containers: required value",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: many, template: {}}\n",
            "in.yaml:4:18: document 1, Deployment a, spec.replicas: found 'many', expected a whole number",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: []\n",
            "in.yaml:4:7: document 1, Deployment a, spec.template: a mapping with the pod's template is missing",
        ),
    ],
)
def test_what_is_said(errors: Errors, text: str, message: str) -> None:
    (found,) = errors(text)
    assert found.startswith(message)


def test_names_that_steer_a_terminal_are_refused_and_not_echoed_raw(errors: Errors) -> None:
    text = 'apiVersion: v1\nkind: Pod\nmetadata: {name: "a\\e[31m"}\nspec: {containers: [{name: a}]}\n'
    (message,) = errors(text)
    assert "\x1b" not in message


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('{"a": 1,}', "in.json:1:9"),
        ('{\n "a": [1, 2\n}', "in.json:3:1"),
        ("", "in.json:1:1"),
        ('{"a": 1} x', "in.json:1:11"),
    ],
)
def test_malformed_json_has_a_position(errors: Errors, text: str, position: str) -> None:
    (message,) = errors(text, "in.json")
    assert message.startswith(f"{position}: malformed JSON: ")


def test_json_nested_too_deep_is_refused(errors: Errors) -> None:
    (message,) = errors("[" * 200_000, "in.json")
    assert "malformed JSON" in message


def test_an_error_in_json_has_a_position_too(errors: Errors) -> None:
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},\n "spec": {"containers": 5}}'
    assert errors(text, "in.json") == [
        "in.json:2:25: document 1, Pod a, spec.containers: found the number 5, expected a list"
    ]


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(InputError, match=r"x\.yaml:2:4: not UTF-8 text: byte 0xff"):
        load([str(tmp_path / "x.yaml")])


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or directory"):
        load([str(tmp_path / "missing.yaml")])
    with pytest.raises(InputError, match="no manifests in this directory"):
        load([str(tmp_path)])


def test_likely_typos_are_warned_about_with_the_position_of_the_key(read: Read) -> None:
    text = POD.replace("spec:\n", "spec:\n  nodeselector: {a: b}\n  tolerationz: []\n  hostNetwork: true\n")
    assert [(f.place.line, f.place.column, f.field, f.message) for f in read(text).warnings] == [
        (6, 3, "spec.nodeselector", "unknown field 'nodeselector' is ignored; is 'nodeSelector' meant?"),
        (7, 3, "spec.tolerationz", "unknown field 'tolerationz' is ignored; is 'tolerations' meant?"),
    ]


def test_every_unknown_field_of_our_own_kinds_is_warned_about(read: Read) -> None:
    (warning,) = read(POOL + "  colour: red\n").warnings
    assert warning.field == "spec.colour"
    assert "known here: disruption, limits, replicas, template, weight" in warning.message


def test_a_typo_in_a_deployment_is_told_once(read: Read) -> None:
    text = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {replicas: 5, template: {spec: {nodeselector: {}, containers: [{name: a}]}}}
    """
    assert len(read(text).warnings) == 1


def _pod(name: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "app"}]},
    }
