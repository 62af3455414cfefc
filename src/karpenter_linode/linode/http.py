"""One API call: limits, time-out, retries of what may be repeated, typed errors.

GET, PUT and DELETE are repeated within a budget. POST never is: there is no idempotency key, so a second POST may buy a
second machine; whoever creates looks up what became of it (spec/linode-provider.md 7.6 and trap 19).
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import httpx2
from msgspec import Struct, field

from karpenter_linode.linode.errors import (
    RETRYABLE,
    FieldError,
    LinodeApiError,
    LinodeBusyError,
    LinodeInvalidError,
    LinodeNotFoundError,
    LinodeRateLimitedError,
    LinodeServerError,
    LinodeTransportError,
    LinodeUnauthorizedError,
)
from karpenter_linode.linode.governor import DEFAULT_LIMITS, CallKind, Limits, RateGovernor
from karpenter_linode.model import codec

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.ports import Clock, Random

_BUSY: Final = "Linode busy."
_REQUEST_TIMEOUT: Final = 408
_TOO_MANY: Final = 429
_SERVER: Final = 500
_BAD: Final = 400
LONGEST_ANSWER: Final = 16 << 20
"""Bytes, unpacked. The longest page of the longest list takes less than one of these 16 MiB."""


class RetryPolicy(Struct, frozen=True):
    """How long a call that may be repeated is repeated.

    Args:
        attempts: calls in all.
        budget_seconds: waiting time in all; a ``Retry-After`` beyond what is left ends the call with its error.
        base_seconds: first pause, doubled each time.
        cap_seconds: longest pause of our own choosing.
    """

    attempts: int = 4
    budget_seconds: float = 30
    base_seconds: float = 0.5
    cap_seconds: float = 8


class ClientOptions(Struct, frozen=True):
    """Settings of the client.

    Args:
        api_version: must be ``v4beta`` for cluster tiers and pool versions.
        timeout_seconds: for each single HTTP request (``LINODE_CLIENT_TIMEOUT``).
        retry: how calls are repeated.
        limits: rate limits to stay below.
        program_version: for the user agent.
    """

    api_version: str = "v4beta"
    timeout_seconds: float = 10
    retry: RetryPolicy = RetryPolicy()
    limits: Limits = DEFAULT_LIMITS
    program_version: str = "unspecified"


class ApiCall(Struct, frozen=True):
    """A call.

    Args:
        method: HTTP method.
        template: path template for messages and counters.
        path: the path itself.
        kind: which limit it counts towards.
        body: JSON body, or None.
        query: query parameters.
        filter: ``X-Filter``, or None.
    """

    method: str
    template: str
    path: str
    kind: CallKind = CallKind.OTHER
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    filter: dict[str, Any] | None = None

    @property
    def route(self) -> str:
        """How counters and messages name it."""
        return f"{self.method} {self.template}"


class CallRecord(Struct, frozen=True):
    """One HTTP request that was sent, for metrics; ``status`` 0 means no answer.

    Args:
        rate_limit_remaining: requests that are left, if the answer said so.
        scopes: what the token may do (``X-OAuth-Scopes``), if the answer said so.
    """

    method: str
    route: str
    status: int
    seconds: float
    rate_limit_remaining: int | None = None
    scopes: str | None = None


class LinodeHttp:
    """Sends calls. Its text form never shows the token."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        clock: Clock,
        random: Random,
        transport: httpx2.AsyncBaseTransport | None,
        options: ClientOptions,
        on_call: Callable[[CallRecord], None],
    ) -> None:
        self._clock, self._random, self._options, self._on_call = clock, random, options, on_call
        self._governor = RateGovernor(clock, options.limits)
        self._http = httpx2.AsyncClient(
            base_url=f"{base_url.rstrip('/')}/{options.api_version}",
            transport=transport,
            timeout=options.timeout_seconds,
            headers={
                "Authorization": f"Bearer {token}",
                "Accept": "application/json",
                "User-Agent": f"KARPL/{options.program_version}",
            },
        )

    @property
    def _server(self) -> str:
        """Host and port, for errors: a mistake in LINODE_URL shows there."""
        return self._http.base_url.netloc.decode()

    def __repr__(self) -> str:
        return f"LinodeHttp({str(self._http.base_url)!r})"

    async def close(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def send(self, call: ApiCall) -> bytes:
        """The body of a successful answer.

        Raises:
            LinodeApiError: what the API or the network said, after the repetitions that are allowed.
        """
        policy = self._options.retry
        waited, attempt = 0.0, 0
        while True:
            attempt += 1
            await self._governor.admit(call.kind)
            try:
                return await self._once(call)
            except RETRYABLE as error:
                if isinstance(error, LinodeRateLimitedError):
                    self._governor.pause(call.kind, error.retry_after)
                pause = self._pause(error, attempt)
                exhausted = attempt >= policy.attempts or waited + pause > policy.budget_seconds
                if call.method == "POST" or exhausted or _in_maintenance(error):
                    raise
                await self._clock.sleep(pause)
                waited += pause

    def _pause(self, error: LinodeApiError, attempt: int) -> float:
        if isinstance(error, LinodeRateLimitedError):
            return error.retry_after
        policy = self._options.retry
        pause = min(policy.cap_seconds, policy.base_seconds * 2 ** (attempt - 1))
        return self._random.uniform(pause / 2, pause)

    async def _once(self, call: ApiCall) -> bytes:
        started = self._clock.now()
        status, remaining, scopes = 0, None, None
        try:
            async with asyncio.timeout(self._options.timeout_seconds):
                response = await self._http.send(self._request(call), stream=True)
                content = await read_bounded(response)
            status, remaining = response.status_code, _integer(response.headers.get("X-RateLimit-Remaining"))
            scopes = response.headers.get("X-OAuth-Scopes")
        except TimeoutError as error:
            message = f"{self._server}: no answer within {self._options.timeout_seconds:g} s"
            raise LinodeTransportError(call.route, message) from error
        except httpx2.RequestError as error:
            # A connection that was never made carried nothing.
            unknown = not isinstance(error, httpx2.ConnectError)
            cause = f"{self._server}: {type(error).__name__}: {error}"
            raise LinodeTransportError(call.route, cause, outcome_unknown=unknown) from error
        finally:
            seconds = (self._clock.now() - started).total_seconds()
            self._on_call(CallRecord(call.method, call.template, status, seconds, remaining, scopes))
        if status >= _BAD:
            raise _error(call.route, response, content or b"")
        if content is None:
            raise LinodeTransportError(call.route, f"the answer is longer than {LONGEST_ANSWER >> 20} MiB")
        return content

    def _request(self, call: ApiCall) -> httpx2.Request:
        headers = {} if call.filter is None else {"X-Filter": codec.encode(call.filter).decode()}
        content = None
        if call.body is not None:
            content = codec.encode(call.body)
            headers["Content-Type"] = "application/json"
        return self._http.build_request(call.method, call.path, params=call.query, headers=headers, content=content)


async def read_bounded(response: httpx2.Response) -> bytes | None:
    """The body; None where it is too long, whatever it says of its own length."""
    parts: list[bytes] = []
    size = 0
    try:
        async with aclosing(response.aiter_bytes()) as received:
            async for part in received:
                parts.append(part)
                size += len(part)
                if size > LONGEST_ANSWER:
                    return None
    finally:
        await response.aclose()
    return b"".join(parts)


class _ErrorBody(Struct):
    errors: tuple[FieldError, ...] = ()


def _error(route: str, response: httpx2.Response, content: bytes) -> LinodeApiError:
    status, errors = response.status_code, _field_errors(content)
    if status == httpx2.codes.NOT_FOUND:
        return LinodeNotFoundError(route, status, errors)
    if status in {httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN}:
        return LinodeUnauthorizedError(route, status, errors)
    if status == _TOO_MANY:
        return LinodeRateLimitedError(route, status, errors, _integer(response.headers.get("Retry-After")) or 1)
    if status >= _SERVER or status == _REQUEST_TIMEOUT:
        return LinodeServerError(route, status, errors, maintenance="X-Maintenance-Mode" in response.headers)
    if any(error.reason == _BUSY for error in errors):
        return LinodeBusyError(route, status, errors)
    return LinodeInvalidError(route, status, errors)


def _field_errors(content: bytes) -> tuple[FieldError, ...]:
    try:
        return codec.decode(content, _ErrorBody).errors
    except codec.DecodeError:
        return ()  # a proxy's page; the status says enough


def _in_maintenance(error: LinodeApiError) -> bool:
    return isinstance(error, LinodeServerError) and error.maintenance


def _integer(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
