"""References between the objects of an input: claims, templates, device classes, node classes, and their selectors."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from karpenter_linode.cel import CompileError
from karpenter_linode.dra.selector import Selectors
from karpenter_linode.explain.text import names
from karpenter_linode.model.core import Pod
from karpenter_linode.model.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.cli.errors import Finding
    from karpenter_linode.cli.manifests import Loaded, Manifests
    from karpenter_linode.cli.yaml_reader import Path
    from karpenter_linode.model.resource import DeviceSelector, DeviceSubRequest, ExactDeviceRequest, ResourceClaimSpec


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
            findings += _selectors(obj.spec.selectors, ("spec", "selectors"), loaded, known)
    return findings


class _Known:
    """Names that may be referred to."""

    def __init__(self, manifests: Manifests) -> None:
        self.classes = {obj.name for obj, _ in manifests.of(DeviceClass)}
        self.claims = {obj.key for obj, _ in manifests.of(ResourceClaim)}
        self.templates = {obj.key for obj, _ in manifests.of(ResourceClaimTemplate)}
        self.selectors = Selectors()


def _pod(pod: Pod, loaded: Loaded, known: _Known) -> Iterator[Finding]:
    made = {status.name for status in pod.status.resource_claim_statuses}
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
        elif entry.resource_claim_template_name and entry.name not in made:
            yield from _missing(
                pod.namespace,
                entry.resource_claim_template_name,
                "ResourceClaimTemplate",
                known.templates,
                loaded,
                (*at, "resourceClaimTemplateName"),
            )


def _missing(namespace: str, name: str, kind: str, known: set[str], loaded: Loaded, path: Path) -> Iterator[Finding]:
    if f"{namespace}/{name}" in known:
        return
    inside = sorted(key.partition("/")[2] for key in known if key.startswith(f"{namespace}/"))
    elsewhere = sorted(key for key in known if key.endswith(f"/{name}"))
    hint = f"; there is one in another namespace: {names(elsewhere)}" if elsewhere else _offer(name, inside)
    yield loaded.finding(path, f"found {name!r}, but namespace {namespace} has no {kind} of that name{hint}")


def _claim_spec(spec: ResourceClaimSpec, at: Path, loaded: Loaded, known: _Known) -> Iterator[Finding]:
    for index, request in enumerate(spec.devices.requests):
        path: Path = (*at, "devices", "requests", index)
        options: list[tuple[ExactDeviceRequest | DeviceSubRequest, Path]] = []
        if request.exactly is not None:
            options.append((request.exactly, (*path, "exactly")))
        options += [(item, (*path, "firstAvailable", number)) for number, item in enumerate(request.first_available)]
        for option, where in options:
            name = option.device_class_name
            if name not in known.classes:
                hint = _offer(name, sorted(known.classes))
                message = f"found {name!r}, but there is no DeviceClass of that name{hint}"
                yield loaded.finding((*where, "deviceClassName"), message)
            yield from _selectors(option.selectors, (*where, "selectors"), loaded, known)


def _selectors(selectors: tuple[DeviceSelector, ...], at: Path, loaded: Loaded, known: _Known) -> Iterator[Finding]:
    for index, selector in enumerate(selectors):
        path: Path = (*at, index, "cel", "expression")
        if selector.cel is None:
            yield loaded.finding((*at, index), "field cel is missing: a selector is a CEL expression")
            continue
        try:
            known.selectors.of(selector.cel.expression).program  # noqa: B018 - reading it compiles the text
        except CompileError as error:
            excerpt = error.render().replace("\n", "\n  ")
            message = f"the expression does not compile, at its line {error.line}, column {error.column}: {excerpt}"
            yield loaded.finding(path, message)


def _offer(name: str, known: list[str]) -> str:
    """What might have been meant, or what there is."""
    near = get_close_matches(name, known, n=1)
    if near:
        return f"; is {near[0]!r} meant?"
    return f"; there are: {names(known)}" if known else "; there are none in the input"
