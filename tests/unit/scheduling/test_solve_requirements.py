"""What pods select and what NodeClaims say of it (spec/karpenter-scheduling.md 8.1, 8.4, 8.6, 8.8)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NODEPOOL, INSTANCE_TYPE = "karpenter.sh/nodepool", "node.kubernetes.io/instance-type"
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
TEAM = "example.com/team"

Expression = tuple[str, str, list[str]]


def term(*expressions: Expression) -> dict[str, Any]:
    return {
        "matchExpressions": [
            {"key": key, "operator": operator, "values": values} for key, operator, values in expressions
        ]
    }


def affinity(
    required: list[list[Expression]] | None = None, preferred: list[tuple[int, list[Expression]]] | None = None
) -> dict[str, Any]:
    node: dict[str, Any] = {}
    if required:
        terms = [term(*expressions) for expressions in required]
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if preferred:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": term(*expressions)} for weight, expressions in preferred
        ]
    return {"nodeAffinity": node}


def values(claim: Any, key: str) -> tuple[str, ...]:
    return next((item.values for item in claim.node_claim.spec.requirements if item.key == key), ())


# Selecting


@pytest.mark.parametrize(
    ("key", "value", "nonsense"),
    [
        (NODEPOOL, "default", "no-such-pool"),
        (ZONE, "test-zone-2", "no-such-zone"),
        (INSTANCE_TYPE, "small-instance-type", "no-such-type"),
        (ARCH, "arm64", "no-such-arch"),
        (OS, "linux", "no-such-os"),
        (CAPACITY_TYPE, "spot", "no-such-kind"),
    ],
)
def test_pods_are_pinned_by_well_known_labels(make: Any, key: str, value: str, nonsense: str) -> None:
    (claim,) = make.solve([make.pod(nodeSelector={key: value})]).new_node_claims
    assert values(claim, key) == (value,)
    assert make.solve([make.pod(nodeSelector={key: nonsense})]).new_node_claims == ()


@pytest.mark.parametrize(
    ("wanted", "placed"),
    [
        ((TEAM, "In", ["a"]), True),
        ((TEAM, "Exists", []), True),
        ((TEAM, "NotIn", ["b"]), True),
        ((TEAM, "In", ["b"]), False),
        ((TEAM, "NotIn", ["a"]), False),
        ((TEAM, "DoesNotExist", []), False),
    ],
)
def test_custom_labels_of_the_pool_decide(make: Any, wanted: Expression, *, placed: bool) -> None:
    solution = make.solve([make.pod(affinity=affinity([[wanted]]))], [make.pool(labels={TEAM: "a"})])
    assert bool(solution.new_node_claims) is placed


def test_that_a_label_exists_does_not_undo_its_value(make: Any) -> None:
    pods = [make.pod(nodeSelector={TEAM: "a"}), make.pod(affinity=affinity([[(TEAM, "Exists", [])]]))]
    (claim,) = make.solve(pods, [make.pool(requirements=[(TEAM, "Exists")])]).new_node_claims
    assert claim.node_claim.metadata.labels[TEAM] == "a"
    assert len(claim.pods) == 2


def test_compatible_pods_share_a_node_and_others_do_not(make: Any) -> None:
    pool = make.pool(requirements=[(TEAM, "In", "a", "b")])
    pods = [make.pod(nodeSelector={TEAM: team}) for team in ("a", "b")]
    same = [make.pod(nodeSelector={TEAM: "a"}), make.pod(affinity=affinity([[(TEAM, "NotIn", ["b"])]]))]
    assert len(make.solve(pods, [pool]).new_node_claims) == 2
    assert len(make.solve(same, [pool]).new_node_claims) == 1


def test_a_hostname_cannot_be_asked_of_a_new_node(make: Any) -> None:
    (unplaced,) = make.solve([make.pod(nodeSelector={HOSTNAME: "wanted"})]).unplaced
    assert f"using label {HOSTNAME} is not allowed" in unplaced.reason.message


@pytest.mark.parametrize("key", ["karpenter.sh/mine", "sub.karpenter.sh/mine"])
def test_restricted_labels_are_refused(make: Any, key: str) -> None:
    (unplaced,) = make.solve([make.pod(nodeSelector={key: "x"})]).unplaced
    assert unplaced.reason.code == "ignored"
    assert f"using label {key} is not allowed" in unplaced.reason.message


@pytest.mark.parametrize("key", ["kubernetes.io/mine", "sub.kubernetes.io/mine", "k8s.io/mine", "sub.k8s.io/mine"])
def test_domains_of_kubernetes_are_custom_labels_like_any_other(make: Any, key: str) -> None:
    pool = make.pool(requirements=[(key, "In", "x")])
    (claim,) = make.solve([make.pod(nodeSelector={key: "x"})], [pool]).new_node_claims
    assert claim.node_claim.metadata.labels[key] == "x"


# Giving way


def test_preferences_that_can_hold_do_and_others_give_way(make: Any) -> None:
    def zone(expression: Expression) -> tuple[str, ...]:
        (claim,) = make.solve([make.pod(affinity=affinity(preferred=[(1, [expression])]))]).new_node_claims
        return values(claim, ZONE)

    assert zone((ZONE, "In", ["test-zone-2"])) == ("test-zone-2",)
    assert zone((ZONE, "In", ["nowhere"])) == ()
    (claim,) = make.solve(
        [make.pod(affinity=affinity(preferred=[(1, [(ZONE, "NotIn", ["test-zone-1", "test-zone-2"])])]))]
    ).new_node_claims
    (item,) = [item for item in claim.node_claim.spec.requirements if item.key == ZONE]
    assert (item.operator, item.values) == ("NotIn", ("test-zone-1", "test-zone-2"))


def test_selector_requirement_and_preference_hold_together(make: Any) -> None:
    pod = make.pod(
        nodeSelector={ARCH: "amd64"},
        affinity=affinity(
            [[(ZONE, "In", ["test-zone-1", "test-zone-2"])]], [(1, [(ZONE, "In", ["test-zone-2", "test-zone-3"])])]
        ),
    )
    (claim,) = make.solve([pod]).new_node_claims
    assert (values(claim, ARCH), values(claim, ZONE)) == (("amd64",), ("test-zone-2",))


@pytest.mark.parametrize(
    "preferred",
    [
        [(ZONE, "In", ["test-zone-3"])],
        [(ZONE, "In", ["test-zone-1"]), (ZONE, "In", ["test-zone-2"])],
    ],
)
def test_a_preference_against_a_requirement_or_itself_gives_way(make: Any, preferred: list[Expression]) -> None:
    pod = make.pod(affinity=affinity([[(ZONE, "In", ["test-zone-1"])]], [(9, preferred)]))
    (claim,) = make.solve([pod]).new_node_claims
    assert values(claim, ZONE) == ("test-zone-1",)


def test_an_or_term_is_given_up_before_any_preference(make: Any) -> None:
    pod = make.pod(
        affinity=affinity(
            [[(ZONE, "In", ["nowhere"])], [(ZONE, "In", ["test-zone-1", "test-zone-2"])]],
            [(1, [(ZONE, "In", ["test-zone-2"])])],
        )
    )
    (claim,) = make.solve([pod]).new_node_claims
    assert values(claim, ZONE) == ("test-zone-2",)


def test_a_preference_that_cannot_hold_forces_no_node_of_its_own(make: Any) -> None:
    hopeless = affinity(preferred=[(1, [(INSTANCE_TYPE, "In", ["no-such-type"])])])
    solution = make.solve([make.pod(), make.pod(affinity=hopeless)])
    assert [len(claim.pods) for claim in solution.new_node_claims] == [2]


def test_affinity_is_given_up_before_a_soft_taint_is_tolerated(make: Any) -> None:
    taint = {"key": "soft", "effect": "PreferNoSchedule"}
    pools = [
        make.pool("soft", taints=[taint], requirements=[(ZONE, "In", "test-zone-1")]),
        make.pool("plain", requirements=[(ZONE, "In", "test-zone-2")]),
    ]
    pod = make.pod(affinity=affinity(preferred=[(1, [(ZONE, "In", ["test-zone-1"])])]))
    (claim,) = make.solve([pod], pools).new_node_claims
    assert claim.node_pool == "plain"


def test_with_preferences_ignored_nothing_soft_separates_pods(make: Any) -> None:
    selector = {"matchLabels": {"app": "x"}}
    soft = [{"weight": 1, "podAffinityTerm": {"topologyKey": HOSTNAME, "labelSelector": selector}}]
    elsewhere = [{"weight": 1, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"a": "b"}}}}]
    spread = {
        "topologyKey": HOSTNAME,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": selector,
    }
    pods = [
        make.pod(
            labels={"app": "x"},
            topologySpreadConstraints=[spread],
            affinity={
                **affinity(preferred=[(1, [(ZONE, "In", ["test-zone-2"])])]),
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": soft},
                "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": elsewhere},
            },
        )
        for _ in range(5)
    ]
    assert len(make.solve(pods).new_node_claims) == 5
    (claim,) = make.solve(pods, options={"preference_policy": "Ignore"}).new_node_claims
    assert (len(claim.pods), values(claim, ZONE)) == (5, ())


# The NodeClaim


@pytest.mark.parametrize(
    ("operator", "given", "label"),
    [
        ("In", ("b", "a"), "a"),
        ("NotIn", ("0", "1"), "2"),
        ("Exists", (), "0"),
        ("Gt", ("4",), "5"),
        ("Gte", ("4",), "4"),
        ("Lt", ("4",), "0"),
        ("DoesNotExist", (), None),
    ],
)
def test_custom_requirements_become_labels(make: Any, operator: str, given: tuple[str, ...], label: str | None) -> None:
    pool = make.pool(requirements=[(TEAM, operator, *given)])
    (claim,) = make.solve([make.pod()], [pool]).new_node_claims
    assert claim.node_claim.metadata.labels.get(TEAM) == label


def test_well_known_requirements_do_not_become_labels(make: Any) -> None:
    pool = make.pool(requirements=[(ZONE, "In", "test-zone-1"), (ARCH, "In", "amd64"), (CAPACITY_TYPE, "In", "spot")])
    (claim,) = make.solve([make.pod()], [pool]).new_node_claims
    assert set(claim.node_claim.metadata.labels) == {NODEPOOL, "karpenter.test.sh/testnodeclass"}


def test_template_fields_are_stamped_on_the_claim(make: Any) -> None:
    pool = make.pool(
        taints=[{"key": "t", "effect": "NoExecute"}], startup_taints=[{"key": "s", "effect": "NoSchedule"}]
    )
    spec = msgspec.structs.replace(pool.spec.template.spec, termination_grace_period="5m0s", expire_after="Never")
    template = msgspec.structs.replace(pool.spec.template, spec=spec)
    pool = msgspec.structs.replace(pool, spec=msgspec.structs.replace(pool.spec, template=template))
    (planned,) = make.solve([make.pod(tolerations=[{"operator": "Exists"}])], [pool]).new_node_claims
    claim = planned.node_claim.spec
    assert (claim.termination_grace_period, claim.expire_after) == ("5m0s", "Never")
    assert (claim.taints, claim.startup_taints) == (spec.taints, spec.startup_taints)
    assert claim.node_class_ref == spec.node_class_ref


def test_requirements_are_written_sorted_with_every_plan_and_kind(make: Any) -> None:
    (planned,) = make.solve([make.pod()]).new_node_claims
    requirements = planned.node_claim.spec.requirements
    assert [item.key for item in requirements] == sorted(item.key for item in requirements)
    assert values(planned, INSTANCE_TYPE) == tuple(sorted(planned.instance_types))
    assert values(planned, CAPACITY_TYPE) == ("on-demand", "spot")
    assert planned.instance_types[0] == "small-instance-type"


def test_capacity_types_are_those_that_the_plans_can_be_bought_as(make: Any) -> None:
    plans = [make.plan("a", capacity_types=("on-demand",)), make.plan("b", capacity_types=("spot",))]
    pod = make.pod(nodeSelector={INSTANCE_TYPE: "a"})
    (claim,) = make.solve([pod], plans=plans).new_node_claims
    assert values(claim, CAPACITY_TYPE) == ("on-demand",)


# Plans


@pytest.mark.parametrize(
    ("arch", "kind", "zone", "expected"),
    [
        ("amd64", "spot", "test-zone-1", "cheap-amd"),
        ("amd64", "on-demand", "test-zone-2", "dear-amd"),
        ("arm64", "on-demand", "test-zone-1", "arm"),
        ("amd64", "on-demand", "test-zone-1", "dear-amd"),
    ],
)
def test_the_cheapest_plan_that_matches_comes_first(make: Any, arch: str, kind: str, zone: str, expected: str) -> None:
    plans = [
        make.plan("cheap-amd", price=1, zones=("test-zone-1",), capacity_types=("spot",)),
        make.plan("dear-amd", price=3),
        make.plan("arm", price=2, arch=("arm64",), zones=("test-zone-1",)),
    ]
    pool = make.pool(requirements=[(ARCH, "In", arch)])
    pod = make.pod(nodeSelector={CAPACITY_TYPE: kind, ZONE: zone})
    (claim,) = make.solve([pod], [pool], plans).new_node_claims
    assert claim.instance_types[0] == expected


def test_a_cheaper_on_demand_plan_beats_a_dearer_spot_plan(make: Any) -> None:
    plans = [make.plan("spot", price=2, capacity_types=("spot",)), make.plan("od", capacity_types=("on-demand",))]
    assert make.solve([make.pod()], plans=plans).new_node_claims[0].instance_types == ("od", "spot")


def test_no_plan_for_a_combination_gives_no_node(make: Any) -> None:
    pod = make.pod(nodeSelector={ARCH: "arm64", ZONE: "test-zone-1"})
    plans = [make.plan("arm", arch=("arm64",), zones=("test-zone-2",)), make.plan("amd")]
    assert make.solve([pod], plans=plans).new_node_claims == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"nodeSelector": {ARCH: "amd64"}}, {"nodeSelector": {ARCH: "arm64"}}),
        ({"nodeSelector": {OS: "linux"}}, {"nodeSelector": {OS: "windows"}}),
        ({"nodeSelector": {ZONE: "test-zone-1"}}, {"nodeSelector": {ZONE: "test-zone-2"}}),
        (
            {"nodeSelector": {INSTANCE_TYPE: "small-instance-type"}},
            {"nodeSelector": {INSTANCE_TYPE: "default-instance-type"}},
        ),
        ({"requests": {"fake.com/vendor-a": "1"}}, {"nodeSelector": {ARCH: "arm64"}}),
    ],
)
def test_pods_that_need_different_nodes_get_them(make: Any, first: dict[str, Any], second: dict[str, Any]) -> None:
    solution = make.solve([make.pod(**first), make.pod(**second)])
    assert [len(claim.pods) for claim in solution.new_node_claims] == [1, 1]


@pytest.mark.parametrize(("wanted", "plan"), [("In", "optional"), ("DoesNotExist", "plain")])
def test_an_optional_label_of_plans_can_be_asked_for_and_refused(make: Any, wanted: str, plan: str) -> None:
    key = "example.com/special"
    plans = [
        make.plan("optional", extra=[(key, "In", "yes")]),
        make.plan("plain", extra=[(key, "DoesNotExist")]),
    ]
    pod = make.pod(affinity=affinity([[(key, wanted, ["yes"] if wanted == "In" else [])]]))
    (claim,) = make.solve([pod], plans=plans, options={"well_known_labels": (key,)}).new_node_claims
    assert claim.instance_types == (plan,)


def test_a_pod_that_contradicts_itself_on_a_known_label_is_told_in_the_contracts_words(make: Any) -> None:
    pod = make.pod(
        nodeSelector={ZONE: "test-zone-1"}, affinity=affinity([[(ZONE, "NotIn", ["test-zone-1", "test-zone-2"])]])
    )
    (unplaced,) = make.solve([pod]).unplaced
    assert unplaced.reason.message.startswith("no instance type met the scheduling requirements or had")
    assert f"{ZONE} DoesNotExist" in unplaced.reason.message
    assert f"key {ZONE}, the pod's own requirements on it exclude each other" in {
        item.message for item in unplaced.reason.walk()
    }
