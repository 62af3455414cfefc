"""Every kind that the project reads or writes, found by ``apiVersion`` and ``kind``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model import codec, core, karpenter, resource, workloads

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject

KINDS: Final[tuple[type[KubeObject], ...]] = (
    core.Pod,
    core.Node,
    core.Namespace,
    core.DaemonSet,
    core.PodDisruptionBudget,
    core.PersistentVolumeClaim,
    core.PersistentVolume,
    core.StorageClass,
    core.CSINode,
    core.VolumeAttachment,
    core.Event,
    workloads.Service,
    workloads.ReplicationController,
    workloads.ReplicaSet,
    workloads.StatefulSet,
    resource.ResourceSlice,
    resource.DeviceClass,
    resource.ResourceClaim,
    resource.ResourceClaimTemplate,
    karpenter.NodePool,
    karpenter.NodeClaim,
    karpenter.LinodeNodeClass,
)
# Lists that the API requires even where they are empty; encoding leaves defaults out.
_REQUIRED_LISTS: Final[dict[type[KubeObject], tuple[str, ...]]] = {
    karpenter.NodePool: ("spec", "template", "spec", "requirements"),
    karpenter.NodeClaim: ("spec", "requirements"),
}
_BY_NAME: Final = {(kind.API_VERSION, kind.KIND): kind for kind in KINDS}


def find_kind(api_version: str, kind: str) -> type[KubeObject] | None:
    """The Struct class of a kind, or None where the project doesn't know it."""
    return _BY_NAME.get((api_version, kind))


def to_manifest(obj: KubeObject) -> dict[str, Any]:
    """Plain data of an object with ``apiVersion`` and ``kind`` in front."""
    plain: dict[str, Any] = codec.to_plain(obj)
    required = _REQUIRED_LISTS.get(type(obj))
    if required is not None:
        holder = plain
        for key in required[:-1]:
            holder = holder.setdefault(key, {})
        holder.setdefault(required[-1], [])
    return {"apiVersion": obj.API_VERSION, "kind": obj.KIND, **plain}


def from_manifest(plain: dict[str, Any]) -> KubeObject:
    """The object that plain data describes.

    Raises:
        DecodeError: unknown kind, or a field of the wrong type.
    """
    api_version, name = plain.get("apiVersion"), plain.get("kind")
    kind = find_kind(str(api_version), str(name))
    if kind is None:
        msg = f"unknown kind {name!r} in apiVersion {api_version!r}"
        raise codec.DecodeError(msg)
    return codec.convert(plain, kind)
