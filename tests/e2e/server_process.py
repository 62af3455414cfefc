"""A server as a child process: its log in a file, its end never forgotten."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

LEASH = Path(__file__).with_name("leash.py")  # `[sys.executable, LEASH, *command]` never outlives us
_TAIL_LINES = 20


class ServerError(RuntimeError):
    """A server ended, or did not get ready; the message has the end of its log."""


class ServerProcess:
    """One program that runs until it is stopped, in a process group of its own.

    The program is expected to end when its standard input closes, as it does when this process is killed.
    """

    def __init__(self, name: str, command: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        """Args: `environment` is added to ours."""
        self.name = name
        self.log = log
        self._command = command
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._may_end = False

    @property
    def pid(self) -> int | None:
        """The process id, which is also the group's; None when it is not running."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Starts the program; its output is added to the log."""
        if self._process is not None:
            raise ServerError(f"{self.name} runs already, as process {self._process.pid}")
        self._may_end = False
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # the caller says what to run: that is its purpose
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | self._environment,
            )

    def runs(self) -> bool:
        """Whether the program was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def exit_code(self, seconds: float = 120.0) -> int:
        """How the program ended, waited for; ServerError where it has not within `seconds`."""
        self._may_end = True
        if self._process is None:
            raise ServerError(f"{self.name} does not run")
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ServerError(f"{self.name} had not ended after {seconds} s; {self.log_tail()}") from None

    def pause(self) -> None:
        """Freezes the program where it stands."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a frozen program go on, unaware."""
        self._send(signal.SIGCONT)

    def check(self) -> None:
        """Raises ServerError if the program `ended`."""
        if self.ended():
            raise ServerError(f"{self.name} ended with exit code {self._exit_code()}; {self.log_tail()}")

    def ended(self) -> bool:
        """Whether the program was started and has ended by itself, which nobody asked for."""
        return self._exit_code() is not None and not self._may_end

    def terminate(self) -> None:
        """Asks the program to end, without waiting."""
        self._may_end = True
        if self._process is not None:
            self._process.terminate()

    def stop(self, grace_seconds: float = 20.0) -> None:
        """Asks the program to end, waits, and kills it if it has not ended in time."""
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
        self.kill()

    def kill(self) -> None:
        """Ends the program and all that it started at once, as a crash would."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._process = None

    def _exit_code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def _send(self, number: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            raise ServerError(f"{self.name} does not run; {self.log_tail()}")
        self._process.send_signal(number)

    def log_tail(self) -> str:
        """The last lines of the log, and where it is."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"the end of {self.log}:", *lines[-_TAIL_LINES:]])
