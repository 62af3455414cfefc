"""One more attempt for end-to-end tests, and only for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUITE = """
import pytest

attempts = []

@pytest.fixture
def ground():
    attempts.append("setup")
    yield
    attempts.append("teardown")

@pytest.mark.e2e
def test_works_the_second_time(ground):
    assert attempts == ["setup", "teardown", "setup"], "the first failure's words"

@pytest.mark.e2e
def test_never_works():
    assert False

@pytest.mark.e2e
def test_works():
    pass

def test_of_another_kind():
    assert False
"""


def run(tmp_path: Path, *arguments: str) -> str:
    (tmp_path / "test_it.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = e2e\n")
    plugins = ["-p", "attempts", "-p", "summary", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, *arguments, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(  # noqa: S603  # pytest, on the tests above
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_a_second_success_is_told_loudly_and_a_second_failure_is_one(tmp_path: Path) -> None:
    out = run(tmp_path)
    assert "PASSED ON THE SECOND ATTEMPT test_it.py: works the second time" in out
    assert "passed on the second attempt: test_it.py::test_works_the_second_time" in out
    assert "the first failure's words" in out
    assert "passed   test_it.py: works\n" in out
    assert "failed   test_it.py: never works" in out
    assert "2 failed, 2 passed" in out
    assert "1 failed, 2 passed, 1 of them on the second attempt" in out  # of the end-to-end ones


def test_workers_do_the_same(tmp_path: Path) -> None:
    out = run(tmp_path, "-n", "2")
    assert "passed on the second attempt: test_it.py::test_works_the_second_time" in out
    assert "2 failed, 2 passed" in out
