"""Credential plug-ins: programs that print a token (client-go's exec credentials, ``client.authentication.k8s.io``)."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import httpx2
import msgspec
from msgspec import Struct, field

from karpenter_linode.kube.errors import ConnectionConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_VERSIONS: Final = frozenset({"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"})
_SECONDS: Final = 60.0
_EARLY: Final = timedelta(seconds=30)
_UNAUTHORIZED: Final = 401
_SHOWN: Final = 500


class ExecPlugin(Struct, frozen=True):
    """A program to run for a token."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


class _CredentialStatus(Struct, rename="camel"):
    token: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(Struct):
    status: _CredentialStatus = field(default_factory=_CredentialStatus)


class ExecAuth(httpx2.Auth):
    """Adds the plug-in's token to requests, and asks for a new one when it expires or is refused.

    Args:
        plugin: what to run.

    Raises:
        ConnectionConfigError: an API version that is not supported; while running: the plug-in failed.
    """

    def __init__(self, plugin: ExecPlugin) -> None:
        if plugin.api_version not in _VERSIONS:
            raise ConnectionConfigError(
                f"credential plug-in {plugin.command}: apiVersion {plugin.api_version!r} is not supported, "
                f"expected one of {', '.join(sorted(_VERSIONS))}"
            )
        self._plugin = plugin
        self._lock = asyncio.Lock()
        self._token = ""
        self._expires: datetime | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """httpx2's hook around each request."""
        token = await self._current("")
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == _UNAUTHORIZED:
            request.headers["Authorization"] = f"Bearer {await self._current(token)}"
            yield request

    async def _current(self, refused: str) -> str:
        async with self._lock:
            expired = self._expires is not None and datetime.now(UTC) >= self._expires - _EARLY
            if not self._token or expired or self._token == refused:
                status = await self._run()
                self._token, self._expires = status.token, status.expiration_timestamp
            return self._token

    async def _run(self) -> _CredentialStatus:
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        environment = {
            **os.environ,
            **self._plugin.environment,
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                self._plugin.command,
                *self._plugin.args,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise self._failed(f"cannot be started: {error}") from None
        try:
            output, complaint = await asyncio.wait_for(process.communicate(), _SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise self._failed(f"did not end within {_SECONDS:g} s") from None
        if process.returncode:
            text = complaint.decode(errors="replace").strip()[-_SHOWN:]
            raise self._failed(f"ended with exit code {process.returncode}: {text}")
        return self._parsed(output)

    def _parsed(self, output: bytes) -> _CredentialStatus:
        try:
            status = msgspec.json.decode(output, type=_Credential).status
        except msgspec.MsgspecError as error:
            raise self._failed(f"printed no ExecCredential: {error}") from None
        if not status.token:
            raise self._failed("printed no token; client certificates of plug-ins are not supported")
        return status

    def _failed(self, what: str) -> ConnectionConfigError:
        return ConnectionConfigError(f"credential plug-in {self._plugin.command} {what}")
