"""Random scheduling problems in which many pods have no place, for every reason that there is (shared by tests)."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from karpenter_linode.model import codec
from karpenter_linode.model.core import PersistentVolume, PersistentVolumeClaim

ZONE, HOSTNAME, ARCH = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "kubernetes.io/arch"
NODEPOOL, INSTANCE_TYPE = "karpenter.sh/nodepool", "node.kubernetes.io/instance-type"
CAPACITY_TYPE, RESERVATION = "karpenter.sh/capacity-type", "example.com/reservation"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
ZONES: Final = ("z1", "z2")
TOLERATION: Final = {"key": "t", "operator": "Exists"}
PORT: Final = {"containerPort": 80, "hostPort": 80}


def requirement(key: str, operator: str, *values: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values), **more}


def term(key: str, app: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def node_affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    written = [{"matchExpressions": expressions} for expressions in terms]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": written}}}}


def rules() -> st.SearchStrategy[dict[str, Any]]:
    """What a pod asks of its place."""
    apps, keys = st.sampled_from("xyz"), st.sampled_from((ZONE, HOSTNAME, "example.com/tier"))

    def with_term(kind: str, strength: str) -> st.SearchStrategy[dict[str, Any]]:
        soft = strength == PREFERRED
        return st.builds(
            lambda key, app: {
                "affinity": {
                    kind: {strength: [{"weight": 1, "podAffinityTerm": term(key, app)} if soft else term(key, app)]}
                }
            },
            keys,
            apps,
        )

    spread = st.builds(
        lambda key, app, when, least: {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "whenUnsatisfiable": when, "minDomains": least if when == "DoNotSchedule" else None}
                | term(key, app)
            ]
        },
        keys,
        apps,
        st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
        st.sampled_from((None, 3)),
    )
    fixed: list[dict[str, Any]] = [
        {},
        {"nodeSelector": {ZONE: "z1"}},
        {"nodeSelector": {ZONE: "z2"}},
        {"nodeSelector": {"example.com/unknown": "x"}},
        {"nodeSelector": {"example.com/tier": "b"}},
        {"nodeSelector": {NODEPOOL: "p0"}},
        node_affinity([requirement(ARCH, "In", "arm64")]),
        node_affinity([requirement(ZONE, "In", "z1"), requirement(ZONE, "NotIn", "z1", "z2")]),
        node_affinity([requirement(ZONE, "In", "nowhere")], [requirement(ZONE, "In", "z2")]),
        {"tolerations": [TOLERATION]},
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}], "tolerations": [TOLERATION]},
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "many"}], "tolerations": [TOLERATION]},
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "missing"}]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "in-z1"}}]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "nowhere"}}]},
    ]
    both = [
        with_term(kind, strength) for kind in ("podAffinity", "podAntiAffinity") for strength in (REQUIRED, PREFERRED)
    ]
    return st.one_of(st.sampled_from(fixed), spread, *both)


@st.composite
def plans(draw: st.DrawFn, make: Any) -> tuple[Any, ...]:
    """Up to five plans, of which some are sold out, overdrawn, reserved, or larger by how they are bought."""

    def offering(zone: str, price: int, kind: str = "on-demand", **more: Any) -> dict[str, Any]:
        extra = [requirement(RESERVATION, "In", "r")] if kind == "reserved" else []
        where = [requirement(ZONE, "In", zone), requirement(CAPACITY_TYPE, "In", kind), *extra]
        return {"price": price, "requirements": where, **more}

    found = []
    for index in range(draw(st.integers(1, 5))):
        zones = draw(st.sampled_from((ZONES, ("z1",))))
        kind = draw(
            st.sampled_from((*["plain"] * 8, "sold-out", "sold-out-in-part", "overdrawn", "reserved", "override"))
        )
        sold_out = {"sold-out": zones, "sold-out-in-part": zones[1:]}.get(kind, ())
        offerings = [offering(zone, index + 1, available=zone not in sold_out) for zone in zones]
        if kind == "reserved":
            offerings.append(offering("z1", 0, "reserved", reservationCapacity=1))
        if kind == "override":
            offerings.append(offering("z1", 9, capacityOverride={"cpu": "32"}))
        found.append(
            make.plan(
                f"it-{index}",
                zones=zones,
                arch=(draw(st.sampled_from(("amd64", "amd64", "arm64"))),),
                capacity_types=("on-demand", "reserved"),
                capacity={"cpu": draw(st.sampled_from(("2", "4", "8"))), "memory": "16Gi", "pods": "4"},
                overhead={"cpu": "99"} if kind == "overdrawn" else {},
                devices=draw(st.sampled_from((0, 0, 1))),
                offerings=offerings,
            )
        )
    return tuple(found)


@st.composite
def pools(draw: st.DrawFn, make: Any) -> tuple[Any, ...]:
    """Up to three NodePools, of which some take no pods."""
    found = []
    for index in range(draw(st.integers(1, 3))):
        more: dict[str, Any] = {}
        limits = draw(st.sampled_from((*[None] * 6, {"cpu": "6"}, {"cpu": "1"}, {"nodes": "0"}, {"pods": "4"})))
        if limits:
            more["limits"] = limits
        if draw(st.integers(0, 9)) == 9:
            more["replicas"] = 1
        found.append(
            make.pool(
                f"p{index}",
                weight=index + 1,
                taints=draw(
                    st.sampled_from(
                        (
                            *[[]] * 5,
                            [{"key": "t", "effect": "NoSchedule"}],
                            [{"key": "s", "effect": "PreferNoSchedule"}],
                        )
                    )
                ),
                requirements=draw(
                    st.sampled_from(
                        (
                            *[()] * 4,
                            ((ZONE, "In", "z2"),),
                            (("example.com/tier", "In", "a", "b"),),
                            ((ARCH, "In", "arm64"),),
                            ((INSTANCE_TYPE, "In", "it-0", "it-1"),),
                        )
                    )
                ),
                min_values=draw(st.sampled_from((*[None] * 5, (INSTANCE_TYPE, 2)))),
                **more,
            )
        )
    return tuple(found)


@st.composite
def pods(draw: st.DrawFn, make: Any) -> tuple[Any, ...]:
    """Up to eight pods in up to four groups of equal ones."""
    found = []
    for group in range(draw(st.integers(1, 4))):
        app = draw(st.sampled_from("xyz"))
        requests = {"cpu": draw(st.sampled_from(("1", "3", "7", "40")))}
        ports = [PORT] if draw(st.integers(0, 3)) == 0 else []
        container = {"name": "c", "resources": {"requests": requests}, "ports": ports}
        rule = draw(rules())
        for index in range(draw(st.integers(1, 2))):
            name = f"g{group}-{index}"
            found.append(make.pod(name, uid=name, labels={"app": app}, containers=[container], **rule))
    return tuple(found)


@st.composite
def problems(draw: st.DrawFn, make: Any) -> Any:
    """A whole problem: pods, NodePools, plans, perhaps a node, a DaemonSet, claims and volumes."""
    given: dict[str, Any] = {"nodes": [], "bound_pods": [], "daemon_sets": []}
    for index in range(draw(st.integers(0, 2))):
        name, zone = f"n{index}", draw(st.sampled_from(ZONES))
        given["nodes"].append(make.node(name, pool="p0", labels={ZONE: zone}, allocatable={"cpu": "2"}))
        if draw(st.booleans()):
            given["bound_pods"].append(make.running(name, labels={"app": draw(st.sampled_from("xy"))}))
    if draw(st.booleans()):
        ports = [PORT] if draw(st.booleans()) else []
        given["daemon_sets"].append(make.daemon_set("ds", requests={"cpu": "100m"}, ports=ports))
    options = {
        "ignore_dra_requests": draw(st.booleans()),
        "preference_policy": draw(st.sampled_from(("Respect", "Ignore"))),
        "min_values_policy": draw(st.sampled_from(("Strict", "BestEffort"))),
        "reserved_offering_mode": draw(st.sampled_from(("Strict", "Fallback"))),
        "reservation_id_label": RESERVATION,
        "well_known_labels": (RESERVATION,),
    }
    return make.problem(
        draw(pods(make)),
        draw(pools(make)),
        draw(plans(make)),
        options=options,
        resource_claims=(make.claim("one"), make.claim("many", count=3)),
        device_classes=(make.gpu_class(),),
        persistent_volume_claims=tuple(map(_volume_claim, ("in-z1", "nowhere"))),
        persistent_volumes=(_volume("in-z1", "z1"), _volume("nowhere", "nowhere")),
        **given,
    )


def _volume_claim(name: str) -> PersistentVolumeClaim:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return codec.convert({"metadata": metadata, "spec": {"volumeName": name}}, PersistentVolumeClaim)


def _volume(name: str, zone: str) -> PersistentVolume:
    terms = [{"matchExpressions": [requirement(ZONE, "In", zone)]}]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return codec.convert({"metadata": {"name": name}, "spec": affinity}, PersistentVolume)
