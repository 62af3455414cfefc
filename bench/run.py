"""Runs every benchmark of this folder and prints what it says, with the machine named: ``make bench``."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def machine() -> str:
    """Processor, cores, system and Python, in one line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    bytecode = "no byte code is written" if sys.dont_write_bytecode else "byte code is written"
    python = f"Python {platform.python_version()} ({bytecode})"
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, {python}"


def main() -> int:
    print(machine())
    failed = []
    for script in sorted(HERE.glob("*.py")):
        if script.name == Path(__file__).name:
            continue
        print(f"\n== {script.name}", flush=True)
        if subprocess.run([sys.executable, str(script)], check=False).returncode != 0:  # noqa: S603 - our own files
            failed.append(script.name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
