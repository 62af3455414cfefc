"""From manifests to a ``Problem``, without a cluster and without a network: what the controllers would see.

The objects go into the same mirrored state that the controllers keep, and the problem is posed by the same function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from karpenter_linode.cluster.pending import pending_pods
from karpenter_linode.cluster.problem import build_problem
from karpenter_linode.cluster.state import ClusterState
from karpenter_linode.cluster.view import is_supported
from karpenter_linode.dra.claims import make_claim
from karpenter_linode.explain.text import counted, names
from karpenter_linode.linode.instance_types import build_instance_types
from karpenter_linode.linode.tables import bundled_availability
from karpenter_linode.model.core import Namespace, Node, Pod, PodResourceClaimStatus
from karpenter_linode.model.karpenter import LinodeNodeClass, NodePool
from karpenter_linode.model.meta import Condition, KubeObject, ObjectMeta
from karpenter_linode.model.resource import ResourceClaim, ResourceClaimTemplate
from karpenter_linode.scheduling.pods import is_terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from karpenter_linode.cli.manifests import Manifests
    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.linode import LinodeType
    from karpenter_linode.model.reason import Reason
    from karpenter_linode.scheduling.problem import Problem, SchedulingOptions

# A time for inputs that carry none: the same input always gives the same answer, so the wall clock stays out of it.
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_READY: Final = ("ValidationSucceeded", "NodeClassReady", "Ready")

K = TypeVar("K", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class Offline:
    """A problem posed from files.

    Args:
        problem: what the solver is asked.
        ignored: pods that are not even asked about, with the reason.
        notes: what was assumed.
    """

    problem: Problem
    ignored: tuple[tuple[Pod, Reason], ...] = ()
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Market:
    """What Linode sells: plans as ``GET /linode/types`` lists them; the region decides prices and availability."""

    region: str
    types: tuple[LinodeType, ...]


def pose(manifests: Manifests, market: Market, options: SchedulingOptions) -> Offline:
    """The scheduling problem of a set of manifests.

    Args:
        manifests: the objects.
        market: the plans to build from.
        options: settings that change scheduling.
    """
    notes: list[str] = []
    objects = prepared(manifests, notes)
    now = max((time for obj in objects for time in _times(obj.metadata)), default=EPOCH)
    state = ClusterState(with_spread=bool(options.default_spread))
    for obj in objects:
        if type(obj) in state.kinds:
            state.observe(obj)
    view = state.snapshot()
    pending = pending_pods(view)
    classes = {item.name: item for item in view.all(LinodeNodeClass)}
    plans = {pool.name: _plans(pool, classes, market, options, notes) for pool in view.all(NodePool)}
    problem = build_problem(view, pending, plans, options, now)
    if problem.pods and not plans:
        notes.append("the input holds no NodePool: no node can be built")
    notes += _unseen(view)
    return Offline(problem, pending.ignored, list(dict.fromkeys(notes)))


def prepared(manifests: Manifests, notes: list[str]) -> list[KubeObject]:
    """The objects as a cluster would hold them: with identities, made claims, and node pools that are ready.

    Args:
        manifests: the objects.
        notes: takes in what was assumed.
    """
    objects = [_identified(loaded.obj, number) for number, loaded in enumerate(manifests.objects, 1)]
    templates = {obj.key: obj for obj in objects if isinstance(obj, ResourceClaimTemplate)}
    taken = {obj.key for obj in objects if isinstance(obj, ResourceClaim)}
    result: list[KubeObject] = _missing_namespaces(objects)
    remade: list[str] = []
    for obj in objects:
        if isinstance(obj, NodePool):
            result.append(_ready(obj, notes))
        elif isinstance(obj, Pod):
            again = _remade(obj, templates, taken)
            pod, claims = _with_claims(obj, templates, taken)
            result += [_waiting(pod, notes), *again, *claims]
            remade += [claim.key for claim in again]
        else:
            result.append(obj)
    if remade:
        notes.append(
            f"made again from their templates, since the input does not hold them: "
            f"{counted(len(remade), 'ResourceClaim')} that pods name ({names(remade)})"
        )
    return result


def _identified(obj: K, number: int) -> K:
    """UIDs count in the order of the input, so that equal pods are placed in that order."""
    if obj.metadata.uid:
        return obj
    return replace(obj, metadata=replace(obj.metadata, uid=f"00000000-0000-4000-8000-{number:012d}"))


def _ready(pool: NodePool, notes: list[str]) -> NodePool:
    stated = {condition.type: condition for condition in pool.status.conditions}
    unready = [stated[name] for name in _READY if name in stated and stated[name].status != "True"]
    if unready:
        notes.append(f"NodePool {pool.name} says {unready[0].type}={unready[0].status}; it is taken to be ready here")
    ready = tuple(Condition(type=name, status="True") for name in _READY)
    others = tuple(condition for condition in pool.status.conditions if condition.type not in _READY)
    return replace(pool, status=replace(pool.status, conditions=ready + others))


def _missing_namespaces(objects: list[KubeObject]) -> list[KubeObject]:
    """The namespaces that objects stand in but that the input does not hold, with the label every namespace has."""
    there = {obj.name for obj in objects if isinstance(obj, Namespace)}
    used = sorted({obj.namespace for obj in objects if obj.namespace} - there)
    return [Namespace(metadata=ObjectMeta(name=name, labels={_NAMESPACE_NAME: name})) for name in used]


def _with_claims(
    pod: Pod, templates: dict[str, ResourceClaimTemplate], taken: set[str]
) -> tuple[Pod, list[ResourceClaim]]:
    """The pod with the claims that the claim controller makes for it, unless it has them already."""
    made = {status.name for status in pod.status.resource_claim_statuses}
    claims, statuses = [], list(pod.status.resource_claim_statuses)
    for index, entry in enumerate(pod.spec.resource_claims):
        template = templates.get(f"{pod.namespace}/{entry.resource_claim_template_name}")
        if entry.name in made or template is None:
            continue
        name = f"{pod.name}-{entry.name}"
        while f"{pod.namespace}/{name}" in taken:
            name += "-x"
        taken.add(f"{pod.namespace}/{name}")
        claims.append(make_claim(pod, entry, template, name=name, uid=f"{pod.uid}-{index}"))
        statuses.append(PodResourceClaimStatus(name=entry.name, resource_claim_name=name))
    return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses))), claims


def _remade(pod: Pod, templates: dict[str, ResourceClaimTemplate], taken: set[str]) -> list[ResourceClaim]:
    """Claims that the pod's status names but that the input does not hold: a cluster was read without its claims."""
    if _is_placed(pod):
        return []
    named = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    claims = []
    for index, entry in enumerate(pod.spec.resource_claims):
        template = templates.get(f"{pod.namespace}/{entry.resource_claim_template_name}")
        name = named.get(entry.name)
        if template is not None and name and f"{pod.namespace}/{name}" not in taken:
            taken.add(f"{pod.namespace}/{name}")
            claims.append(make_claim(pod, entry, template, name=name, uid=f"{pod.uid}-{index}"))
    return claims


def _is_placed(pod: Pod) -> bool:
    """Whether a pod has a node or needs none any more."""
    return bool(pod.spec.node_name) or is_terminal(pod)


def _unseen(view: View) -> Iterator[str]:
    """What running pods refer to that is not in the input: nodes with room on them, claims with devices in use."""
    running = [pod for pod in view.all(Pod) if pod.spec.node_name and not is_terminal(pod)]
    nodes = {node.name for node in view.all(Node)}
    lost = [pod for pod in running if pod.spec.node_name not in nodes]
    if lost:
        yield (
            f"{counted(len(lost), 'running pod')} on nodes that are not in the input "
            f"({names(sorted({pod.spec.node_name for pod in lost}))}): the room on those nodes is not seen; put in "
            "nodes, nodeclaims, resourceslices and daemonsets as well"
        )
    claims = {claim.key for claim in view.all(ResourceClaim)}
    unseen = [f"{pod.namespace}/{name}" for pod in running for name in _claim_names(pod)]
    gone = sorted({key for key in unseen if key not in claims})
    if gone:
        yield (
            f"{counted(len(gone), 'ResourceClaim')} of running pods not in the input ({names(gone)}): their devices "
            "count as free; put in resourceclaims as well"
        )


def _claim_names(pod: Pod) -> Iterator[str]:
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or made.get(entry.name)
        if name:
            yield name


def _waiting(pod: Pod, notes: list[str]) -> Pod:
    """A pod without a node as kube-scheduler leaves it: marked as not schedulable, or gated."""
    if _is_placed(pod):
        return pod
    if pod.spec.scheduling_gates:
        notes.append(
            f"pod {pod.key} is held back by scheduling gate {pod.spec.scheduling_gates[0].name}: not planned for"
        )
        return pod
    unschedulable = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    others = tuple(condition for condition in pod.status.conditions if condition.type != "PodScheduled")
    return replace(pod, status=replace(pod.status, conditions=(*others, unschedulable)))


def _plans(
    pool: NodePool,
    classes: dict[str, LinodeNodeClass],
    market: Market,
    options: SchedulingOptions,
    notes: list[str],
) -> tuple[InstanceType, ...]:
    ref = pool.spec.template.spec.node_class_ref
    if not is_supported(ref):
        notes.append(
            f"NodePool {pool.name} uses {ref.group} {ref.kind}: not a class of this provider, so it builds nothing"
        )
        return ()
    node_class = classes.get(ref.name)
    if node_class is None:
        notes.append(f"LinodeNodeClass {ref.name} of NodePool {pool.name} is not in the input: an empty one is assumed")
    return build_instance_types(
        market.types,
        bundled_availability(market.region),
        market.region,
        node_class=node_class,
        ignore_dra_requests=options.ignore_dra_requests,
    )


def _times(meta: ObjectMeta) -> Iterable[datetime]:
    return (time for time in (meta.creation_timestamp, meta.deletion_timestamp) if time is not None)
