"""The least of a Kubernetes client: plain calls with JSON bodies, and waiting for what others do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

Object: TypeAlias = dict[str, Any]
_T = TypeVar("_T")
_BUSY = frozenset({429, 503})
_BUSY_SECONDS = 120.0


class KubeApi:
    """Calls to one API server as one user; every answer but success is an AssertionError with the server's words."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client

    def get(self, path: str) -> Object:
        return self._call("GET", path)

    def find(self, path: str) -> Object | None:
        """The object at `path`, or None where there is none."""
        response = self._patiently("GET", path)
        return None if response.status_code == 404 else _answer(response)

    def create(self, collection: str, body: Object) -> Object:
        return self._call("POST", collection, json=body)

    def delete(self, path: str) -> None:
        """Deletes without a grace period: there may be no kubelet to end it."""
        self._call("DELETE", path, params={"gracePeriodSeconds": "0"})

    def _call(self, method: str, path: str, **parts: Any) -> Object:
        return _answer(self._patiently(method, path, **parts))

    def _patiently(self, method: str, path: str, **parts: Any) -> httpx2.Response:
        """Asks again for a while where the server says that it is too busy, as one that has just started does."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            response = self._client.request(method, path, **parts)
            if response.status_code not in _BUSY or time.monotonic() > deadline:
                return response
            time.sleep(1.0)


def _answer(response: httpx2.Response) -> Object:
    request = response.request
    assert response.is_success, f"{request.method} {request.url.path}: {response.status_code} {response.text}"
    body: Object = response.json()
    return body


def wait_for(what: str, probe: Callable[[], _T | None], seconds: float = 180.0, every: float = 0.05) -> _T:
    """Returns what `probe` finds, asked again until it is neither None nor False; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found is not None and found is not False:
            return found
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(every)
