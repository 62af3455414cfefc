"""What an API error means for the NodeClaim that met it (spec/linode-provider.md 4.8, spec/user-cases.md U92, U93)."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import re2
from msgspec import Struct

from karpenter_linode.linode.errors import (
    LinodeApiError,
    LinodeBusyError,
    LinodeInvalidError,
    LinodeNotFoundError,
    LinodeRateLimitedError,
    LinodeServerError,
    LinodeTransportError,
    LinodeUnauthorizedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


class Verdict(Enum):
    """What to do."""

    SOLD_OUT = "the plan can't be bought in this region now: another one may"
    ACCOUNT_LIMIT = "the account may not grow: nothing can be bought for a while"
    RATE_LIMITED = "too many calls: wait and try again"
    UNAUTHORIZED = "the token may not do this"
    INVALID = "the API refuses what was asked: asking again won't help"
    GONE = "the object doesn't exist"
    RETRY = "the API failed: try again"


CAPACITY_PATTERNS: Final = (
    r"insufficient capacity",
    r"plan is (currently )?unavailable",
    r"not available in (this|the) region",
    r"out of (stock|capacity)",
    r"sold out",
)
_ACCOUNT_LIMIT: Final = re.compile(r"account limit reached", re.IGNORECASE)
_FIELDS_OF_OURS: Final = frozenset({"tags", "labels", "taints", "firewall_id", "k8s_version", "update_strategy"})


class Classifier(Struct, frozen=True):
    """Reads error texts; Linode documents none for a lack of capacity, so the patterns are a setting.

    Args:
        capacity: regular expressions in RE2's syntax, matched anywhere, without regard to case.
    """

    capacity: tuple[str, ...] = CAPACITY_PATTERNS

    def verdict(self, error: LinodeApiError) -> Verdict:
        """What an error means."""
        match error:
            case LinodeRateLimitedError():
                return Verdict.RATE_LIMITED
            case LinodeUnauthorizedError():
                return Verdict.UNAUTHORIZED
            case LinodeNotFoundError():
                return Verdict.GONE
            case LinodeBusyError() | LinodeServerError() | LinodeTransportError():
                return Verdict.RETRY
            case LinodeInvalidError():
                return self._refusal(error)
            case _:
                return Verdict.RETRY

    def _refusal(self, error: LinodeInvalidError) -> Verdict:
        if any(_ACCOUNT_LIMIT.search(entry.reason) for entry in error.errors):
            return Verdict.ACCOUNT_LIMIT
        about_plan = (entry.reason for entry in error.errors if entry.field not in _FIELDS_OF_OURS)
        return Verdict.SOLD_OUT if self._lacks_capacity(about_plan) else Verdict.INVALID

    def _lacks_capacity(self, reasons: Iterable[str]) -> bool:
        patterns = [_compiled(pattern) for pattern in self.capacity]
        return any(pattern.search(reason) for reason in reasons for pattern in patterns)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:
    """The pattern in RE2: operators set it and the API sets the text, so neither may decide how long a match takes."""
    return re2.compile(f"(?i){pattern}")
