"""References between objects, checked before anything is solved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from karpenter_linode.cli.manifests import load
from karpenter_linode.cli.references import reference_errors, reference_warnings

if TYPE_CHECKING:
    from pathlib import Path

CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared, namespace: jobs}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: jobs}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""


def pod(claim: str, extra: str = "") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: p, namespace: jobs}}
spec:
  resourceClaims: [{{name: gpu, {claim}}}]
  containers: [{{name: c}}]
{extra}"""


def findings(tmp_path: Path, *texts: str) -> list[str]:
    (tmp_path / "in.yaml").write_text("---".join(texts))
    return [f"{item.field}: {item.message}" for item in reference_errors(load([str(tmp_path)]))]


def test_references_that_resolve(tmp_path: Path) -> None:
    assert findings(tmp_path, CLASS, CLAIM, TEMPLATE, pod("resourceClaimName: shared")) == []
    assert findings(tmp_path, CLASS, CLAIM, TEMPLATE, pod("resourceClaimTemplateName: one-gpu")) == []


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (
            "resourceClaimName: sharde",
            "found 'sharde', but namespace jobs has no ResourceClaim of that name; is 'shared' meant?",
        ),
        (
            "resourceClaimTemplateName: two",
            "found 'two', but namespace jobs has no ResourceClaimTemplate of that name; there are: one-gpu",
        ),
    ],
)
def test_a_missing_claim_or_template(tmp_path: Path, claim: str, message: str) -> None:
    (found,) = findings(tmp_path, CLASS, CLAIM, TEMPLATE, pod(claim))
    assert found == f"spec.resourceClaims[0].{claim.partition(':')[0]}: {message}"


def test_a_claim_of_another_namespace_does_not_count_and_is_pointed_out(tmp_path: Path) -> None:
    elsewhere = CLAIM.replace("namespace: jobs", "namespace: other")
    (found,) = findings(tmp_path, CLASS, elsewhere, pod("resourceClaimName: shared"))
    assert found.endswith("there is one in another namespace: other/shared")


def test_a_claim_that_is_made_already_needs_no_template(tmp_path: Path) -> None:
    made = "status: {resourceClaimStatuses: [{name: gpu, resourceClaimName: shared}]}\n"
    assert findings(tmp_path, CLASS, CLAIM, pod("resourceClaimTemplateName: gone", made)) == []


def test_an_unknown_class_without_any_class(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, CLAIM)
    assert found == (
        "spec.devices.requests[0].exactly.deviceClassName: "
        "found 'gpu.nvidia.com', but there is no DeviceClass of that name; there are none in the input"
    )


def test_alternatives_are_checked_too(tmp_path: Path) -> None:
    exactly = "exactly: {deviceClassName: gpu.nvidia.com}"
    either = "firstAvailable: [{name: a, deviceClassName: gpu.nvidia.com}, {name: b, deviceClassName: nope}]"
    (found,) = findings(tmp_path, CLASS, CLAIM.replace(exactly, either))
    assert found.startswith("spec.devices.requests[0].firstAvailable[1].deviceClassName: found 'nope'")


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("device.driver == 'a' &&", "Syntax error"),
        ("device.driver", "bool"),
        ("device.nothing == 1", "nothing"),
        ("thing.driver == 'a'", "thing"),
    ],
)
def test_a_selector_that_does_not_compile(tmp_path: Path, expression: str, part: str) -> None:
    selectors = f'spec: {{selectors: [{{cel: {{expression: "{expression}"}}}}]}}\n'
    (found,) = findings(tmp_path, CLASS.rstrip() + "\n" + selectors)
    assert found.startswith("spec.selectors[0].cel.expression: compilation failed: 1:")
    assert part in found


def test_a_selector_beyond_the_cost_limit(tmp_path: Path) -> None:
    heavy = " && ".join(
        ["device.attributes.all(d, device.attributes.all(e, device.attributes.all(f, d == e || e == f)))"] * 9
    )
    (found,) = findings(tmp_path, CLASS.rstrip() + f'\nspec: {{selectors: [{{cel: {{expression: "{heavy}"}}}}]}}\n')
    assert found.startswith("spec.selectors[0].cel.expression: too complex, exceeds cost limit: its cost may be ")


def test_a_node_pool_that_could_never_be_ready(tmp_path: Path) -> None:
    pool = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    metadata: {labels: {"karpenter.k8s.linode/mine": x}}
    spec:
      nodeClassRef: {group: karpenter.k8s.linode, kind: LinodeNodeClass, name: default}
      requirements: []
"""
    (found,) = findings(tmp_path, pool)
    assert found.startswith('spec.template: invalid key name "karpenter.k8s.linode/mine" in labels')


MADE = "status: {phase: %s, resourceClaimStatuses: [{name: gpu, resourceClaimName: p-gpu-abcde}]}"


def test_a_claim_that_was_made_already_needs_the_claim_or_its_template(tmp_path: Path) -> None:
    by_template = "resourceClaimTemplateName: one-gpu"
    (message,) = findings(tmp_path, CLASS, pod(by_template, MADE % "Pending"))
    assert message.startswith("status.resourceClaimStatuses: ResourceClaim jobs/p-gpu-abcde, which the pod names")
    assert "put in the cluster's resourceclaims" in message
    assert findings(tmp_path, CLASS, TEMPLATE, pod(by_template, MADE % "Pending")) == []


def test_claims_and_templates_of_finished_pods_may_be_gone(tmp_path: Path) -> None:
    assert findings(tmp_path, CLASS, pod("resourceClaimTemplateName: one-gpu", MADE % "Succeeded")) == []
    assert findings(tmp_path, CLASS, pod("resourceClaimName: gone", "status: {phase: Failed}")) == []


NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.linode, kind: LinodeNodeClass, name: default}
      requirements: []
"""
NODE_CLASS = """
apiVersion: karpenter.k8s.linode/v1alpha1
kind: LinodeNodeClass
metadata: {name: %s}
spec: {}
"""


@pytest.mark.parametrize(
    ("texts", "messages"),
    [
        (
            (NODE_POOL, NODE_CLASS % "defalt"),
            ["found 'default', but there is no LinodeNodeClass of that name; is 'defalt' meant?"],
        ),
        ((NODE_POOL, NODE_CLASS % "default"), []),
        ((NODE_POOL,), []),
        ((NODE_POOL.replace("karpenter.k8s.linode", "karpenter.k8s.aws"), NODE_CLASS % "other"), []),
    ],
)
def test_a_node_class_among_others_that_is_not_there(
    tmp_path: Path, texts: tuple[str, ...], messages: list[str]
) -> None:
    (tmp_path / "in.yaml").write_text("---".join(texts))
    assert [found.message for found in reference_warnings(load([str(tmp_path)]))] == messages


@pytest.mark.parametrize(
    ("key", "messages"),
    [
        (
            "node.kubernetes.io/instance-typ",
            ["node.kubernetes.io/instance-typ is no label of plans; is node.kubernetes.io/instance-type meant?"],
        ),
        ("kubernetes.io/arc", ["kubernetes.io/arc is no label of plans; is kubernetes.io/arch meant?"]),
        ("kubernetes.io/arch", []),
        ("beta.kubernetes.io/instance-type", []),
        ("node.kubernetes.io/instance-family", []),
        ("topology.kubernetes.io/rack", []),
        ("example.com/team", []),
    ],
)
def test_a_requirement_on_what_is_nearly_a_label_of_plans(tmp_path: Path, key: str, messages: list[str]) -> None:
    requirement = f"[{{key: {key}, operator: In, values: [a]}}]"
    (tmp_path / "in.yaml").write_text(NODE_POOL.replace("requirements: []", f"requirements: {requirement}"))
    assert [found.message for found in reference_warnings(load([str(tmp_path)]))] == messages
