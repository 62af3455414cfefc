"""Objects that the CRDs accept and refuse, for our own check and for the API server's."""

from __future__ import annotations

from typing import Any

REFERENCE = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}


def node_pool(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"requirements": [], "nodeClassRef": REFERENCE}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool"},
        "spec": {"template": template, **spec},
    }


def pool_with(*requirements: dict[str, Any], **template: Any) -> dict[str, Any]:
    pool = node_pool()
    pool["spec"]["template"]["spec"] |= {"requirements": list(requirements), **template}
    return pool


def node_claim(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "claim"},
        "spec": {"requirements": [], "nodeClassRef": REFERENCE, **spec},
    }


def node_class(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.linode/v1alpha1",
        "kind": "LinodeNodeClass",
        "metadata": {"name": "default"},
        "spec": spec,
    }


def overlay(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "overlay"},
        "spec": {"requirements": [], **spec},
    }


def named(key: str, operator: str = "In", *values: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values), **more}


IN = "requirements with operator 'In' must have a value defined"
NUMERIC = "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value"
MIN_VALUES = "requirements with 'minValues' must have at least that many values specified in the 'values' field"
RESTRICTED = 'label domain "karpenter.sh" is restricted'
HOSTNAME = 'label "kubernetes.io/hostname" is restricted'
SOFT = "evictionSoft OwnerKey does not have a matching evictionSoftGracePeriod"
GRACE = "evictionSoftGracePeriod OwnerKey does not have a matching evictionSoft"
STATIC_LIMITS = "only 'limits.nodes' is supported on static NodePools"
STATIC_WEIGHT = "'weight' is not supported on static NodePools"

REFUSED = [
    (pool_with({"key": "a", "operator": "In"}), IN),
    (pool_with(named("a")), IN),
    (pool_with(named("a", "Gt", "1", "2")), NUMERIC),
    (pool_with(named("a", "Lte", "-1")), NUMERIC),
    (pool_with(named("a", "Gte", "many")), NUMERIC),
    (pool_with({"key": "a", "operator": "Lt"}), NUMERIC),
    (pool_with(named("a", "In", "b", minValues=2)), MIN_VALUES),
    (pool_with(named("a", "Exists", minValues=51)), "out of bounds"),
    (pool_with(named("a", "Near", "b")), "Unsupported value: Near"),
    (pool_with(named("a b", "Exists")), "should match"),
    (pool_with(named("karpenter.sh/made-up", "Exists")), RESTRICTED),
    (pool_with(named("x.karpenter.sh/made-up", "Exists")), RESTRICTED),
    (pool_with(named("karpenter.sh/nodepool", "Exists")), 'label "karpenter.sh/nodepool" is restricted'),
    (pool_with(named("kubernetes.io/hostname", "Exists")), HOSTNAME),
    (pool_with(*([named("a", "Exists")] * 101)), "Too many"),
    (pool_with(taints=[{"key": "a"}]), "effect: Required value"),
    (pool_with(taints=[{"key": "a", "effect": "Sometimes"}]), "Unsupported value: Sometimes"),
    (pool_with(startupTaints=[{"key": "a b", "effect": "NoSchedule"}]), "should match"),
    (pool_with(terminationGracePeriod="Never"), "should match"),
    (pool_with(expireAfter="1d"), "should match"),
    (pool_with(nodeClassRef={**REFERENCE, "group": ""}), "group may not be empty"),
    (pool_with(nodeClassRef={**REFERENCE, "group": "a/v1"}), "should match"),
    (pool_with(nodeClassRef={**REFERENCE, "name": ""}), "name may not be empty"),
    (node_pool(disruption={"budgets": [{"nodes": "110%"}]}), "should match"),
    (node_pool(disruption={"budgets": [{"schedule": "@daily"}]}), "'schedule' must be set with 'duration'"),
    (node_pool(disruption={"budgets": [{"schedule": "@daily", "duration": "90s"}]}), "should match"),
    (node_pool(disruption={"budgets": [{"reasons": ["Expired"]}]}), "Unsupported value: Expired"),
    (node_pool(disruption={"consolidationPolicy": "Always"}), "Unsupported value: Always"),
    (node_pool(weight=0), "out of bounds"),
    (node_pool(replicas=-1), "out of bounds"),
    (node_pool(replicas=1, weight=1), STATIC_WEIGHT),
    (node_pool(replicas=1, limits={"cpu": "1"}), STATIC_LIMITS),
    (node_pool(limits={"cpu": "one"}), "should match"),
    (node_pool(made_up=1), "unknown field"),
    (node_claim(requirements=[named("kubernetes.io/hostname", "Exists")]), HOSTNAME),
    (node_claim(requirements=[named("karpenter.sh/made-up", "Exists")]), RESTRICTED),
    (overlay(price="1", priceAdjustment="+1"), "cannot set both 'price' and 'priceAdjustment'"),
    (overlay(price="-1"), "should match"),
    (overlay(priceAdjustment="-101%"), "should match"),
    (overlay(priceAdjustment="10%"), "should match"),
    (overlay(weight=10001), "out of bounds"),
    (overlay(capacity={"cpu": "1"}), "invalid resource restricted"),
    (
        overlay(requirements=[{"key": "a", "operator": "NotIn"}]),
        "requirements with operator 'NotIn' must have a value defined",
    ),
    (node_class(tags=["a", "a"]), "Duplicate value"),
    (node_class(osDisk={"label": "root"}), "size: Required value"),
    (node_class(dataDisks={"sda": {"size": "1Gi"}}), "unknown field"),
    (node_class(dataDisks={"sdb": {"size": "1Gi", "filesystem": "zfs"}}), "Unsupported value: zfs"),
    (node_class(diskEncryption="on"), "Unsupported value: on"),
    (node_class(placementGroup={"compliant_only": True}), "id: Required value"),
    (node_class(kubelet={"maxPods": -1}), "out of bounds"),
    (node_class(kubelet={"kubeReserved": {"gpu": "1"}}), "valid keys for kubeReserved are"),
    (node_class(kubelet={"systemReserved": {"cpu": "-1"}}), "systemReserved value cannot be a negative"),
    (node_class(kubelet={"evictionHard": {"disk": "1"}}), "valid keys for evictionHard are"),
    (node_class(kubelet={"evictionSoft": {"pid.available": "1"}}), SOFT),
    (node_class(kubelet={"evictionSoftGracePeriod": {"pid.available": "1m"}}), GRACE),
]


ACCEPTED = [
    pool_with(named("a", "Gt", "0"), named("karpenter.sh/capacity-type", "In", "on-demand"), expireAfter="Never"),
    pool_with(named("example.com/a", "NotIn"), named("a", "DoesNotExist"), terminationGracePeriod="1h30m"),
    node_pool(disruption={"consolidateAfter": "Never", "budgets": [{"nodes": "0"}, {"nodes": "100%"}]}),
    node_pool(disruption={"budgets": [{"nodes": "5", "schedule": "0 9 * * mon-fri", "duration": "8h0m0s"}]}),
    node_pool(disruption={"consolidationPolicy": "Balanced"}),
    node_pool(replicas=0, limits={"nodes": 10}),
    node_pool(weight=100, limits={"cpu": 16, "memory": "64Gi", "nvidia.com/gpu": "2", "nodes": "3"}),
    node_claim(
        requirements=[named("karpenter.sh/nodepool", "In", "pool")],
        resources={"requests": {"cpu": "100m", "memory": 1024}},
    ),
    overlay(priceAdjustment="-100%", capacity={"example.com/devices": 4}, weight=10000),
    overlay(price="0.5", requirements=[named("node.kubernetes.io/instance-type", "In", "g6-standard-2")]),
    node_class(
        tags=["team=ml", "env:prod"],
        firewallID=7,
        swap_size=512,
        ipv6Options={"enableSLAAC": True},
        osDisk={"size": "20Gi", "filesystem": "ext4"},
        dataDisks={"sdh": {"size": 10}},
        placementGroup={"id": 1, "compliant_only": False},
        kubelet={
            "maxPods": 60,
            "kubeReserved": {"cpu": "100m", "pid": "1000"},
            "evictionSoft": {"memory.available": "5%"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"},
        },
    ),
]


SWITCH = "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes"
CHANGES = [
    (node_claim(), node_claim(expireAfter="1h"), "spec is immutable"),
    (node_pool(), node_pool(replicas=1), SWITCH),
    (node_pool(replicas=1), node_pool(), SWITCH),
    (pool_with(), pool_with(nodeClassRef={**REFERENCE, "kind": "EC2NodeClass"}), "nodeClassRef.kind is immutable"),
    (pool_with(), pool_with(nodeClassRef={**REFERENCE, "group": "other"}), "nodeClassRef.group is immutable"),
    (
        node_class(ipv6Options={"enableRanges": True}),
        node_class(ipv6Options={"enableRanges": False}),
        "Value is immutable",
    ),
]
