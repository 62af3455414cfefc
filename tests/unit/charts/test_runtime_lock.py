"""The image gets from the lock what the program needs, and no more."""

from __future__ import annotations

import runpy
from importlib.metadata import requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LOCK = (ROOT / "requirements.lock").read_text()
part_of = runpy.run_path(str(ROOT / "scripts" / "runtime_lock.py"))["part_of"]


def names(lock: str) -> set[str]:
    return {line.partition("==")[0] for line in lock.splitlines() if "==" in line and line[0] not in " #"}


def installed_closure(name: str) -> set[str]:
    """What a package needs here, as its own metadata says. Extras are left out."""
    from packaging.requirements import Requirement  # noqa: PLC0415  # comes with pytest

    found: set[str] = set()
    todo = [name]
    while todo:
        for text in requires(todo.pop()) or []:
            requirement = Requirement(text)
            needed = requirement.name.lower().replace("_", "-")
            if (requirement.marker is None or requirement.marker.evaluate({"extra": ""})) and needed not in found:
                found.add(needed)
                todo.append(needed)
    return found


def test_everything_that_the_program_needs_is_in_its_part() -> None:
    assert installed_closure("karpenter-linode") - {"karpenter-linode"} <= names(part_of(LOCK))


def test_no_tool_is_in_the_programs_part() -> None:
    assert names(part_of(LOCK)).isdisjoint({"pytest", "mypy", "ruff", "hypothesis", "mkdocs", "hatchling"})


def test_entries_come_with_their_hashes_unchanged() -> None:
    part = part_of(LOCK)
    for entry in part.split("\n    # via")[0:-1]:
        assert "--hash=sha256:" in entry
    assert set(part.splitlines()) <= set(LOCK.splitlines())
    assert names(part) < names(LOCK)


def test_the_build_tools_have_a_part_of_their_own() -> None:
    assert {"hatchling", "pluggy", "pathspec"} <= names(part_of(LOCK, ("hatchling",)))


def test_a_package_that_is_not_in_the_lock_is_named() -> None:
    with pytest.raises(KeyError, match="not in the lock: made-up"):
        part_of(LOCK, ("made-up",))
