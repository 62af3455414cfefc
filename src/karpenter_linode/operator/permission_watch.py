"""Whether we may still do all that we do, while the controller runs: rules can be taken away at any time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from karpenter_linode.kube.cluster_info import is_allowed
from karpenter_linode.ports import KubeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karpenter_linode.kube.cluster_info import Permission
    from karpenter_linode.kube.http import KubeHttp
    from karpenter_linode.ports import Clock, Logger

_EVERY: Final = 30.0
_AFTER_REFUSAL: Final = 5.0
_FORBIDDEN: Final = 403
_AT_ONCE: Final = 8  # each takes a connection


async def missing_permissions(http: KubeHttp, wanted: Sequence[Permission]) -> tuple[Permission, ...]:
    """Those that are not granted, in their order.

    Raises:
        KubeError: the API server cannot be asked.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def ask(permission: Permission) -> bool:
        async with slots:
            return await is_allowed(http, permission)

    allowed = await asyncio.gather(*map(ask, wanted))
    return tuple(permission for permission, yes in zip(wanted, allowed, strict=True) if not yes)


class PermissionWatch:
    """Asks again every half minute, and soon after the API server refused something.

    While rules are missing the process is not ready and says which; it goes on working with those that are left, since
    a node that boots is better taken care of than not. An API server that cannot be asked changes nothing.

    Args:
        http: a connection that may write before this process leads: a question is a create to the API server.
        wanted: what must be allowed.
        clock: waits.
        logger: told of rules that go and come.
    """

    def __init__(self, http: KubeHttp, wanted: Sequence[Permission], clock: Clock, logger: Logger) -> None:
        self._http, self._wanted, self._clock, self._logger = http, tuple(wanted), clock, logger
        self._missing: tuple[Permission, ...] = ()
        self._refused = asyncio.Event()

    def problem(self) -> str:
        """What is missing, in one line, or ""."""
        return f"RBAC does not allow: {'; '.join(map(str, self._missing))}" if self._missing else ""

    def answered(self, code: int) -> None:
        """Take note of an answer of the API server, by its HTTP code."""
        if code == _FORBIDDEN:
            self._refused.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self._pause()
            await self.look()

    async def look(self) -> None:
        """Ask once."""
        self._refused.clear()
        try:
            missing = await missing_permissions(self._http, self._wanted)
        except KubeError as error:
            self._logger.debug("cannot ask what is allowed", error=str(error))
            return
        before, self._missing = self._missing, missing
        for permission in missing:
            if permission not in before:
                text = "RBAC does not allow what the controller does; install the chart's ClusterRole and its binding"
                self._logger.error(text, rule=str(permission))
        for permission in before:
            if permission not in missing:
                self._logger.info("RBAC allows again what the controller does", rule=str(permission))

    async def _pause(self) -> None:
        timer = asyncio.ensure_future(self._clock.sleep(_EVERY))
        refused = asyncio.ensure_future(self._refused.wait())
        try:
            await asyncio.wait((timer, refused), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            refused.cancel()
        if self._refused.is_set():  # one refusal seldom comes alone
            await self._clock.sleep(_AFTER_REFUSAL)
