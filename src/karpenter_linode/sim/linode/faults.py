"""What goes wrong in the emulated cloud, as a script that may change while it runs (spec/linode-provider.md 7.7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import re2

if TYPE_CHECKING:
    from collections.abc import Callable


class Effect(Enum):
    """What happens to a call that a rule picks."""

    STATUS = "answered with an error, not carried out"
    REFUSED = "connection refused, not carried out"
    LOST_ANSWER = "carried out, the connection drops before the answer"
    LATE = "the connection drops, the call is carried out later"


@dataclass
class FaultRule:
    """Picks calls and says what happens to them.

    Attributes:
        method: HTTP method.
        path: regular expression in RE2's syntax for the whole path behind the version.
        effect: what happens.
        times: how many calls it still picks.
        skip: how many matching calls go free first.
        status: status of the answer.
        reason: reason in the answer; an empty one makes an HTML page as proxies send it.
        headers: headers of the answer.
        seconds: how late, for ``LATE``.
    """

    method: str
    path: str
    effect: Effect
    times: int = 1
    skip: int = 0
    status: int = 500
    reason: str = "Internal server error"
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0

    def picks(self, method: str, path: str) -> bool:
        """Whether the rule applies to this call; counts it."""
        if self.times <= 0 or method != self.method or not re2.fullmatch(self.path, path):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.times -= 1
        return True


@dataclass
class LinodeFaults:
    """The script. All of it may be changed at any time.

    Attributes:
        sold_out: ``(plan, region)`` that can't be built now, whatever the availability list says.
        unavailable: ``(plan, region)`` that the availability list shows as unavailable, beside its own rows.
        duplicate_availability_rows: every availability row comes twice, as some regions do.
        account_limit: machines that the account may have, or None.
        tag_reads_until_visible: reads of an instance after a tag write that still show the old tags.
        stuck_members: members created from now on that get no instance.
        slow_deletion_seconds: added to the deletion of every machine.
        pool_tags_reach_instances: whether pool tags reach instances; None follows the tier.
        rules: faults of single calls, the first that picks a call wins.
        before_call: called with method and path before anything else, to change the script in the middle of a story.
    """

    sold_out: set[tuple[str, str]] = field(default_factory=set)
    unavailable: set[tuple[str, str]] = field(default_factory=set)
    duplicate_availability_rows: bool = False
    account_limit: int | None = None
    tag_reads_until_visible: int = 0
    stuck_members: int = 0
    slow_deletion_seconds: float = 0
    pool_tags_reach_instances: bool | None = None
    rules: list[FaultRule] = field(default_factory=list)
    before_call: Callable[[str, str], None] | None = None

    def fail(
        self,
        method: str,
        path: str,
        status: int,
        reason: str = "Internal server error",
        *,
        times: int = 1,
        skip: int = 0,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer calls with an error without carrying them out."""
        self.rules.append(FaultRule(method, path, Effect.STATUS, times, skip, status, reason, headers or {}))

    def refuse_connection(self, method: str, path: str, *, times: int = 1) -> None:
        """Refuse connections."""
        self.rules.append(FaultRule(method, path, Effect.REFUSED, times))

    def lose_answer(self, method: str, path: str, *, times: int = 1, skip: int = 0) -> None:
        """Carry calls out and drop the connection before the answer."""
        self.rules.append(FaultRule(method, path, Effect.LOST_ANSWER, times, skip))

    def carry_out_late(self, method: str, path: str, seconds: float, *, times: int = 1) -> None:
        """Drop the connection, and carry the call out some time later."""
        self.rules.append(FaultRule(method, path, Effect.LATE, times, seconds=seconds))

    def take(self, method: str, path: str) -> FaultRule | None:
        """The rule that picks this call, if any."""
        if self.before_call is not None:
            self.before_call(method, path)
        return next((rule for rule in self.rules if rule.picks(method, path)), None)
