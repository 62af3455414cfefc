"""The controller may do what it does, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import yaml
from rendering import TOKEN, Helm

from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.flags import read_settings
from karpenter_linode.operator.options import Options
from karpenter_linode.operator.permissions import permissions
from karpenter_linode.sim.cluster import EmbeddedCluster
from karpenter_linode.sim.loop import run_virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from karpenter_linode.sim.kube_api import SimKubeApi

pytestmark = pytest.mark.charts

Right: TypeAlias = tuple[str, str, str]  # group, resource, verb

EXAMPLES = Path(__file__).parents[2] / "examples"
# Rights that no call uses: the API server asks for them where it guards owner references that block a deletion.
FOR_OWNER_REFERENCES: set[Right] = {
    ("karpenter.sh", "nodeclaims/finalizers", "update"),
    ("karpenter.sh", "nodepools/finalizers", "update"),
}
EVENTS: set[Right] = {("", "events", "create"), ("", "events", "patch")}


def manifests(name: str) -> list[dict[str, Any]]:
    files = sorted((EXAMPLES / name).glob("*.yaml"))
    return [item for path in files for item in yaml.safe_load_all(path.read_text()) if item]


def stubborn() -> list[dict[str, Any]]:
    """A pod that runs for ever, whose budget forbids its eviction, on a node that must end soon."""
    found = manifests("one-gpu")
    for item in found:
        if item["kind"] == "NodePool":
            item["spec"]["template"]["spec"] |= {"expireAfter": "30m", "terminationGracePeriod": "10m"}
        if item["kind"] == "Pod":
            item["metadata"] |= {"annotations": {}, "labels": {"app": "stubborn"}}
            item["spec"]["terminationGracePeriodSeconds"] = 120
    selector = {"matchLabels": {"app": "stubborn"}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "never"}}
    return [*found, {**budget, "spec": {"maxUnavailable": 0, "selector": selector}}]


async def until_quiet(world: EmbeddedWorld) -> None:
    await world.run_until_quiet(7200)


async def long_enough_to_expire(world: EmbeddedWorld) -> None:
    await world.clock.sleep(3600)


STORIES: dict[str, tuple[Callable[[], list[dict[str, Any]]], Callable[[EmbeddedWorld], Awaitable[None]]]] = {
    "one-gpu": (lambda: manifests("one-gpu"), until_quiet),
    "shared-claim": (lambda: manifests("shared-claim"), until_quiet),
    "two-gpus": (lambda: manifests("two-gpus"), until_quiet),
    "expired": (stubborn, long_enough_to_expire),
}


@pytest.fixture(scope="module")
def used() -> set[Right]:
    """What controllers were seen to do in several worlds."""
    apis: list[SimKubeApi] = []
    make = EmbeddedCluster.kube_api

    def noted(cluster: EmbeddedCluster, user: str = "karpenter") -> SimKubeApi:
        apis.append(make(cluster, user))
        return apis[-1]

    async def live(objects: list[dict[str, Any]], story: Callable[[EmbeddedWorld], Awaitable[None]]) -> None:
        world = EmbeddedWorld(objects, seed=7, options=Options(ignore_dra_requests=False))
        await world.start()
        try:
            await story(world)
        finally:
            await world.stop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddedCluster, "kube_api", noted)
        for objects, story in STORIES.values():
            run_virtual(live(objects(), story))
    calls = [call for api in apis for call in api.calls]
    assert {call.user for call in calls} == {"karpenter"}
    return {(call.group, f"{call.resource}/{call.subresource}".rstrip("/"), call.verb) for call in calls}


@pytest.fixture(scope="module")
def granted(newest_helm: Helm) -> set[Right]:
    """What the cluster roles that are bound to the controller's account allow."""
    objects = newest_helm.render(*TOKEN)
    bindings = [item for (kind, _), item in objects.items() if kind == "ClusterRoleBinding"]
    account = {"kind": "ServiceAccount", "name": "karpenter", "namespace": "karpenter"}
    assert all(binding["subjects"] == [account] for binding in bindings)
    roles = [objects["ClusterRole", binding["roleRef"]["name"]] for binding in bindings]
    return {right for role in roles for rule in role["rules"] for right in rights_of(rule)}


def rights_of(rule: dict[str, Any]) -> set[Right]:
    assert rule.keys() == {"apiGroups", "resources", "verbs"}
    return {(g, resource, verb) for g in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}


def test_the_stories_use_every_way_of_writing(used: set[Right]) -> None:
    assert {verb for _, _, verb in used} == {"get", "list", "watch", "create", "patch", "delete"}


@pytest.fixture(scope="module")
def checked() -> set[Right]:
    """What the controller asks for when it starts."""
    return {(item.group, item.resource, item.verb) for item in permissions(with_devices=True)}


def test_everything_that_it_does_is_checked_when_it_starts(used: set[Right], checked: set[Right]) -> None:
    assert used <= checked


def test_nothing_is_checked_that_it_does_not_do(used: set[Right], checked: set[Right]) -> None:
    assert checked - used == EVENTS  # the recorder of events does not go through the embedded API


def test_everything_that_it_does_is_allowed(checked: set[Right], granted: set[Right]) -> None:
    assert checked <= granted


def test_nothing_is_allowed_that_it_does_not_do(checked: set[Right], granted: set[Right]) -> None:
    # Who may list a kind sees every object of it: reading a single one of these is no further right.
    readable = {(group, resource, "get") for group, resource, verb in checked if verb == "list"}
    assert granted - checked - readable == FOR_OWNER_REFERENCES


SPREAD = "settings.schedulerConfig.podTopologySpread.defaultConstraints[0].maxSkew=1"
BY_HAND = "controller.env[0].name=SCHEDULER_CONFIG,controller.env[0].value=x"


@pytest.mark.parametrize("setting", [SPREAD, BY_HAND])
def test_a_default_topology_spread_is_allowed_to_read_what_it_reads(
    newest_helm: Helm, granted: set[Right], setting: str
) -> None:
    role = newest_helm.render(*TOKEN, "--set", setting)["ClusterRole", "karpenter-core"]
    more = {right for rule in role["rules"] for right in rights_of(rule)} - granted
    asked = set(permissions(with_devices=True, with_spread=True)) - set(permissions(with_devices=True))
    wanted = {(item.group, item.resource, item.verb) for item in asked}
    assert more == wanted | {(group, resource, "get") for group, resource, _ in wanted}


def test_no_wildcards(granted: set[Right]) -> None:
    assert not any("*" in part for right in granted for part in right)


def test_no_secrets_and_no_rights_to_give_rights(granted: set[Right]) -> None:
    resources = {resource for _, resource, _ in granted}
    assert resources.isdisjoint({"secrets", "configmaps", "serviceaccounts", "serviceaccounts/token"})
    assert not any(group == "rbac.authorization.k8s.io" or verb == "impersonate" for group, _, verb in granted)


def test_in_its_own_namespace_it_may_hold_its_lease(newest_helm: Helm) -> None:
    objects = newest_helm.render(*TOKEN)
    roles = {name: item for (kind, name), item in objects.items() if kind == "Role"}
    assert roles.keys() == {"karpenter"}
    assert roles["karpenter"]["metadata"]["namespace"] == "karpenter"
    allowed = {
        (*right, name)
        for rule in roles["karpenter"]["rules"]
        for name in rule.pop("resourceNames", [""])
        for right in rights_of(rule)
    }
    name = read_settings({}, {"CLUSTER_NAME": "lab"}).lease_name
    asked = permissions(with_devices=True, lease_namespace="karpenter", lease_name=name)
    assert allowed == {(item.group, item.resource, item.verb, item.name) for item in asked if item.namespace}


def test_administrators_get_the_resources(newest_helm: Helm) -> None:
    role = newest_helm.render(*TOKEN)["ClusterRole", "karpenter-admin"]
    assert role["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"] == "true"
    verbs = {"get", "list", "watch", "create", "delete", "patch"}
    rights = {right for rule in role["rules"] for right in rights_of(rule)}
    kinds = [("karpenter.sh", name) for name in ("nodepools", "nodepools/status", "nodeclaims", "nodeclaims/status")]
    kinds.append(("karpenter.k8s.linode", "linodenodeclasses"))
    assert rights == {(*kind, verb) for kind in kinds for verb in verbs}


def test_further_rules_join_those_of_the_core(newest_helm: Helm) -> None:
    rule = "additionalClusterRoleRules[0].verbs[0]=get,additionalClusterRoleRules[0].nonResourceURLs[0]=/x"
    role = newest_helm.render(*TOKEN, "--set", rule)["ClusterRole", "karpenter-core"]
    assert role["rules"][-1] == {"nonResourceURLs": ["/x"], "verbs": ["get"]}
