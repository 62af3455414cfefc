"""Volumes (spec/karpenter-scheduling.md 8.5)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.model.core import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
BOUND = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}


def volume_claim(name: str = "pvc", metadata: dict[str, Any] | None = None, phase: str = "", **spec: Any) -> Any:
    plain = {
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": spec,
        "status": {"phase": phase},
    }
    return codec.convert(plain, PersistentVolumeClaim)


def storage_class(name: str = "sc", *zones: str, **more: Any) -> Any:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    plain = {
        "metadata": {"name": name, **more.pop("metadata", {})},
        "provisioner": "linodebs.csi.linode.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": terms,
        **more,
    }
    return codec.convert(plain, StorageClass)


def volume(name: str = "pv", *terms: dict[str, list[str]], metadata: dict[str, Any] | None = None, **spec: Any) -> Any:
    affinity = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in term.items()]}
        for term in terms
    ]
    node_affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": affinity}}} if terms else {}
    plain = {"metadata": {"name": name, **(metadata or {})}, "spec": {**node_affinity, **spec}}
    return codec.convert(plain, PersistentVolume)


def pod_with(make: Any, *claims: str, **given: Any) -> Any:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return make.pod(volumes=volumes, **given)


def zones(solution: Any) -> list[tuple[str, ...]]:
    return [
        next((item.values for item in claim.node_claim.spec.requirements if item.key == ZONE), ())
        for claim in solution.new_node_claims
    ]


def solved(make: Any, pods: list[Any], claims: list[Any], volumes: Any = (), classes: Any = (), **given: Any) -> Any:
    return make.solve(
        pods,
        persistent_volume_claims=tuple(claims),
        persistent_volumes=tuple(volumes),
        storage_classes=tuple(classes),
        **given,
    )


def test_a_missing_claim_ignores_the_pod_and_no_other(make: Any) -> None:
    solution = solved(make, [pod_with(make, "pvc"), make.pod("other")], [])
    assert solution.unplaced[0].reason.message == (
        'ignoring pod, getting persistent volume claim, persistentvolumeclaims "pvc" not found '
        "(PersistentVolumeClaim=pvc)"
    )
    assert [pod.name for claim in solution.new_node_claims for pod in claim.pods] == ["other"]


def test_zones_of_a_storage_class_bind_an_unbound_claim(make: Any) -> None:
    claims, classes = [volume_claim(storageClassName="sc")], [storage_class("sc", "test-zone-1", "test-zone-3")]
    assert zones(solved(make, [pod_with(make, "pvc")], claims, (), classes)) == [("test-zone-1", "test-zone-3")]
    elsewhere = pod_with(make, "pvc", nodeSelector={ZONE: "test-zone-2"})
    assert solved(make, [elsewhere], claims, (), classes).unplaced[0].reason.code == "volumes"


def test_zones_of_a_volume_bind_a_bound_claim(make: Any) -> None:
    claims = [volume_claim(metadata=BOUND, volumeName="pv")]
    volumes = [volume("pv", {ZONE: ["test-zone-3"]})]
    assert zones(solved(make, [pod_with(make, "pvc")], claims, volumes)) == [("test-zone-3",)]


@pytest.mark.parametrize("kind", [{"local": {"path": "/x"}}, {"hostPath": {"path": "/x"}}])
def test_the_host_of_a_local_volume_does_not_matter(make: Any, kind: dict[str, Any]) -> None:
    claims = [volume_claim(metadata=BOUND, volumeName="pv")]
    volumes = [volume("pv", {HOSTNAME: ["old"]}, {ZONE: ["nowhere"]}, **kind)]
    assert solved(make, [pod_with(make, "pvc")], claims, volumes).unplaced == ()


def test_the_host_of_another_volume_does(make: Any) -> None:
    claims = [volume_claim(metadata=BOUND, volumeName="pv")]
    volumes = [volume("pv", {HOSTNAME: ["old"]}, csi={"driver": "d"})]
    assert len(solved(make, [pod_with(make, "pvc")], claims, volumes).unplaced) == 1


def test_two_volumes_take_the_pair_of_places_that_agrees(make: Any) -> None:
    claims = [volume_claim(name, metadata=BOUND, volumeName=f"pv-{name}") for name in ("a", "b")]
    volumes = [
        volume("pv-a", {ZONE: ["test-zone-1"]}, {ZONE: ["test-zone-2"]}),
        volume("pv-b", {ZONE: ["test-zone-3"]}, {ZONE: ["test-zone-2"]}),
    ]
    assert zones(solved(make, [pod_with(make, "a", "b")], claims, volumes)) == [("test-zone-2",)]


def test_places_of_volumes_survive_relaxation(make: Any) -> None:
    claims = [volume_claim(metadata=BOUND, volumeName="pv")]
    volumes = [volume("pv", {ZONE: ["test-zone-3"]})]
    bad = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["test-zone-1"]}]}
    free = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "Exists"}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [bad, free]}}}
    assert zones(solved(make, [pod_with(make, "pvc", affinity=affinity)], claims, volumes)) == [("test-zone-3",)]


def test_ephemeral_volumes_count_like_claims(make: Any) -> None:
    template = {"spec": {"storageClassName": "sc"}}
    pod = make.pod("p", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}])
    claims = [volume_claim("p-v", storageClassName="sc")]
    classes = [storage_class("sc", "test-zone-2")]
    assert zones(solved(make, [pod], claims, (), classes)) == [("test-zone-2",)]


def test_the_newest_default_class_stands_in_for_none(make: Any) -> None:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    classes = [
        storage_class("old", "test-zone-1", metadata={**default, "creationTimestamp": "2025-01-01T00:00:00Z"}),
        storage_class("new", "test-zone-2", metadata={**default, "creationTimestamp": "2026-01-01T00:00:00Z"}),
    ]
    assert zones(solved(make, [pod_with(make, "pvc")], [volume_claim()], (), classes)) == [("test-zone-2",)]


@pytest.mark.parametrize(
    ("claim", "volumes", "classes", "text"),
    [
        (
            volume_claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            [],
            [],
            "persistentvolumeclaim is being deleted",
        ),
        (
            volume_claim(phase="Lost", volumeName="pv"),
            [],
            [],
            "persistentvolumeclaim bound to non-existent persistentvolume",
        ),
        (
            volume_claim(metadata=BOUND, volumeName="pv"),
            [],
            [],
            'failed to validate pvc, persistentvolumes "pv" not found',
        ),
        (
            volume_claim(metadata=BOUND, volumeName="pv"),
            [volume("pv", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            [],
            "failed to validate pvc, persistentvolume is being deleted",
        ),
        (
            volume_claim(volumeName="pv"),
            [volume("pv")],
            [],
            "pvc is considered unbound because it does not contain annotation",
        ),
        (volume_claim(), [], [], "unbound pvc must define a storage class"),
        (volume_claim(storageClassName="sc"), [], [], "failed to validate pvc, failed to get storage class"),
        (
            volume_claim(storageClassName="sc"),
            [],
            [storage_class("sc", volumeBindingMode="Immediate")],
            "failed to validate pvc, pvc with immediate volume binding mode must be bound",
        ),
    ],
)
def test_claims_that_cannot_be_used_ignore_the_pod(
    make: Any, claim: Any, volumes: Any, classes: Any, text: str
) -> None:
    (unplaced,) = solved(make, [pod_with(make, "pvc")], [claim], volumes, classes).unplaced
    assert unplaced.reason.code == "ignored"
    assert unplaced.reason.message.startswith(f"ignoring pod, {text}")


def csi_node(name: str, count: int) -> Any:
    driver = {"name": "linodebs.csi.linode.com", "allocatable": {"count": count}}
    return codec.convert({"metadata": {"name": name}, "spec": {"drivers": [driver]}}, CSINode)


def test_a_node_takes_no_more_volumes_than_its_driver_allows(make: Any) -> None:
    names = [f"pvc-{index}" for index in range(3)]
    claims = [volume_claim(name, storageClassName="sc") for name in names]
    pods = [pod_with(make, name) for name in names]
    given = {"nodes": [make.node("n")], "csi_nodes": [csi_node("n", 2)]}
    solution = solved(make, pods, claims, (), [storage_class()], **given)
    assert [len(item.pods) for item in solution.existing] == [2]
    assert len(solution.new_node_claims) == 1


def test_a_shared_claim_counts_once(make: Any) -> None:
    pods = [pod_with(make, "pvc") for _ in range(4)]
    given = {"nodes": [make.node("n")], "csi_nodes": [csi_node("n", 1)]}
    solution = solved(make, pods, [volume_claim(storageClassName="sc")], (), [storage_class()], **given)
    assert [len(item.pods) for item in solution.existing] == [4]


def test_volumes_of_running_pods_are_attached_already(make: Any) -> None:
    claims = [volume_claim(name, storageClassName="sc") for name in ("a", "b")]
    volumes = [{"name": "a", "persistentVolumeClaim": {"claimName": "a"}}]
    given = {
        "nodes": [make.node("n")],
        "csi_nodes": [csi_node("n", 1)],
        "bound_pods": [make.running("n", volumes=volumes)],
    }
    assert solved(make, [pod_with(make, "b")], claims, (), [storage_class()], **given).existing == ()


# The rest of the checklist


def ephemeral(make: Any, name: str = "pod-e", **spec: Any) -> Any:
    volumes = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    return make.pod(name, volumes=volumes)


@pytest.mark.parametrize(
    ("claim", "volumes", "text"),
    [
        (volume_claim(storageClassName="sc"), [], 'storageclasses.storage.k8s.io "sc" not found'),
        (volume_claim(metadata=BOUND, volumeName="pv"), [], 'persistentvolumes "pv" not found'),
    ],
)
def test_what_a_claim_names_and_is_not_there_ignores_the_pod_and_no_other(
    make: Any, claim: Any, volumes: Any, text: str
) -> None:
    solution = solved(make, [pod_with(make, "pvc"), make.pod("other")], [claim], volumes)
    assert text in solution.unplaced[0].reason.message
    assert [pod.name for item in solution.new_node_claims for pod in item.pods] == ["other"]


@pytest.mark.parametrize("storage_class_name", ["", "gone"])
def test_a_bound_claim_needs_no_storage_class(make: Any, storage_class_name: str) -> None:
    claim = volume_claim(metadata=BOUND, volumeName="pv", storageClassName=storage_class_name)
    assert solved(make, [pod_with(make, "pvc")], [claim], [volume()]).unplaced == ()


@pytest.mark.parametrize(("zone", "placed"), [("test-zone-2", True), ("nowhere", False)])
def test_zones_bind_ephemeral_volumes_as_well(make: Any, zone: str, *, placed: bool) -> None:
    unbound = solved(
        make,
        [ephemeral(make, storageClassName="sc")],
        [volume_claim("pod-e-data", storageClassName="sc")],
        classes=[storage_class("sc", zone)],
    )
    bound = solved(
        make,
        [ephemeral(make)],
        [volume_claim("pod-e-data", metadata=BOUND, volumeName="pv")],
        [volume("pv", {ZONE: [zone]})],
    )
    for solution in (unbound, bound):
        assert zones(solution) == ([(zone,)] if placed else [])
        assert bool(solution.unplaced) is not placed


@pytest.mark.parametrize("local", [{"local": {"path": "/x"}}, {"hostPath": {"path": "/x"}}])
def test_a_local_volume_with_a_place_that_names_only_its_host_may_be_anywhere(make: Any, local: Any) -> None:
    item = volume("pv", {HOSTNAME: ["gone"]}, {ZONE: ["nowhere"]}, **local)
    claim = volume_claim(metadata=BOUND, volumeName="pv")
    assert solved(make, [pod_with(make, "pvc")], [claim], [item]).unplaced == ()


def test_volumes_in_one_of_two_zones_let_pods_keep_apart(make: Any) -> None:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    keep_apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    names = ("a", "b")
    pods = [pod_with(make, name, labels={"app": "x"}, affinity=keep_apart) for name in names]
    claims = [volume_claim(name, metadata=BOUND, volumeName=name) for name in names]
    volumes = [volume(name, {ZONE: ["test-zone-1"]}, {ZONE: ["test-zone-2"]}) for name in names]
    assert sorted(zones(solved(make, pods, claims, volumes))) == [("test-zone-1",), ("test-zone-2",)]


def test_the_zone_of_a_volume_does_not_count_as_a_choice_of_domains(make: Any) -> None:
    """A volume binds its pod's node; the pod may still count every zone when it spreads."""
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "minDomains": 3,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    given = {"labels": {"app": "x"}, "topologySpreadConstraints": [constraint]}
    pods = [make.pod(requests={"cpu": "2"}, **given) for _ in range(3)]
    pods.append(pod_with(make, "pvc", requests={"cpu": "1"}, **given))
    claim = volume_claim(metadata=BOUND, volumeName="pv")
    solution = solved(make, pods, [claim], [volume("pv", {ZONE: ["test-zone-1"]})])
    counts: dict[tuple[str, ...], int] = {}
    for item, zone in zip(solution.new_node_claims, zones(solution), strict=True):
        counts[zone] = counts.get(zone, 0) + len(item.pods)
    assert counts == {("test-zone-1",): 2, ("test-zone-2",): 1, ("test-zone-3",): 1}


def test_volumes_that_are_not_attached_are_not_counted(make: Any) -> None:
    names = [f"nfs-{index}" for index in range(4)]
    claims = [volume_claim(name, metadata=BOUND, volumeName=name) for name in names]
    volumes = [volume(name, nfs={"server": "s", "path": "/"}) for name in names]
    given = {"nodes": [make.node("n")], "csi_nodes": [csi_node("n", 1)]}
    solution = solved(make, [pod_with(make, name) for name in names], claims, volumes, **given)
    assert [len(item.pods) for item in solution.existing] == [4]


def test_two_volumes_a_pod_and_ten_attachments_make_five_pods_on_the_node(make: Any) -> None:
    pairs = [(f"a{index}", f"b{index}") for index in range(6)]
    claims = [volume_claim(name, storageClassName="sc") for pair in pairs for name in pair]
    given = {"nodes": [make.node("n", allocatable={"pods": "50"})], "csi_nodes": [csi_node("n", 10)]}
    pods = [pod_with(make, *pair) for pair in pairs]
    solution = solved(make, pods, claims, (), [storage_class()], **given)
    assert [len(item.pods) for item in solution.existing] == [5]
    assert [len(item.pods) for item in solution.new_node_claims] == [1]


def test_why_a_node_takes_no_more_volumes_is_told(make: Any) -> None:
    names = ("a", "b")
    claims = [volume_claim(name, storageClassName="sc") for name in names]
    given = {"nodes": [make.node("n")], "csi_nodes": [csi_node("n", 1)], "pools": []}
    solution = solved(make, [pod_with(make, *names)], claims, (), [storage_class()], **given)
    assert (
        "checking volume usage, would exceed volume limit "
        "(provisioner=linodebs.csi.linode.com, volume-count=2, volume-limit=1)"
    ) in {item.message for item in solution.unplaced[0].reason.walk()}


@pytest.mark.parametrize("bound", [True, False])
def test_volumes_from_the_tree_count_for_the_driver_that_took_over(make: Any, *, bound: bool) -> None:
    names = ("a", "b")
    if bound:
        claims = [volume_claim(name, metadata=BOUND, volumeName=name) for name in names]
        volumes = [volume(name, awsElasticBlockStore={"volumeID": name}) for name in names]
    else:
        claims, volumes = [volume_claim(name, storageClassName="sc") for name in names], []
    driver = {"name": "ebs.csi.aws.com", "allocatable": {"count": 1}}
    limits = codec.convert({"metadata": {"name": "n"}, "spec": {"drivers": [driver]}}, CSINode)
    classes = [storage_class("sc", provisioner="kubernetes.io/aws-ebs")]
    pods = [pod_with(make, name) for name in names]
    solution = solved(make, pods, claims, volumes, classes, nodes=[make.node("n")], csi_nodes=[limits])
    assert [len(item.pods) for item in solution.existing] == [1]


@pytest.mark.parametrize(
    ("claim", "options", "text"),
    [
        (
            volume_claim(storageClassName="sc"),
            {"unsupported_topology_keys": (ZONE,)},
            (
                "storage class uses unsupported topology key "
                f"(PersistentVolumeClaim=default/pvc, StorageClass=sc, TopologyKey={ZONE})"
            ),
        ),
        (
            volume_claim(storageClassName="sc"),
            {"unsupported_provisioners": ("linodebs.csi.linode.com",)},
            (
                "provisioner is not supported (PersistentVolumeClaim=default/pvc, "
                "Provisioner=linodebs.csi.linode.com, StorageClass=sc)"
            ),
        ),
        (
            volume_claim(metadata=BOUND, volumeName="pv"),
            {"unsupported_provisioners": ("old.example.com",)},
            (
                "provisioner is not supported (PersistentVolume=pv, PersistentVolumeClaim=default/pvc, "
                "Provisioner=old.example.com, StorageClass=)"
            ),
        ),
    ],
)
def test_what_the_provider_cannot_attach_or_place_is_refused(
    make: Any, claim: Any, options: dict[str, Any], text: str
) -> None:
    item = volume("pv", csi={"driver": "old.example.com", "volumeHandle": "x"})
    given = {"classes": [storage_class("sc", "test-zone-1")], "options": options}
    (unplaced,) = solved(make, [pod_with(make, "pvc")], [claim], [item], **given).unplaced
    assert unplaced.reason.message == f"ignoring pod, failed to validate pvc, {text}"
    assert solved(make, [pod_with(make, "pvc")], [claim], [item], given["classes"]).unplaced == ()
