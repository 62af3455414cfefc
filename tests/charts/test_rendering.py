"""What the charts render to, with Helm 3 and with Helm 4."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from rendering import CHARTS, TOKEN, Helm, HelmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from syrupy.assertion import SnapshotAssertion

pytestmark = pytest.mark.charts

EVERY_VALUE = Path(__file__).with_name("every-value.yaml")


VARIANTS = {"token-alone": TOKEN, "every-value": ("--values", str(EVERY_VALUE))}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_chart_renders_to(newest_helm: Helm, snapshot: SnapshotAssertion, variant: str) -> None:
    assert newest_helm.text(*VARIANTS[variant]) == snapshot


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_releases_of_helm_render_the_same(newest_helm: Helm, oldest_helm: Helm, variant: str) -> None:
    assert newest_helm.text(*VARIANTS[variant]) == oldest_helm.text(*VARIANTS[variant])


def test_every_value_is_changed_in_that_file() -> None:
    def leaves(value: Any, path: str) -> dict[str, Any]:
        if isinstance(value, dict) and value:
            return {name: leaf for key, item in value.items() for name, leaf in leaves(item, f"{path}.{key}").items()}
        return {path: value}

    defaults = leaves(yaml.safe_load((CHARTS / "karpenter" / "values.yaml").read_text()), "")
    changed = leaves(yaml.safe_load(EVERY_VALUE.read_text()), "")
    only_one = {".serviceAccount.create", ".settings.mode"}
    exclusive = {".credentialsSecretRef", ".fullnameOverride"}  # tested alone: each turns others off
    for path, default in defaults.items():
        if path not in exclusive and not path.startswith((".affinity", ".strategy", ".nodeSelector")):
            below = {name: value for name, value in changed.items() if name == path or name.startswith(f"{path}.")}
            assert below, f"{path} is not in the file"
            assert below != {path: default} or path in only_one, f"{path} has its default"


@pytest.mark.parametrize("chart", ["karpenter", "karpenter-crd"])
def test_lint_finds_nothing(helm: Helm, chart: str) -> None:
    said = helm.run("lint", "--strict", str(CHARTS / chart), *(TOKEN if chart == "karpenter" else ()))
    assert "[WARNING]" not in said
    assert "[ERROR]" not in said


def test_the_crds_go_through_as_they_are(helm: Helm) -> None:
    rendered = helm.render(chart="karpenter-crd")
    files = [yaml.safe_load(path.read_text()) for path in (CHARTS / "karpenter-crd" / "templates").iterdir()]
    assert rendered == {(item["kind"], item["metadata"]["name"]): item for item in files}


def test_values_that_the_crd_chart_of_the_go_provider_had_do_no_harm(helm: Helm) -> None:
    assert helm.render("--set", "webhook.enabled=true,webhook.port=8443", chart="karpenter-crd")


def test_without_a_token_nothing_is_rendered(helm: Helm) -> None:
    with pytest.raises(HelmError, match="The API token needs to be set"):
        helm.text()


def test_a_secret_of_ones_own_takes_the_place_of_the_token(newest_helm: Helm) -> None:
    objects = newest_helm.render("--set", "credentialsSecretRef=mine")
    assert not [kind for kind, _ in objects if kind == "Secret"]
    pod = objects["Deployment", "karpenter"]["spec"]["template"]
    assert pod["spec"]["containers"][0]["envFrom"] == [{"secretRef": {"name": "mine"}}]
    assert "annotations" not in pod["metadata"]


def test_another_token_gives_new_pods(newest_helm: Helm) -> None:
    def pod_template(token: str) -> Any:
        return newest_helm.render("--set", f"apiToken={token}")["Deployment", "karpenter"]["spec"]["template"]

    first, same, other = pod_template("one"), pod_template("one"), pod_template("two")
    assert first == same
    assert first != other
    assert "one" not in str(first)


def test_the_selector_of_the_deployment_is_that_of_the_go_provider(newest_helm: Helm) -> None:
    objects = newest_helm.render(*TOKEN)
    labels = {"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"}
    assert objects["Deployment", "karpenter"]["spec"]["selector"] == {"matchLabels": labels}
    assert objects["Service", "karpenter"]["spec"]["selector"] == labels
    assert objects["PodDisruptionBudget", "karpenter"]["spec"]["selector"] == {"matchLabels": labels}


def test_names_follow_the_release_or_the_override(newest_helm: Helm) -> None:
    assert ("Deployment", "scaler") in newest_helm.render(*TOKEN, "--set", "fullnameOverride=scaler")
    long = newest_helm.render(*TOKEN, "--set", f"fullnameOverride={'a' * 70}")
    assert ("Deployment", "a" * 63) in long


def test_pods_run_without_privileges(newest_helm: Helm) -> None:
    (container,) = newest_helm.render(*TOKEN)["Deployment", "karpenter"]["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"] == {
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.fixture
def notes(newest_helm: Helm) -> Callable[..., str]:
    """What is said after an installation; Helm 3 would look for a cluster."""

    def install(*arguments: str) -> str:
        chart = str(CHARTS / "karpenter")
        return newest_helm.run("install", "karpenter", chart, "--dry-run=client", *TOKEN, *arguments)

    return install


def test_the_notes_warn_of_what_is_missing(notes: Callable[..., str]) -> None:
    bare = notes()
    assert "settings.clusterName is not set" in bare
    assert "controller.image.repository is not set" in bare
    complete = notes("--set", "settings.clusterName=lab,controller.image.repository=registry.example.com/image")
    assert "WARNING" not in complete


def test_the_notes_tell_of_dra_and_of_the_webhook_that_is_not_there(notes: Callable[..., str]) -> None:
    said = "Pods with ResourceClaims get nodes", "there is no webhook"
    for text, switch in zip(said, ("settings.dra.enabled", "webhook.enabled"), strict=True):
        assert text in notes("--set", f"{switch}=true")
        assert text not in notes("--set", f"{switch}=false")
