"""Extended resources that a DeviceClass serves: the claim that a pod gets for them when it is bound.

A node that counts the resource itself, through a device plug-in, takes the pod without any claim; on every other node
its devices come from the class (spec/dra-allocation.md 1.1 and 1.2, spec/user-cases.md U09, KEP-5004).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from karpenter_linode.dra.extended import extended_resources, implicit_claim, is_implicit, request_mappings
from karpenter_linode.model import codec, kinds
from karpenter_linode.model.core import ContainerExtendedResourceRequest, ExtendedResourceClaimStatus, Pod
from karpenter_linode.model.resource import DeviceClass, ResourceClaim
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.kube_scheduler.view import NodeInfo, PodInfo
    from karpenter_linode.sim.store import Store
    from karpenter_linode.sim.watches import Change

_POD: Final = type_of(Pod)
_CLAIM: Final = type_of(ResourceClaim)


class ImplicitClaim(Struct, frozen=True):
    """A claim that is only imagined yet, and which of its requests serves which container."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


class ExtendedResources:
    """Which class serves which extended resource, and the claims made for them.

    Args:
        store: the cluster's store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.served: dict[str, str] = {}
        """Names of classes by extended resource."""
        store.listen(DeviceClass, self._class_changed)

    def _class_changed(self, change: Change) -> None:  # noqa: ARG002  # one class may hide another of the same resource
        self.served = extended_resources(self._store.all(DeviceClass))

    def asked_by(self, info: PodInfo) -> bool:
        """Whether a pod asks for a resource that a class serves."""
        return any(amount and name in self.served for name, amount in info.requests.items())

    def claim_on(self, info: PodInfo, node: NodeInfo) -> ImplicitClaim | None:
        """The claim that a pod would get on a node, or None when it needs none there.

        Its name stands for itself until the API server gives one; no stored claim can be called so.
        """
        if not self.asked_by(info):
            return None
        by_class = {name: served for name, served in self.served.items() if not node.allocatable.get(name)}
        claim = implicit_claim(info.pod, by_class)
        if claim is None:
            return None
        claim = replace(claim, metadata=replace(claim.metadata, name=f"<{info.pod.name}-extended-resources>"))
        return ImplicitClaim(claim, request_mappings(info.pod, by_class))

    def create(self, implicit: ImplicitClaim, pod: Pod) -> ResourceClaim:
        """Store an imagined claim under a name of its own.

        Raises:
            KubeError: the API server refuses.
        """
        claim = implicit.claim
        metadata = replace(claim.metadata, name="", generate_name=f"{pod.name}-extended-resources-")
        return self._store.create(kinds.to_manifest(replace(claim, metadata=metadata))).decode(ResourceClaim)

    def tell(self, implicit: ImplicitClaim, name: str, pod: Pod) -> None:
        """Write into the pod which claim serves which container's resource.

        Raises:
            KubeError: the API server refuses.
        """
        told = ExtendedResourceClaimStatus(name, implicit.mappings)
        self._patch_pod(pod, {"extendedResourceClaimStatus": codec.to_plain(told)})

    def drop(self, pod: Pod) -> None:
        """Binding failed: the claim made for the pod goes, devices and all."""
        for claim in list(self._store.all(ResourceClaim)):
            if claim.namespace == pod.namespace and is_implicit(claim, pod.uid):
                given = {"allocation": None, "reservedFor": None}
                self._store.patch(
                    _CLAIM, claim.name, {"status": given}, namespace=claim.namespace, subresource="status"
                )
                self._store.patch(_CLAIM, claim.name, {"metadata": {"finalizers": None}}, namespace=claim.namespace)
                self._store.delete(_CLAIM, claim.name, claim.namespace, uid=claim.uid)
        if self._store.find(Pod, pod.name, pod.namespace) is not None:
            self._patch_pod(pod, {"extendedResourceClaimStatus": None})

    def _patch_pod(self, pod: Pod, status: dict[str, Any]) -> None:
        self._store.patch(
            _POD, pod.name, {"status": status}, namespace=pod.namespace, subresource="status", patch_kind="strategic"
        )
