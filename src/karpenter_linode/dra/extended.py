"""Extended resources served by devices: the claim that kube-scheduler will make for a pod that has none.

A container that asks for an extended resource which a DeviceClass names (``extendedResourceName``, or the implicit
``deviceclass.resource.kubernetes.io/<class>``) gets its devices through an implicit claim. The claim is written only
when the pod is bound, so a plan has to imagine it (KEP-5004; spec/user-cases.md U09).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model.core import ContainerExtendedResourceRequest
from karpenter_linode.model.labels import IMPLICIT_EXTENDED_RESOURCE_PREFIX
from karpenter_linode.model.meta import ObjectMeta, OwnerReference
from karpenter_linode.model.resource import (
    EXACT_COUNT,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from karpenter_linode.model.core import Pod
    from karpenter_linode.model.resource import DeviceClass

EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"


def extended_resources(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Which class serves which extended resource.

    Of several classes with one name the youngest wins, then the first by name, as in kube-scheduler.
    """
    ordered = sorted(classes, key=lambda item: item.name)
    dated = sorted(ordered, key=_age, reverse=True)
    found: dict[str, str] = {}
    for item in dated:
        if item.spec.extended_resource_name:
            found.setdefault(item.spec.extended_resource_name, item.name)
    for item in ordered:
        found.setdefault(IMPLICIT_EXTENDED_RESOURCE_PREFIX + item.name, item.name)
    return found


def implicit_claim(pod: Pod, resources: Mapping[str, str]) -> ResourceClaim | None:
    """The claim that a pod's extended resources will become, or None when no class serves any of them.

    Args:
        pod: its containers and init containers each get requests of their own; none shares the devices of another.
        resources: as ``extended_resources`` gives them.
    """
    requests = tuple(request for _, request in _requests(pod, resources))
    if not requests:
        return None
    return ResourceClaim(
        metadata=ObjectMeta(
            name=f"{pod.name}-extended-resources",
            namespace=pod.namespace,
            annotations={EXTENDED_RESOURCE_CLAIM: "true"},
            owner_references=(OwnerReference("v1", "Pod", pod.name, pod.uid, controller=True),),
        ),
        spec=ResourceClaimSpec(DeviceClaim(requests)),
    )


def request_mappings(pod: Pod, resources: Mapping[str, str]) -> tuple[ContainerExtendedResourceRequest, ...]:
    """Which request of the implicit claim serves which container, as the pod's status tells (spec 1.7).

    Args:
        pod: as for ``implicit_claim``.
        resources: as for ``implicit_claim``.
    """
    return tuple(mapping for mapping, _ in _requests(pod, resources))


def is_implicit(claim: ResourceClaim, pod_uid: str) -> bool:
    """Whether a stored claim was made by kube-scheduler for a pod's extended resources."""
    return claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" and any(
        owner.controller and owner.uid == pod_uid for owner in claim.metadata.owner_references
    )


def _requests(
    pod: Pod, resources: Mapping[str, str]
) -> Iterator[tuple[ContainerExtendedResourceRequest, DeviceRequest]]:
    for index, container in enumerate((*pod.spec.init_containers, *pod.spec.containers)):
        asked = {**container.resources.limits, **container.resources.requests}
        served = sorted(name for name in asked if name in resources and asked[name].units > 0)
        for number, name in enumerate(served):
            exactly = ExactDeviceRequest(resources[name], (), EXACT_COUNT, asked[name].units)
            request = f"container-{index}-request-{number}"
            yield ContainerExtendedResourceRequest(container.name, name, request), DeviceRequest(request, exactly)


def _age(item: DeviceClass) -> float:
    created = item.metadata.creation_timestamp
    return 0.0 if created is None else created.timestamp()
