"""The one place where effects happen."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from karpenter_linode.lifecycle.effects import (
    CloudCreate,
    CloudDelete,
    CloudGet,
    Count,
    Create,
    Delete,
    Effect,
    Evict,
    Fail,
    LogLine,
    Observe,
    Patch,
    PublishEvent,
    Requeue,
)
from karpenter_linode.ports import AlreadyExistsError, ConflictError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from karpenter_linode.controllers.runtime import Runtime

Question = CloudCreate | CloudDelete | CloudGet


class Done(Struct, frozen=True):
    """How a list of effects went.

    Args:
        requeue: when to decide again; None for on the next change.
        conflict: a lock failed; what came after it was dropped. Decide again at once.
        failures: what went wrong; decide again with back-off.
        question: what the decider wants to know from the cloud.
        retry: nothing went wrong, but it's not the time yet; try again with back-off.
    """

    requeue: timedelta | None = None
    conflict: bool = False
    failures: tuple[str, ...] = ()
    question: Question | None = None
    retry: bool = False


class Executor:
    """Carries out effects in order: patches and never puts, a missing object is done, a failed lock ends the list.

    Args:
        runtime: ports and state.
        controller: the name that log lines carry.
        evict: takes pods into the eviction queue.
    """

    def __init__(self, runtime: Runtime, controller: str, evict: Callable[[Evict], None] | None = None) -> None:
        self._runtime = runtime
        self._controller = controller
        self._evict = evict

    async def carry_out(self, effects: Iterable[Effect]) -> Done:
        """Do it.

        Raises:
            KubeError: the API refused for another reason than a missing object or a conflict.
        """
        requeue: timedelta | None = None
        failures: list[str] = []
        question: Question | None = None
        versions: dict[str, str] = {}
        for effect in effects:
            match effect:
                case Requeue(after=after):
                    requeue = after if requeue is None else min(requeue, after)
                case Fail(message=message):
                    failures.append(message)
                case CloudCreate() | CloudDelete() | CloudGet():
                    question = effect
                case _:
                    try:
                        await self._do(effect, versions)
                    except NotFoundError:
                        continue
                    except ConflictError:
                        return Done(conflict=True, failures=tuple(failures))
        return Done(requeue, failures=tuple(failures), question=question)

    async def _do(self, effect: Effect, versions: dict[str, str]) -> None:
        match effect:
            case Patch():
                await self._patch(effect, versions)
            case Create(object=obj):
                await self._create(obj)
            case Delete():
                await self._runtime.kube.delete(
                    effect.kind,
                    effect.name,
                    effect.namespace,
                    uid=effect.uid,
                    grace_period_seconds=effect.grace_period_seconds,
                )
            case Evict():
                if self._evict is not None:
                    self._evict(effect)
            case _:
                self._tell(effect)

    async def _create(self, obj: Any) -> None:
        try:
            self._runtime.observe(await self._runtime.kube.create(obj))
        except AlreadyExistsError:
            return

    async def _patch(self, effect: Patch, versions: dict[str, str]) -> None:
        body = effect.patch
        if effect.lock:
            # A lock holds for the whole list: our own write before this one must not break it.
            version = versions.get(_locked(effect), effect.lock)
            body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": version}}
        patched = await self._runtime.kube.patch(
            effect.kind,
            effect.name,
            body,
            namespace=effect.namespace,
            subresource=effect.subresource,
            patch_kind=effect.patch_kind,
        )
        if effect.lock:
            versions[_locked(effect)] = patched.metadata.resource_version
        self._runtime.observe(patched)

    def _tell(self, effect: Effect) -> None:
        runtime = self._runtime
        match effect:
            case PublishEvent():
                runtime.events.publish(
                    effect.object,
                    effect.type,
                    effect.reason,
                    effect.message,
                    dedupe=effect.dedupe,
                    dedupe_seconds=effect.dedupe_seconds,
                )
            case LogLine(level=level, message=message, fields=fields):
                getattr(runtime.logger, level)(message, controller=self._controller, **fields)
            case Count(name=name, labels=labels, by=by):
                runtime.metrics.increment(name, labels, by)
            case Observe(name=name, labels=labels, value=value):
                runtime.metrics.observe(name, labels, value.total_seconds())
            case _:
                msg = f"no way to carry out {type(effect).__name__}"
                raise TypeError(msg)


def _locked(effect: Patch) -> str:
    return f"{effect.kind.KIND}/{effect.namespace}/{effect.name}/{effect.lock}"
