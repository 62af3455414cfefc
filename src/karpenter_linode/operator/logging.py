"""Log lines as JSON, with the keys of the contract (spec/karpenter-lifecycle.md 6.3)."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from karpenter_linode.model.duration import format_duration
from karpenter_linode.model.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEVELS: Final = ("debug", "info", "warning", "error")
_NAMES: Final = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}
_KINDS: Final = frozenset(kind.KIND for kind in KINDS)
_FIRST: Final = 100
_EVERY: Final = 100
_REMEMBERED: Final = 4096


class _Output(Protocol):
    def write(self, text: str, /) -> Any: ...
    def flush(self) -> Any: ...


class JsonLogger:
    """``ports.Logger``: one JSON object a line.

    Keys: ``level``, ``time``, ``logger``, ``message``, then the fields. Of lines with equal message and level, the
    first 100 in a second are written and then every hundredth, so that a fault that repeats cannot fill a disk. A field
    named after a kind holds an object's name, which becomes ``{name, namespace}``. The stack of an exception in
    ``exc_info`` is shown at level debug only.

    Args:
        outputs: where lines go.
        level: lines below it are dropped.
        name: the ``logger`` key.
        now: time.
    """

    def __init__(
        self,
        outputs: Sequence[_Output] = (sys.stdout,),
        level: str = "info",
        name: str = "controller",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._outputs, self._name, self._now = tuple(outputs), name, now
        self._threshold = LEVELS.index(level or "info")
        self._seen: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()

    def debug(self, event: str, **fields: Any) -> None:
        """Upstream's V(1)."""
        self._log("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """Info level."""
        self._log("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Warning level."""
        self._log("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Error level; the cause goes into the field ``error``."""
        self._log("error", event, fields)

    def _log(self, level: str, event: str, fields: dict[str, Any]) -> None:
        if LEVELS.index(level) < self._threshold or not self._sampled(level, event):
            return
        error = fields.pop("exc_info", None)
        if isinstance(error, BaseException) and self._threshold == 0:
            fields["stacktrace"] = "".join(traceback.format_exception(error))
        line = {
            "level": _NAMES[level],
            "time": self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "logger": self._name,
            "message": event,
            **{key: _named(value) if key in _KINDS else _plain(value) for key, value in fields.items()},
        }
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"
        for output in self._outputs:
            output.write(text)
            output.flush()

    def _sampled(self, level: str, event: str) -> bool:
        second = int(time.monotonic())
        before, count = self._seen.get((level, event), (second, 0))
        count = count + 1 if before == second else 1
        self._seen[level, event] = (second, count)
        self._seen.move_to_end((level, event))
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return count <= _FIRST or count % _EVERY == 0


def open_outputs(paths: str) -> list[IO[str]]:
    """The outputs that a comma list names: ``stdout``, ``stderr`` or files, which are added to.

    Raises:
        OSError: a file cannot be opened.
    """
    streams = {"stdout": sys.stdout, "stderr": sys.stderr}
    names = [name.strip() for name in paths.split(",") if name.strip()]
    return [streams[name] if name in streams else Path(name).open("a", encoding="utf-8") for name in names]


def _named(value: Any) -> Any:
    if not isinstance(value, str):
        return _plain(value)
    namespace, _, name = value.rpartition("/")
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, BaseException):
        return str(value)
    return value
