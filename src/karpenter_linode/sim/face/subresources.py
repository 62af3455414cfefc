"""Subresources with kinds of their own: scale, eviction, binding; and what containers would have, such as logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from karpenter_linode.ports import ConflictError
from karpenter_linode.sim.eviction import evict
from karpenter_linode.sim.face.columns import dig, selector_text
from karpenter_linode.sim.face.errors import bad_request
from karpenter_linode.sim.face.requests import JSON_PATCH
from karpenter_linode.sim.face.writes import operations
from karpenter_linode.sim.patches import json_patch, merge_patch

if TYPE_CHECKING:
    from karpenter_linode.sim.face.admission import Warnings
    from karpenter_linode.sim.face.requests import ApiRequest
    from karpenter_linode.sim.face.served import ScalePaths
    from karpenter_linode.sim.face.writes import Writer
    from karpenter_linode.sim.store import Store
    from karpenter_linode.sim.stored import Stored

Plain = dict[str, Any]

SCALE_VERSION: Final = "autoscaling/v1"
_NOTHING_RUNS: Final = "the containers of the embedded world run nothing, so there"
NO_LOGS: Final = f"{_NOTHING_RUNS} are no logs; its events tell what happens"
NO_SESSION: Final = f"{_NOTHING_RUNS} is nothing to connect to"
_MOST_REPLICAS: Final = 2**31


class Subresources:
    """Answers requests about subresources.

    Args:
        store: where objects are kept.
        writer: writes them.
    """

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store, self._writer = store, writer

    def read_scale(self, request: ApiRequest) -> Plain:
        """``GET .../scale``."""
        target = request.target
        return scale_of(self._store.get(target.type, target.name, target.namespace), _paths(request))

    def write_scale(self, request: ApiRequest, warnings: Warnings) -> Plain:
        """``PUT`` and ``PATCH`` of ``.../scale``.

        Raises:
            KubeError: refused.
        """
        target, paths = request.target, _paths(request)
        current = self._store.get(target.type, target.name, target.namespace)
        scale = scale_of(current, paths)
        new = _patched(request, scale) if request.method == "PATCH" else request.json()
        replicas = dig(new, "spec", "replicas") or 0
        if type(replicas) is not int or not 0 <= replicas < _MOST_REPLICAS:
            raise bad_request(f"spec.replicas: found {replicas!r}, expected a number from 0")
        version = dig(new, "metadata", "resourceVersion")
        if version and version != current.metadata["resourceVersion"]:
            raise ConflictError(
                f'Operation cannot be fulfilled on {target.type.resource} "{target.name}": the object has been '
                "modified; please apply your changes to the latest version and try again"
            )
        change: Any = replicas
        for step in reversed(paths.spec):
            change = {step: change}
        inner = replace(request, target=replace(target, subresource=""))
        return scale_of(self._writer.merge(inner, current, change, warnings), paths)

    def evict(self, request: ApiRequest) -> None:
        """``POST pods/.../eviction``.

        Raises:
            KubeError: no such pod, or its budget forbids it now.
        """
        target, body = request.target, request.json()
        options = dig(body, "deleteOptions") or {}
        grace, uid = dig(options, "gracePeriodSeconds"), dig(options, "preconditions", "uid")
        if grace is not None and (type(grace) is not int or grace < 0):
            raise bad_request(f"deleteOptions.gracePeriodSeconds: found {grace!r}, expected a number of seconds")
        if request.dry_run:
            self._store.get(target.type, target.name, target.namespace)
            return
        evict(self._store, target.name, target.namespace, uid=str(uid or ""), grace_period_seconds=grace)

    def bind(self, request: ApiRequest) -> None:
        """``POST pods/.../binding``.

        Raises:
            KubeError: no such pod, or it is assigned already.
        """
        body = request.json()
        node = dig(body, "target", "name")
        if not isinstance(node, str) or not node:
            raise bad_request("target.name: Required value")
        if not request.dry_run:
            self._store.bind(request.target.name, request.target.namespace, node)


def scale_of(stored: Stored, paths: ScalePaths) -> Plain:
    """The Scale of an object."""
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = dig(stored.plain, *paths.selector) if paths.selector else None
    return {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {key: stored.metadata[key] for key in kept if key in stored.metadata},
        "spec": {"replicas": dig(stored.plain, *paths.spec) or 0},
        "status": {
            "replicas": dig(stored.plain, *paths.status) or 0,
            **({"selector": selector_text(selector)} if selector else {}),
        },
    }


def _patched(request: ApiRequest, scale: Plain) -> Any:
    body = request.json()
    if request.content_type == JSON_PATCH:
        return json_patch(scale, operations(body))
    if not isinstance(body, dict):
        raise bad_request(f"a merge patch must be an object, found {type(body).__name__}")
    return merge_patch(scale, body)


def _paths(request: ApiRequest) -> ScalePaths:
    paths = request.target.resource.scale
    if paths is None:
        raise bad_request(f"{request.target.type.plural} have no scale")
    return paths
