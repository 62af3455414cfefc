"""References between the objects of an input: claims, templates, device classes, node classes, and their selectors."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from karpenter_linode.cli.field_errors import field_text, path_of
from karpenter_linode.cluster.view import is_supported
from karpenter_linode.dra.validate import selector_problem, validate_claim_spec
from karpenter_linode.explain.text import names
from karpenter_linode.lifecycle.node_pool_validation import template_errors
from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import LinodeNodeClass, NodePool
from karpenter_linode.model.labels import ALIASES, WELL_KNOWN
from karpenter_linode.model.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate
from karpenter_linode.scheduling.pods import is_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.cli.errors import Finding
    from karpenter_linode.cli.manifests import Loaded, Manifests
    from karpenter_linode.cli.yaml_reader import Path
    from karpenter_linode.model.core import PodResourceClaim
    from karpenter_linode.model.resource import ResourceClaimSpec

_NEARLY: Final = 0.93  # a letter or two; instance-family, which somebody may have, is no misspelt instance-type


def reference_errors(manifests: Manifests) -> list[Finding]:
    """Everything in the input that refers to nothing, and every selector that does not compile, in input order."""
    known = _Known(manifests)
    findings: list[Finding] = []
    for loaded in manifests.objects:
        obj = loaded.obj
        if isinstance(obj, Pod):
            findings += _pod(obj, loaded, known)
        elif isinstance(obj, ResourceClaim):
            findings += _claim_spec(obj.spec, ("spec",), loaded, known)
        elif isinstance(obj, ResourceClaimTemplate):
            findings += _claim_spec(obj.spec.spec, ("spec", "spec"), loaded, known)
        elif isinstance(obj, DeviceClass):
            findings += _device_class(obj, loaded)
        elif isinstance(obj, NodePool):
            findings += _node_pool(obj, loaded)
    return findings


class _Known:
    """Names that may be referred to."""

    def __init__(self, manifests: Manifests) -> None:
        self.classes = {obj.name for obj, _ in manifests.of(DeviceClass)}
        self.claims = {obj.key for obj, _ in manifests.of(ResourceClaim)}
        self.templates = {obj.key for obj, _ in manifests.of(ResourceClaimTemplate)}


def _pod(pod: Pod, loaded: Loaded, known: _Known) -> Iterator[Finding]:
    """What a pod without a node refers to. Of others, templates and claims may be gone by now."""
    if pod.spec.node_name or is_terminal(pod):
        return
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for index, entry in enumerate(pod.spec.resource_claims):
        at: Path = ("spec", "resourceClaims", index)
        if entry.resource_claim_name:
            yield from _missing(
                pod.namespace,
                entry.resource_claim_name,
                "ResourceClaim",
                known.claims,
                loaded,
                (*at, "resourceClaimName"),
            )
        elif entry.name in made:
            yield from _made(pod, entry, made[entry.name], loaded, known)
        elif entry.resource_claim_template_name:
            yield from _missing(
                pod.namespace,
                entry.resource_claim_template_name,
                "ResourceClaimTemplate",
                known.templates,
                loaded,
                (*at, "resourceClaimTemplateName"),
            )


def _made(pod: Pod, entry: PodResourceClaim, claim: str | None, loaded: Loaded, known: _Known) -> Iterator[Finding]:
    """A claim that a cluster has made already: it is needed, or else the template to make it again."""
    template = f"{pod.namespace}/{entry.resource_claim_template_name}"
    if not claim or f"{pod.namespace}/{claim}" in known.claims or template in known.templates:
        return
    message = (
        f"ResourceClaim {pod.namespace}/{claim}, which the pod names, is not in the input, and neither is "
        f"ResourceClaimTemplate {template}; put in the cluster's resourceclaims as well"
    )
    yield loaded.finding(("status", "resourceClaimStatuses"), message)


def _missing(namespace: str, name: str, kind: str, known: set[str], loaded: Loaded, path: Path) -> Iterator[Finding]:
    if f"{namespace}/{name}" in known:
        return
    inside = sorted(key.partition("/")[2] for key in known if key.startswith(f"{namespace}/"))
    elsewhere = sorted(key for key in known if key.endswith(f"/{name}"))
    hint = f"; there is one in another namespace: {names(elsewhere)}" if elsewhere else offer(name, inside)
    yield loaded.finding(path, f"found {name!r}, but namespace {namespace} has no {kind} of that name{hint}")


def _claim_spec(spec: ResourceClaimSpec, at: Path, loaded: Loaded, known: _Known) -> Iterator[Finding]:
    for problem in validate_claim_spec(spec, field_text(at)):
        yield loaded.finding(path_of(problem.field), problem.message)
    for index, request in enumerate(spec.devices.requests):
        path: Path = (*at, "devices", "requests", index)
        if request.exactly is not None:
            yield from _class(request.exactly.device_class_name, (*path, "exactly", "deviceClassName"), loaded, known)
        for number, item in enumerate(request.first_available):
            where = (*path, "firstAvailable", number, "deviceClassName")
            yield from _class(item.device_class_name, where, loaded, known)


def _class(name: str, path: Path, loaded: Loaded, known: _Known) -> Iterator[Finding]:
    if name and name not in known.classes:
        hint = offer(name, sorted(known.classes))
        yield loaded.finding(path, f"found {name!r}, but there is no DeviceClass of that name{hint}")


def _device_class(device_class: DeviceClass, loaded: Loaded) -> Iterator[Finding]:
    for index, selector in enumerate(device_class.spec.selectors):
        message = selector_problem(selector.cel.expression) if selector.cel is not None else "field cel is missing"
        if message:
            yield loaded.finding(("spec", "selectors", index, "cel", "expression"), message)


def _node_pool(pool: NodePool, loaded: Loaded) -> Iterator[Finding]:
    """What keeps a NodePool from ever being ready."""
    for message in template_errors(pool.spec.template):
        yield loaded.finding(("spec", "template"), message)


def reference_warnings(manifests: Manifests) -> list[Finding]:
    """What NodePools name that is likely misspelt.

    A LinodeNodeClass that the input lacks though it holds others: the NodePool would not be ready. Without any they
    were left out, and empty ones are assumed. And a key of a requirement that is nearly the label of a plan: it is
    taken for a label of one's own, and every plan is allowed.

    Args:
        manifests: the objects.
    """
    return [*_missing_classes(manifests), *_misspelt_labels(manifests)]


def _missing_classes(manifests: Manifests) -> list[Finding]:
    known = sorted({node_class.name for node_class, _ in manifests.of(LinodeNodeClass)})
    path: Path = ("spec", "template", "spec", "nodeClassRef", "name")
    refs = [(pool.spec.template.spec.node_class_ref, loaded) for pool, loaded in manifests.of(NodePool)]
    return [
        loaded.finding(
            path, f"found {ref.name!r}, but there is no LinodeNodeClass of that name{offer(ref.name, known)}"
        )
        for ref, loaded in refs
        if known and is_supported(ref) and ref.name not in known
    ]


def _misspelt_labels(manifests: Manifests) -> Iterator[Finding]:
    for pool, loaded in manifests.of(NodePool):
        for index, requirement in enumerate(pool.spec.template.spec.requirements):
            near = get_close_matches(requirement.key, sorted(WELL_KNOWN), n=1, cutoff=_NEARLY)
            if near and requirement.key not in {*WELL_KNOWN, *ALIASES}:
                path: Path = ("spec", "template", "spec", "requirements", index, "key")
                yield loaded.finding(path, f"{requirement.key} is no label of plans; is {near[0]} meant?")


def offer(name: str, known: list[str]) -> str:
    """What might have been meant, or what there is."""
    near = get_close_matches(name, known, n=1)
    if near:
        return f"; is {near[0]!r} meant?"
    return f"; there are: {names(known)}" if known else "; there are none in the input"
