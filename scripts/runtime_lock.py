# ruff: noqa: INP001 - a script, not a package
"""Prints the part of a lock file that some packages need: those of the program itself, or of the packages named.

    scripts/runtime_lock.py requirements.lock            what running the program needs
    scripts/runtime_lock.py requirements.lock hatchling  what building it needs

The lock says after each package which others it is there for; nothing is resolved again, so versions and hashes stay.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PROGRAM = "karpenter-linode (pyproject.toml)"
_NAME = re.compile(r"^([a-z0-9][a-z0-9._-]*)==")
_NEEDED_BY = re.compile(r"^    #(?: via|  ) +(\S.*)$", re.MULTILINE)


def part_of(lock: str, wanted: tuple[str, ...] = ()) -> str:
    """The entries of a lock that packages need, themselves included.

    Args:
        lock: text of a file that ``uv pip compile --generate-hashes`` wrote.
        wanted: names of packages; none for what the program itself needs.

    Raises:
        KeyError: a package that is wanted is not in the lock.
    """
    entries = {_name(entry): entry for entry in re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE) if entry.strip()}
    if missing := [name for name in wanted if name not in entries]:
        raise KeyError(f"not in the lock: {', '.join(missing)}")
    needed, found = set(wanted), set(wanted or (PROGRAM,))
    while found:
        found = {name for name, entry in entries.items() if found.intersection(_NEEDED_BY.findall(entry))} - needed
        needed |= found
    return "".join(entry for name, entry in entries.items() if name in needed)


def _name(entry: str) -> str:
    match = _NAME.match(entry)
    if match is None:
        raise ValueError(f"expected a line like name==version, found {entry.splitlines()[0]!r}")
    return match[1]


if __name__ == "__main__":
    sys.stdout.write(part_of(Path(sys.argv[1]).read_text(encoding="utf-8"), tuple(sys.argv[2:])))
