"""The claims of a pod: which it has, what they are called, and how one is made from a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.model.meta import ObjectMeta, OwnerReference
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.resource import ResourceClaim

if TYPE_CHECKING:
    from karpenter_linode.model.core import Pod, PodResourceClaim
    from karpenter_linode.model.resource import ResourceClaimTemplate

CODE_CLAIM_NOT_CREATED: Final = "dra-claim-not-created"


class ClaimKey(Struct, frozen=True, order=True, gc=False):
    """Which ResourceClaim, and by which entry of ``spec.resourceClaims`` the pod refers to it."""

    namespace: str
    name: str
    entry: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def has_dra_requirements(pod: Pod) -> bool:
    """Whether a pod asks for devices: claims on the pod, a container or an init container (spec 3.1)."""
    return bool(pod.spec.resource_claims) or any(
        container.resources.claims for container in (*pod.spec.containers, *pod.spec.init_containers)
    )


def claim_keys(pod: Pod) -> tuple[ClaimKey, ...] | Reason:
    """The claims that a pod refers to, each once, in the order of ``spec.resourceClaims`` (spec 3.3, trap T4).

    Returns:
        The keys, or a Reason when the claim of a template reference is not made yet: kube-scheduler waits for it, and
        so must the pod. A status entry without a name needs no claim.
    """
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    found: dict[str, ClaimKey] = {}
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name:
            name: str | None = entry.resource_claim_name
        elif entry.name in generated:
            name = generated[entry.name]
        else:
            return _not_created(pod, entry)
        if name:
            found.setdefault(name, ClaimKey(pod.namespace, name, entry.name))
    return tuple(found.values())


def make_claim(
    pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate, name: str = "", uid: str = ""
) -> ResourceClaim:
    """The claim that the claim controller makes for a template reference (spec 1.7).

    Args:
        pod: becomes the controlling owner.
        entry: the reference in ``spec.resourceClaims``.
        template: its spec is taken over, its labels and annotations are copied.
        name: the claim's name; without one, ``generateName`` is set to ``<pod>-<entry>-``.
        uid: the claim's UID, where the maker knows it.
    """
    metadata = template.spec.metadata
    owner = OwnerReference("v1", "Pod", pod.name, pod.uid, controller=True, block_owner_deletion=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            generate_name="" if name else f"{pod.name}-{entry.name}-",
            namespace=pod.namespace,
            uid=uid,
            labels=dict(metadata.labels),
            annotations={**metadata.annotations, labels.POD_CLAIM_NAME: entry.name},
            owner_references=(owner,),
        ),
        spec=template.spec.spec,
    )


def _not_created(pod: Pod, entry: PodResourceClaim) -> Reason:
    return Reason(
        CODE_CLAIM_NOT_CREATED,
        f"ResourceClaim not created yet: pod {pod.key} refers to template {entry.resource_claim_template_name!r} by "
        f"spec.resourceClaims entry {entry.name!r}, and status.resourceClaimStatuses has no such entry",
        subject=f"Pod {pod.key}",
        facts=(("entry", entry.name), ("template", entry.resource_claim_template_name or "")),
    )
