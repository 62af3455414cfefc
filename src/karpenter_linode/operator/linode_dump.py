"""``LINODE_DEBUG``: every request to the Linode API and its answer as log lines, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx2
import msgspec

from karpenter_linode.linode.http import LONGEST_ANSWER, read_bounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.ports import Logger

_HIDDEN: Final = "[redacted]"
_HIDDEN_HEADERS: Final = frozenset({"authorization", "cookie", "set-cookie", "proxy-authorization"})
_HIDDEN_MEMBERS: Final = ("token", "password", "root_pass", "secret", "kubeconfig", "authorized_keys", "user_data")
_OF_THE_WAY: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers about the bytes on the way, which are not those that are handed on."""
_SHOWN: Final = 4096
_DEEPEST: Final = 20


class DumpingTransport(httpx2.AsyncBaseTransport):
    """Shows what passes.

    Args:
        inner: the network.
        logger: where it is shown.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, logger: Logger) -> None:
        self._inner, self._logger = inner, logger

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            httpx2.RequestError: what the network says, or an answer that is too long to read.
        """
        await request.aread()
        shown = {"method": request.method, "url": str(request.url)}
        self._logger.info(
            "linode request", **shown, headers=_headers(request.headers), body=shown_body(request.content)
        )
        response = await self._inner.handle_async_request(request)
        content = await read_bounded(response)
        if content is None:
            raise httpx2.ReadError(f"the answer is longer than {LONGEST_ANSWER >> 20} MiB", request=request)
        self._logger.info(
            "linode response",
            **shown,
            status=response.status_code,
            headers=_headers(response.headers),
            body=shown_body(content),
        )
        headers = [(key, value) for key, value in response.headers.multi_items() if key not in _OF_THE_WAY]
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)

    async def aclose(self) -> None:
        """Close connections."""
        await self._inner.aclose()


def shown_body(content: bytes) -> str:
    """A body as text, cut off, with members that hold secrets made unreadable. What is no JSON is shown by its size."""
    if not content:
        return ""
    try:
        text = msgspec.json.encode(_hidden(msgspec.json.decode(content), 0)).decode()
    except (msgspec.MsgspecError, RecursionError):
        return f"{len(content)} bytes"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {key: _HIDDEN if key.lower() in _HIDDEN_HEADERS else value for key, value in headers.items()}


def _hidden(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return "..."
    if isinstance(value, dict):
        return {
            key: _HIDDEN if any(word in key.lower() for word in _HIDDEN_MEMBERS) else _hidden(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_hidden(item, depth + 1) for item in value]
    return value
