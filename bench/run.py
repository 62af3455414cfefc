"""Runs the benchmarks of this folder and prints what they say, with the machine named: ``make bench``.

    bench/run.py [NAME...] [--problems FOLDER]

Names are cel, dra, scheduling, kube, launch and commands (``plan`` and ``simulate`` as users feel them); without one,
all run.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHES = {
    "cel": "cel.py",
    "dra": "dra.py",
    "scheduling": "scheduling.py",
    "kube": "kube.py",
    "launch": "launch.py",
    "commands": "plan.py",
}
# Problem files with the times of Karpenter itself; they are kept beside the project, not in it.
PROBLEMS = HERE.parent.parent / "shared/vectors/scheduling-bench"


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


def load() -> str:
    """How busy the machine is: wall-clock times of a busy machine say little, processor times stay comparable."""
    busy = os.getloadavg()[0]
    quiet = "quiet" if busy < 1 else "busy: go by the processor times"
    return f"load {busy:.1f} when started ({quiet})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--problems", type=Path, default=PROBLEMS if PROBLEMS.is_dir() else None)
    arguments = parser.parse_args()
    print(machine())
    print(load())
    failed = []
    for name in arguments.names or BENCHES:
        script = BENCHES[name]
        problems = ["--problems", str(arguments.problems)] if name == "scheduling" and arguments.problems else []
        print(f"\n== {script}", flush=True)
        command = [sys.executable, str(HERE / script), *problems]
        if subprocess.run(command, check=False).returncode != 0:  # noqa: S603 - our own files
            failed.append(script)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
