"""The command line as a user feels it: from pressing return to the last line. Each figure stands beside its target."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAM = [sys.executable, "-m", "karpenter_linode.cli"]
PODS = 1000

POD = """---
apiVersion: v1
kind: Pod
metadata: {{name: gpu-job-{number}}}
spec:
  nodeSelector: {{karpenter.sh/nodepool: gpu}}
  tolerations: [{{key: nvidia.com/gpu, operator: Equal, value: "true", effect: NoSchedule}}]
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: one-gpu}}]
  containers: [{{name: app, resources: {{claims: [{{name: gpu}}]}}}}]
"""


def seconds(arguments: list[str], *, runs: int, environment: dict[str, str]) -> tuple[float, float]:
    """Wall-clock and processor time of the best of several runs: what the machine can do, without what else it did."""
    best = (float("inf"), float("inf"))
    for _ in range(runs):
        begin, used = time.perf_counter(), processor_time()
        done = subprocess.run(  # noqa: S603 - our own program
            [*PROGRAM, *arguments], cwd=ROOT, env=environment, capture_output=True, check=False
        )
        best = min(best, (time.perf_counter() - begin, processor_time() - used))
        if done.returncode != 0:
            sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr.decode()}")
    return best


def processor_time() -> float:
    """Seconds that finished child processes have computed."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def many_pods(folder: Path) -> Path:
    """The example's cluster without limits, and a thousand pods with a claim each."""
    pool = (ROOT / "examples/one-gpu/nodepool.yaml").read_text(encoding="utf-8").partition("  limits:")[0]
    parts = [
        pool,
        *((ROOT / f"examples/one-gpu/{name}.yaml").read_text() for name in ("nodeclass", "deviceclass", "template")),
    ]
    file = folder / "many.yaml"
    file.write_text(
        "---\n".join(parts) + "".join(POD.format(number=number) for number in range(PODS)), encoding="utf-8"
    )
    return file


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        many = str(many_pods(folder))
        cached = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        cached["PYTHONPYCACHEPREFIX"] = str(folder / "byte-code")
        bare = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        example = ["plan", "examples/one-gpu"]
        seconds(example, runs=1, environment=cached)
        rows = [
            ("plan examples/one-gpu, cold start to output", seconds(example, runs=5, environment=cached), 0.5),
            ("the same where no byte code is written", seconds(example, runs=3, environment=bare), None),
            ("karpenter-linode --help", seconds(["--help"], runs=3, environment=cached), None),
            (f"plan of {PODS} pods with a claim each", seconds(["plan", many], runs=3, environment=cached), 3.0),
            ("simulate examples/one-gpu", seconds(["simulate", "examples/one-gpu"], runs=3, environment=cached), 3.0),
        ]
    print(f"{'':48} {'wall':>9} {'computing':>11}")
    for what, (took, used), target in rows:
        print(f"{what:48} {took:7.2f} s {used:9.2f} s" + (f"   target {target:.1f} s" if target else ""))


if __name__ == "__main__":
    main()
