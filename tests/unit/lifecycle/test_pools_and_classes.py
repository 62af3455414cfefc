from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.lifecycle.effects import LogLine, Patch, PublishEvent, Requeue
from karpenter_linode.lifecycle.node_class import reconcile_node_class, tag_error
from karpenter_linode.lifecycle.node_pool import (
    count_node_pool,
    exceeded_limit,
    node_pool_usage,
    reconcile_node_pool,
    usage_at_creation,
)
from karpenter_linode.lifecycle.node_pool_validation import template_errors
from karpenter_linode.lifecycle.patches import merge_diff
from karpenter_linode.model import kinds
from karpenter_linode.model.quantity import NANO

CREATED = "2026-01-01T12:00:00Z"


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def conditions_in(effects: Any) -> dict[str, tuple[str, str]]:
    (patch,) = [item for item in of(effects, Patch) if item.subresource == "status"]
    return {item["type"]: (item["status"], item["reason"]) for item in patch.patch["status"]["conditions"]}


@pytest.fixture
def node_class() -> Any:
    def make(ready: str = "True", reason: str = "Ready", **metadata: Any) -> Any:
        return kinds.from_manifest(
            {
                "apiVersion": "karpenter.k8s.linode/v1alpha1",
                "kind": "LinodeNodeClass",
                "metadata": {
                    "name": "default",
                    "uid": "class-uid",
                    "generation": 1,
                    "creationTimestamp": CREATED,
                    "finalizers": ["karpenter.k8s.linode/termination"],
                    **metadata,
                },
                "spec": {},
                "status": {
                    "conditions": [{"type": "Ready", "status": ready, "reason": reason, "observedGeneration": 1}]
                    if ready
                    else []
                },
            }
        )

    return make


def test_a_pool_with_a_ready_class_becomes_ready(pool: Any, node_class: Any, cluster: Any, now: Any) -> None:
    found = conditions_in(reconcile_node_pool(pool(), cluster(node_class()), now))
    assert found["ValidationSucceeded"][0] == found["NodeClassReady"][0] == found["Ready"][0] == "True"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (None, "NodeClassNotFound"),
        ({"deletionTimestamp": CREATED}, "NodeClassTerminating"),
        ({"ready": ""}, "NodeClassReadinessUnknown"),
        ({"ready": "Unknown"}, "NodeClassReadinessUnknown"),
        ({"ready": "False", "reason": "TagValidationFailed"}, "TagValidationFailed"),
    ],
)
def test_a_class_that_cannot_be_used_makes_the_pool_not_ready(
    pool: Any, node_class: Any, cluster: Any, now: Any, arguments: Any, reason: str
) -> None:
    state = cluster() if arguments is None else cluster(node_class(**arguments))
    found = conditions_in(reconcile_node_pool(pool(), state, now))
    assert found["NodeClassReady"] == ("False", reason)
    assert found["Ready"][0] == "False"


def test_the_hash_is_written_and_a_new_version_migrates_claims(
    pool: Any, claim: Any, node_class: Any, cluster: Any, now: Any
) -> None:
    drifted = claim({"Drifted": "True"}, metadata={"name": "gpu-2", "uid": "u2"})
    current = claim(
        metadata={"name": "gpu-3", "uid": "u3", "annotations": {"karpenter.sh/nodepool-hash-version": "v3"}}
    )
    effects = reconcile_node_pool(pool(), cluster(node_class(), claim(), drifted, current), now)
    written = {
        patch.name: patch.patch["metadata"]["annotations"] for patch in of(effects, Patch) if not patch.subresource
    }
    assert set(written["gpu"]) == {"karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version"}
    assert written["gpu-1"]["karpenter.sh/nodepool-hash"] == written["gpu"]["karpenter.sh/nodepool-hash"]
    assert written["gpu-2"] == {"karpenter.sh/nodepool-hash-version": "v3"}
    assert "gpu-3" not in written


def test_pools_of_other_providers_are_left_alone(pool: Any, cluster: Any, now: Any) -> None:
    foreign = pool(
        spec={"template": {"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}}}}
    )
    assert reconcile_node_pool(foreign, cluster(), now) == []


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"metadata": {"labels": {"karpenter.sh/nodepool": "x"}}}, "in labels, restricted"),
        ({"metadata": {"labels": {"karpenter.sh/custom": "x"}}}, "using label karpenter.sh/custom is not allowed"),
        ({"metadata": {"labels": {"a": "not valid!"}}}, "for label[a]"),
        ({"spec": {"taints": [{"key": "a", "effect": "Sometimes"}]}}, "in taints"),
        (
            {
                "spec": {
                    "taints": [{"key": "a", "effect": "NoSchedule"}],
                    "startupTaints": [{"key": "a", "effect": "NoSchedule"}],
                }
            },
            "duplicate taint Key/Effect pair a=NoSchedule",
        ),
        ({"spec": {"requirements": [{"key": "a", "operator": "Near"}]}}, "has an unsupported operator Near"),
        ({"spec": {"requirements": [{"key": "a", "operator": "In"}]}}, "with operator In must have a value defined"),
        ({"spec": {"requirements": [{"key": "a", "operator": "Gt", "values": ["-1"]}]}}, "single positive integer"),
        ({"spec": {"requirements": [{"key": "karpenter.sh/nodepool", "operator": "Exists"}]}}, "invalid key"),
        (
            {"spec": {"requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["free"]}]}},
            "no valid values found in [free]",
        ),
        (
            {"spec": {"requirements": [{"key": "a", "operator": "In", "values": ["x"], "minValues": 2}]}},
            "at least minimum number of values",
        ),
    ],
)
def test_a_template_with_a_mistake_is_named_in_the_contracts_words(pool: Any, template: Any, message: str) -> None:
    errors = template_errors(pool(spec={"template": template}).spec.template)
    assert any(message in error for error in errors)


def test_a_mix_of_known_and_unknown_capacity_types_passes(pool: Any) -> None:
    spec = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand", "free"]}
    assert template_errors(pool(spec={"template": {"spec": {"requirements": [spec]}}}).spec.template) == ()


def test_usage_is_counted_with_zeros_and_without_leaving_nodes(pool: Any, claim: Any, cluster: Any, now: Any) -> None:
    made = claim(status={"providerID": "linode://1", "capacity": {"cpu": "4", "memory": "16Gi"}})
    leaving = claim(
        metadata={"name": "gpu-2", "uid": "u2", "deletionTimestamp": CREATED}, status={"capacity": {"cpu": "8"}}
    )
    (patch,) = count_node_pool(pool(), node_pool_usage(cluster(made, leaving), now)["gpu"])
    assert patch.lock == ""
    assert patch.patch["status"]["nodes"] == 1
    assert patch.patch["status"]["resources"] == {
        "cpu": "4",
        "ephemeral-storage": "0",
        "memory": "16Gi",
        "nodes": "1",
        "pods": "0",
    }


def test_an_unchanged_count_writes_nothing(pool: Any) -> None:
    (patch,) = count_node_pool(pool(), {})
    assert count_node_pool(pool(status=patch.patch["status"]), {}) == []


def test_a_limit_is_exceeded_only_beyond_it(pool: Any) -> None:
    limited = pool(spec={"limits": {"cpu": "8", "memory": "16Gi"}})
    assert exceeded_limit(limited, {"cpu": 8 * NANO}) is None
    assert exceeded_limit(pool(), {"cpu": 8 * NANO}) is None
    reason = exceeded_limit(limited, {"cpu": 9 * NANO})
    assert str(reason) == "resource usage exceeds limit (limit=8, resource-name=cpu, usage=9)"


def test_a_limit_of_nodes_counts_node_claims_that_are_created_together(pool: Any) -> None:
    limited = pool(spec={"limits": {"cpu": "8", "nodes": "3"}})
    usage = {limited.name: {"cpu": 8 * NANO, "nodes": 1 * NANO}}
    counted = usage_at_creation([limited.name, "other", limited.name, limited.name], usage)
    assert [item.get("nodes") for item in counted] == [2 * NANO, NANO, 3 * NANO, 4 * NANO]
    reasons = [exceeded_limit(limited, item) for item in (counted[0], *counted[2:])]
    text = "resource usage exceeds limit (limit=3, resource-name=nodes, usage=4)"
    assert [reason and reason.message for reason in reasons] == [None, None, text]


def test_a_class_gets_its_finalizer_then_becomes_ready(node_class: Any, cluster: Any, now: Any) -> None:
    effects = reconcile_node_class(node_class(ready="", finalizers=[]), cluster(), now)
    assert effects[0].patch == {"metadata": {"finalizers": ["karpenter.k8s.linode/termination"]}}
    found = conditions_in(reconcile_node_class(node_class(ready=""), cluster(), now))
    assert found == {"ValidationSucceeded": ("True", "ValidationSucceeded"), "Ready": ("True", "Ready")}


@pytest.mark.parametrize(
    ("tags", "part"),
    [
        (["karpenter.sh/nodepool=x"], "'karpenter.sh/nodepool=x'"),
        (["Name=x", "plain"], "'Name=x'"),
        (["kubernetes.io/cluster/mine=owned"], "kubernetes.io/cluster/mine=owned"),
        (["x" * 51], "3 to 50 characters"),
        (["ab"], "3 to 50 characters: 'ab'"),
    ],
)
def test_reserved_long_and_short_tags_are_refused_by_name(tags: list[str], part: str) -> None:
    assert part in (tag_error(tags) or "")


@pytest.mark.parametrize("tag", ["env=prod", "env:prod", "plain", "Name", "=xy", "Name="])
def test_other_tags_pass(tag: str) -> None:
    assert tag_error([tag]) is None


def test_a_deleted_class_waits_for_its_claims(node_class: Any, claim: Any, cluster: Any, now: Any) -> None:
    leaving = node_class(deletionTimestamp=CREATED)
    names = [f"gpu-{number}" for number in range(7)]
    users = [claim(metadata={"name": name, "uid": name}) for name in names]
    effects = reconcile_node_class(leaving, cluster(*users), now)
    event = of(effects, PublishEvent)[0]
    assert event.message == "Waiting on NodeClaim termination for gpu-0, gpu-1, gpu-2, gpu-3, gpu-4 and 2 other(s)"
    assert of(effects, Requeue)[0].after.total_seconds() == 600
    (patch,) = reconcile_node_class(leaving, cluster(), now)
    assert patch.patch == {"metadata": {"finalizers": None}}


def test_a_merge_diff_names_only_what_changed() -> None:
    before = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1, 2], "f": 1}
    after = {"a": 1, "b": {"c": 1, "d": 3}, "e": [1], "g": {"h": 1}}
    assert merge_diff(before, after) == {"b": {"d": 3}, "e": [1], "f": None, "g": {"h": 1}}


@pytest.mark.parametrize(
    ("values", "invalid"), [(["on-demand"], []), (["on-demand", "free", "cheap"], ["free", "cheap"]), (["free"], [])]
)
def test_capacity_types_that_do_not_exist_are_told_once_where_others_count(
    pool: Any, node_class: Any, cluster: Any, now: Any, values: list[str], invalid: list[str]
) -> None:
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": values}
    spec = {"template": {"spec": {"requirements": [requirement]}}}
    unjudged = pool(spec=spec, metadata={"generation": 2})
    told = of(reconcile_node_pool(unjudged, cluster(node_class()), now), LogLine)
    assert [(line.level, line.message, line.fields["invalid-values"]) for line in told] == [
        ("error", "please correct found invalid values, proceeding with valid values", invalid)
    ] * bool(invalid)
    known = [{"type": "ValidationSucceeded", "status": "True", "observedGeneration": 2}]
    judged = pool(spec=spec, metadata={"generation": 2}, status={"conditions": known})
    assert of(reconcile_node_pool(judged, cluster(node_class()), now), LogLine) == []
