"""Log lines as JSON, with the keys of the contract (spec/karpenter-lifecycle.md 6.3)."""

from __future__ import annotations

import json
import re
import sys
import time
import traceback
import uuid
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from karpenter_linode.controllers.scope import SCOPE
from karpenter_linode.model.duration import format_duration
from karpenter_linode.model.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from karpenter_linode.controllers.scope import Scope

LEVELS: Final = ("debug", "info", "warning", "error")
_NAMES: Final = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}
_KINDS: Final = frozenset(kind.KIND for kind in KINDS)
_FIRST: Final = 100
_EVERY: Final = 100
_REMEMBERED: Final = 4096
_SECRET: Final = "[redacted]"  # noqa: S105 - what stands in a secret's place
# What logs in by HTTP, wherever a message or an error quotes it. Bounded: text comes from outside.
_CREDENTIALS: Final = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{16,4096}", re.IGNORECASE)
_SHORTEST_SECRET: Final = 8


class _Output(Protocol):
    def write(self, text: str, /) -> Any: ...
    def flush(self) -> Any: ...


class JsonLogger:
    """``ports.Logger``: one JSON object a line.

    Keys: ``level``, ``time``, ``logger``, ``caller`` (at level debug), ``message``, ``commit``, then what is known of
    the reconcile that is under way (``controller``, ``controllerGroup``, ``controllerKind``, the kind, ``namespace``,
    ``name``, ``reconcileID``), then the fields. Of lines with equal message and level, the first 100 in a second are
    written and then every hundredth, so that a fault that repeats cannot fill a disk. A field named after a kind holds
    an object's name, which becomes ``{name, namespace}``. The stack of an exception in ``exc_info`` is shown at level
    debug only. Credentials are never written.

    Args:
        outputs: where lines go.
        level: lines below it are dropped.
        name: the ``logger`` key.
        now: time.
        commit: what this program was built from, "" where nobody knows.
        complaints: where it is told that an output cannot be written to.
    """

    def __init__(
        self,
        outputs: Sequence[_Output] = (sys.stdout,),
        level: str = "info",
        name: str = "controller",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        commit: str = "",
        complaints: Sequence[_Output] = (),
    ) -> None:
        self._outputs, self._name, self._now = tuple(outputs), name, now
        self._threshold = LEVELS.index(level or "info")
        self._commit, self._complaints = commit, tuple(complaints)
        self._secrets: tuple[str, ...] = ()
        self._seen: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()

    def hide(self, *secrets: str) -> None:
        """Texts that must not appear from now on; short ones would garble everything and are left."""
        self._secrets += tuple(_quoted(secret) for secret in secrets if len(secret) >= _SHORTEST_SECRET)

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
        scope = SCOPE.get()
        line = {
            "level": _NAMES[level],
            "time": self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "logger": self._name,
            **({"caller": _caller()} if self._threshold == 0 else {}),
            "message": event,
            **({"commit": self._commit} if self._commit else {}),
            **(_of_scope(scope) if scope is not None else {}),
            **{
                key: _named(value) if key in _KINDS else _plain(value)
                for key, value in fields.items()
                if not _repeats(key, value, scope)
            },
        }
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)
        self._write(self._without_secrets(text) + "\n")

    def _write(self, text: str) -> None:
        for output in self._outputs:
            try:
                _put(output, text)
                output.flush()
            except OSError as error:
                self._complain(error)

    def _complain(self, error: OSError) -> None:
        """A full disk or a closed pipe must not end the controller."""
        for output in self._complaints:
            try:
                output.write(f"{self._now().isoformat()} write error: {error}\n")
                output.flush()
            except OSError:
                continue

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _SECRET)
        return _CREDENTIALS.sub(rf"\1 {_SECRET}", text)

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


def _put(output: _Output, text: str) -> None:
    try:
        output.write(text)
    except UnicodeEncodeError:  # of a stream that isn't UTF-8, or of what the system had in place of text
        output.write(json.dumps(json.loads(text), separators=(",", ":")) + "\n")


def _of_scope(scope: Scope) -> dict[str, Any]:
    if not scope.reconcile_id:
        scope.reconcile_id = str(uuid.uuid4())
    told: dict[str, Any] = {"controller": scope.controller}
    namespace, name = "", scope.key
    if scope.kind is not None:
        namespace, _, name = scope.key.rpartition("/")
        told |= {
            "controllerGroup": scope.kind.API_VERSION.rpartition("/")[0],
            "controllerKind": scope.kind.KIND,
            scope.kind.KIND: _named(scope.key),
        }
    return {**told, "namespace": namespace, "name": name, "reconcileID": scope.reconcile_id}


def _repeats(key: str, value: Any, scope: Scope | None) -> bool:
    """Whether a field says again, less precisely, what the reconcile is about."""
    return scope is not None and key == "name" and value == scope.key


def _caller() -> str:
    """Folder, file and line that the message comes from."""
    frame = sys._getframe(3)  # noqa: SLF001 - the only way; what ``logging`` does
    path = Path(frame.f_code.co_filename)
    return f"{path.parent.name}/{path.name}:{frame.f_lineno}"


def _quoted(secret: str) -> str:
    """A text as it stands within JSON."""
    return json.dumps(secret, ensure_ascii=False)[1:-1]


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
