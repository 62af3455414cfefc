"""Credential plug-ins: programs that print a token (client-go's exec credentials, ``client.authentication.k8s.io``)."""

from __future__ import annotations

import asyncio
import os
import tempfile
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import httpx2
import msgspec
from msgspec import Struct, field

from karpenter_linode.kube.errors import ConnectionConfigError

if TYPE_CHECKING:
    import ssl
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
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(Struct):
    status: _CredentialStatus = field(default_factory=_CredentialStatus)


class ExecAuth(httpx2.Auth):
    """Adds the plug-in's token to requests, and asks for a new one when it expires or is refused.

    A plug-in may give a client certificate instead, or as well; connections that are made from then on show it.

    Args:
        plugin: what to run.
        context: where a client certificate goes; without it one is refused.

    Raises:
        ConnectionConfigError: an API version that is not supported; while running: the plug-in failed.
    """

    def __init__(self, plugin: ExecPlugin, context: ssl.SSLContext | None = None) -> None:
        if plugin.api_version not in _VERSIONS:
            raise ConnectionConfigError(
                f"credential plug-in {plugin.command}: apiVersion {plugin.api_version!r} is not supported, "
                f"expected one of {', '.join(sorted(_VERSIONS))}"
            )
        self._plugin, self._context = plugin, context
        self._asked = False
        self._lock = asyncio.Lock()
        self._token = ""
        self._expires: datetime | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """httpx2's hook around each request."""
        token = await self._current(None)
        _carry(request, token)
        response = yield request
        if response.status_code == _UNAUTHORIZED:
            _carry(request, await self._current(token))
            yield request

    async def _current(self, refused: str | None) -> str:
        async with self._lock:
            expired = self._expires is not None and datetime.now(UTC) >= self._expires - _EARLY
            if not self._asked or expired or self._token == refused:
                status = await self._run()
                self._use_certificate(status)
                self._token, self._expires, self._asked = status.token, status.expiration_timestamp, True
            return self._token

    def _use_certificate(self, status: _CredentialStatus) -> None:
        if not status.client_certificate_data:
            return
        if self._context is None:
            raise self._failed("printed a client certificate, which has no use here")
        with tempfile.NamedTemporaryFile("w") as file:  # readable by us alone
            file.write(f"{status.client_certificate_data}\n{status.client_key_data}\n")
            file.flush()
            try:
                self._context.load_cert_chain(file.name)
            except (OSError, ValueError) as error:
                raise self._failed(f"printed a client certificate that cannot be used: {error}") from None

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
        if not status.token and not (status.client_certificate_data and status.client_key_data):
            raise self._failed("printed no token, and no client certificate with its key")
        return status

    def _failed(self, what: str) -> ConnectionConfigError:
        return ConnectionConfigError(f"credential plug-in {self._plugin.command} {what}")


def _carry(request: httpx2.Request, token: str) -> None:
    if token:
        request.headers["Authorization"] = f"Bearer {token}"
