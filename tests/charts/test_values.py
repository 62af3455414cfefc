"""The values: what each does, and which are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from rendering import CHARTS, TOKEN, Helm, HelmError

from karpenter_linode.operator.flag_table import FLAGS
from karpenter_linode.operator.flags import read_settings

pytestmark = pytest.mark.charts

EVERY_VALUE = Path(__file__).with_name("every-value.yaml")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "chart-values.md"
DRA = "IGNORE_DRA_REQUESTS"
CONFLICT = f"{DRA} must not be set in controller.env when settings.dra.enabled is true"


def dra_entries(environment: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in environment if entry["name"] == DRA]


def test_dra_on_is_one_variable_with_the_text_false(helm: Helm) -> None:
    environment = helm.environment("--set", "settings.dra.enabled=true", "--set", "controller.env[0].name=MINE")
    assert dra_entries(environment) == [{"name": DRA, "value": "false"}]
    assert [entry["name"] for entry in environment][-2:] == [DRA, "MINE"]


@pytest.mark.parametrize(
    "off",
    ["settings.dra.enabled=false", "settings.dra=null", "settings.dra.enabled=null", "replicas=1"],
)
def test_dra_off_or_missing_is_no_variable(helm: Helm, off: str) -> None:
    assert dra_entries(helm.environment("--set", off)) == []


def test_dra_on_and_the_variable_by_hand_is_refused(helm: Helm) -> None:
    by_hand = ("--set", f"controller.env[0].name=OTHER,controller.env[1].name={DRA}")
    with pytest.raises(HelmError, match=CONFLICT):
        helm.environment("--set", "settings.dra.enabled=true", *by_hand)


def test_dra_off_and_the_variable_by_hand_is_allowed(helm: Helm) -> None:
    by_hand = ("--set", f"controller.env[0].name={DRA}", "--set-string", "controller.env[0].value=false")
    assert dra_entries(helm.environment(*by_hand)) == [{"name": DRA, "value": "false"}]


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_dra_rules_are_there_whether_it_is_on_or_not(helm: Helm, enabled: str) -> None:
    rules = helm.render(*TOKEN, "--set", f"settings.dra.enabled={enabled}")["ClusterRole", "karpenter-core"]["rules"]
    assert [rule for rule in rules if rule["apiGroups"] == ["resource.k8s.io"]] == [
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims", "resourceslices", "deviceclasses"],
            "verbs": ["get", "list", "watch"],
        }
    ]


def test_a_default_topology_spread_comes_as_json_or_as_it_was_written(newest_helm: Helm) -> None:
    where = "settings.schedulerConfig.podTopologySpread.defaultConstraints[0]"
    as_map = f"{where}.maxSkew=2,{where}.topologyKey=a,{where}.whenUnsatisfiable=ScheduleAnyway"
    text = "podTopologySpread: {defaultConstraints: []}"
    for arguments, count in ((("--set", as_map), 1), (("--set-string", f"settings.schedulerConfig={text}"), 0)):
        environment = {entry["name"]: entry.get("value", "") for entry in newest_helm.environment(*arguments)}
        settings = read_settings({}, {"CLUSTER_NAME": "lab", **environment})
        assert len(settings.options.default_spread) == count
    assert "SCHEDULER_CONFIG" not in {entry["name"] for entry in newest_helm.environment()}


def test_zero_and_false_are_answers(helm: Helm) -> None:
    environment = helm.environment("--set", "settings.vmMemoryOverheadPercent=0,linodeDebug=false")
    values = {entry["name"]: entry.get("value") for entry in environment}
    assert values["VM_MEMORY_OVERHEAD_PERCENT"] == "0"
    assert values["LINODE_DEBUG"] == "false"


def test_what_is_empty_is_no_variable(newest_helm: Helm) -> None:
    names = {entry["name"] for entry in newest_helm.environment()}
    assert names.isdisjoint({"CLUSTER_NAME", "CLUSTER_ENDPOINT", "CLUSTER_CA_BUNDLE", "LINODE_DEBUG"})


def test_every_variable_is_one_that_the_controller_reads(newest_helm: Helm) -> None:
    names = {entry["name"] for entry in newest_helm.environment("--values", str(EVERY_VALUE))}
    unread = {"LINODE_DEBUG"}  # a name that the Go provider's values file may ask for
    assert names - unread <= {flag.variable for flag in FLAGS}


def test_the_controller_starts_with_the_defaults_and_has_no_complaint(newest_helm: Helm) -> None:
    environment = newest_helm.environment("--set", "settings.clusterName=lab")
    settings = read_settings({}, {entry["name"]: entry["value"] for entry in environment})
    assert settings.notes == ()
    assert settings == read_settings({}, {"CLUSTER_NAME": "lab"})


def test_dra_on_in_the_chart_is_dra_on_in_the_controller(newest_helm: Helm) -> None:
    environment = newest_helm.environment("--set", "settings.clusterName=lab,settings.dra.enabled=true")
    settings = read_settings({}, {entry["name"]: entry["value"] for entry in environment})
    assert not settings.options.ignore_dra_requests


def test_a_cpu_request_decides_how_much_is_done_at_a_time(newest_helm: Helm) -> None:
    (entry,) = [
        item
        for item in newest_helm.environment("--set", "controller.resources.requests.cpu=2")
        if item["name"] == "CPU_REQUESTS"
    ]
    reference = {"containerName": "controller", "resource": "requests.cpu", "divisor": "1m"}
    assert entry["valueFrom"] == {"resourceFieldRef": reference}


def test_values_of_the_go_provider_are_accepted(helm: Helm, tmp_path: Path) -> None:
    """Its defaults, the deprecated and the ineffective ones included."""
    values = {
        "apiToken": "made-up",
        "topologySpreadConstraints": {},
        "logOutputPaths": ["stdout"],
        "webhook": {"enabled": True, "port": 8443, "metrics": {"port": 8001}},
        "linodeDebug": None,
        "controller": {"image": {"tag": "latest"}, "env": [], "resources": {}},
        "settings": {
            "batchMaxDuration": "5m",
            "batchIdleDuration": "1m",
            "mode": "lke",
            "vmMemoryOverheadPercent": 0.075,
            "clusterName": "lab",
            "clusterCABundle": "",
            "clusterEndpoint": "",
            "lkeCreateDeadline": "10s",
            "lkeTagVerificationTimeout": "4s",
            "lkeRetryDelay": "2s",
            "featureGates": {"nodeRepair": False},
        },
    }
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    assert helm.text("--values", str(path))


REFUSED = [
    ("settings.dra.enable=true", "settings/dra"),
    ("settings.dra.enabled=yes please", "settings/dra/enabled"),
    ("settings.batchIdleDuration=1", "settings/batchIdleDuration"),
    ("settings.batchMaxDuration=ten seconds", "settings/batchMaxDuration"),
    ("settings.mode=instance", "settings/mode"),
    ("settings.vmMemoryOverheadPercent=-0.1", "settings/vmMemoryOverheadPercent"),
    ("settings.vmMemoryOverheadPercent=7.5", "settings/vmMemoryOverheadPercent"),
    ("settings.featureGates.nodeRepair=maybe", "settings/featureGates/nodeRepair"),
    ("settings.clusterEndpoint=10.0.0.1", "settings/clusterEndpoint"),
    ("replicas=-1", "replicas"),
    ("replicas=two", "replicas"),
    ("logLevel=loud", "logLevel"),
    ("apiURL=api.linode.com", "apiURL"),
    ("imagePullPolicy=Sometimes", "imagePullPolicy"),
    ("controller.metrics.port=0", "controller/metrics/port"),
    ("controller.healthProbe.port=65536", "controller/healthProbe/port"),
    ("controller.image.digest=latest", "controller/image/digest"),
    ("controller.env[0].value=nameless", "controller/env/0"),
    ("podDisruptionBudget.maxUnavailable=some", "podDisruptionBudget/maxUnavailable"),
    ("additionalLabels.number=1", "additionalLabels/number"),
    ("replica=2", "replica"),
]


@pytest.mark.parametrize(("value", "where"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(helm: Helm, value: str, where: str) -> None:
    with pytest.raises(HelmError) as refused:
        helm.text(*TOKEN, "--set", value)
    assert where.replace("/", ".") in str(refused.value).replace("/", ".")  # Helm 3 writes dots, Helm 4 slashes


def test_every_value_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.*?) \|", PAGE.read_text().partition("\n## DRA\n")[0], re.MULTILINE))
    expected = {}

    def collect(value: Any, path: str) -> None:
        if isinstance(value, dict) and value and path not in WHOLE:
            for key, item in value.items():
                collect(item, f"{path}.{key}" if path else key)
        else:
            expected[path] = shown(value, path)

    collect(yaml.safe_load((CHARTS / "karpenter" / "values.yaml").read_text()), "")
    assert rows == expected


WHOLE = {"affinity", "nodeSelector", "strategy", "podSecurityContext", "tolerations"}


def shown(value: Any, path: str) -> str:
    if path in WHOLE:
        return "see values.yaml"
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, (dict, list)) or value == "":
        return f"`{yaml.safe_dump(value, default_flow_style=True).strip()}`".replace("''", '""')
    return f"`{value}`"
