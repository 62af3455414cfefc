"""Running the command line within the test process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from karpenter_linode.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Callable


class Result(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs ``karpenter-linode`` with arguments, from the root of the repository."""
    monkeypatch.chdir(Path(__file__).parents[3])

    def call(*arguments: str) -> Result:
        code = run(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call
