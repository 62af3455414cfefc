"""``ports.KubeApi`` over the network. Nothing is ever PUT: our Structs hold a part of each object only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from lightkube.types import PatchType

from karpenter_linode.kube.decoding import decode_object, decode_page
from karpenter_linode.kube.http import KubeCall
from karpenter_linode.kube.watching import Watching
from karpenter_linode.model import kinds
from karpenter_linode.model.meta import KubeObject
from karpenter_linode.ports import GoneError, Listing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from karpenter_linode.kube.http import KubeHttp
    from karpenter_linode.kube.watching import WatchOptions
    from karpenter_linode.ports import Clock, Logger, PatchKind, Random, WatchEvent

T = TypeVar("T", bound=KubeObject)
PAGE_SIZE: Final = 500
_CONTENT_TYPES: Final = {
    "merge": PatchType.MERGE.value,
    "strategic": PatchType.STRATEGIC.value,
    "json": PatchType.JSON.value,
}


class LightkubeApi:
    """The API server.

    Args:
        http: the connection.
        clock: pauses between attempts to watch.
        random: jitters them.
        logger: told of watches that break off and of objects that cannot be read.
        watch_options: time limits of watches.
    """

    def __init__(
        self, http: KubeHttp, *, clock: Clock, random: Random, logger: Logger, watch_options: WatchOptions | None = None
    ) -> None:
        self._http, self._logger = http, logger
        self.watching = Watching(http, clock, random, logger, watch_options)

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """One object. Raises NotFoundError."""
        return await self._object(KubeCall("get", kind.API_VERSION, kind.PLURAL, namespace, name), kind)

    async def list(self, kind: type[T], *, namespace: str = "", label_selector: str = "") -> Listing[T]:
        """All objects of a kind, page by page; a list that expires between two pages is taken again in one piece.

        Raises:
            KubeError: the server refused, or did not answer.
        """
        params = {"labelSelector": label_selector} if label_selector else {}
        try:
            return await self._pages(kind, namespace, {**params, "limit": str(PAGE_SIZE)})
        except GoneError:
            return await self._pages(kind, namespace, params)

    def watch(self, kind: type[T], resource_version: str) -> AsyncGenerator[WatchEvent[T], None]:
        """Changes after a resource version, until cancelled; broken and silent streams are opened again.

        Raises:
            GoneError: the version is too old: list again.
            KubeError: the server refuses for another reason.
        """
        return self.watching.watch(kind, resource_version)

    async def create(self, obj: T) -> T:
        """Create and return the stored object. Raises AlreadyExistsError, InvalidError."""
        kind = type(obj)
        body = kinds.to_manifest(obj)
        return await self._object(
            KubeCall("create", kind.API_VERSION, kind.PLURAL, obj.namespace, body=body), kind, obj.key
        )

    async def patch(
        self,
        kind: type[T],
        name: str,
        patch: Mapping[str, Any] | Sequence[Any],
        *,
        namespace: str = "",
        subresource: str = "",
        patch_kind: PatchKind = "merge",
    ) -> T:
        """Patch and return the stored object. A ``metadata.resourceVersion`` in the patch is an optimistic lock.

        Raises:
            NotFoundError: no such object.
            ConflictError: the optimistic lock failed.
        """
        call = KubeCall(
            "patch",
            kind.API_VERSION,
            kind.PLURAL,
            namespace,
            name,
            subresource,
            body=patch,
            content_type=_CONTENT_TYPES[patch_kind],
        )
        return await self._object(call, kind)

    async def apply(
        self,
        kind: type[T],
        name: str,
        manifest: Mapping[str, Any],
        *,
        field_manager: str,
        namespace: str = "",
        subresource: str = "",
        force: bool = False,
    ) -> T:
        """Server-side apply: own exactly the fields of the manifest, leave all others alone.

        Args:
            kind: the kind.
            name: the object's name; it is created where it does not exist.
            manifest: plain data with ``apiVersion`` and ``kind``.
            field_manager: who owns the fields.
            namespace: the object's namespace.
            subresource: as ``status``.
            force: take over fields that others own.

        Raises:
            ConflictError: another manager owns one of the fields.
        """
        params = {"fieldManager": field_manager, "force": "true" if force else "false"}
        call = KubeCall(
            "patch",
            kind.API_VERSION,
            kind.PLURAL,
            namespace,
            name,
            subresource,
            params,
            manifest,
            PatchType.APPLY.value,
        )
        return await self._object(call, kind)

    async def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Start deletion (finalizers decide when it ends). Raises NotFoundError, ConflictError on another ``uid``."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **_delete_options(uid, grace_period_seconds)}
        await self._http.send(KubeCall("delete", kind.API_VERSION, kind.PLURAL, namespace, name, body=body))

    async def evict(self, name: str, namespace: str, *, uid: str = "", grace_period_seconds: int | None = None) -> None:
        """Evict a pod. Raises NotFoundError, TooManyRequestsError when a budget forbids it now."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _delete_options(uid, grace_period_seconds),
        }
        # "Too many requests" is a budget's answer here; the eviction queue waits by its own rules.
        await self._http.send(
            KubeCall("create", "v1", "pods", namespace, name, "eviction", body=body, retry_busy=False)
        )

    async def _pages(self, kind: type[T], namespace: str, params: dict[str, str]) -> Listing[T]:
        items: list[T] = []
        following = ""
        while True:
            more = {"continue": following} if following else {}
            call = KubeCall("list", kind.API_VERSION, kind.PLURAL, namespace, params={**params, **more})
            page = decode_page(await self._http.send(call), kind, str(call), self.watching.unreadable)
            items.extend(page.items or ())
            following = page.metadata.continue_
            if not following:
                return Listing(tuple(items), page.metadata.resource_version)

    async def _object(self, call: KubeCall, kind: type[T], key: str = "") -> T:
        return decode_object(await self._http.send(call), kind, f"{call} {key}".rstrip())


def _delete_options(uid: str, grace_period_seconds: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    return options
