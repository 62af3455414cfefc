"""The kubeconfig of a served world: made, and written where it can do no harm."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from karpenter_linode.cli.errors import Place, input_error

if TYPE_CHECKING:
    from karpenter_linode.cli.errors import InputError

CONTEXT: Final = "karpenter-linode-simulated"
MARK: Final = "# Made by `karpenter-linode simulate --serve`; of no use once that has ended.\n"
_MODE: Final = 0o600


def kubeconfig(server: str) -> str:
    """The text of a kubeconfig.

    Args:
        server: the URL, with the secret in its path. Clients of Kubernetes send no token over plain HTTP, so the path
            is what lets them in.
    """
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": {"server": server}}],
        "users": [{"name": CONTEXT, "user": {}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"}}],
        "current-context": CONTEXT,
    }
    return MARK + yaml.safe_dump(content, sort_keys=False)


def check_target(path: str) -> None:
    """Whether a kubeconfig may be written there: over nothing, or over one that an earlier run left.

    Raises:
        InputError: the file is somebody else's, or cannot be read.
    """
    file = Path(path)
    try:
        if file.exists() and not file.read_text(encoding="utf-8", errors="replace").startswith(MARK):
            raise input_error(Place(path), "there is a file here that this command did not write: name another one")
        if not file.parent.is_dir():
            raise input_error(Place(path), "no such directory")
    except OSError as error:
        raise _unusable(path, error) from None


def write(path: str, text: str) -> None:
    """Write a kubeconfig that only its owner can read.

    Raises:
        InputError: it cannot be written.
    """
    file, new = Path(path), Path(f"{path}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "w", encoding="utf-8") as stream:
            stream.write(text)
        new.replace(file)
    except OSError as error:
        raise _unusable(path, error) from None


def remove(path: str, text: str) -> None:
    """Take a kubeconfig away again, unless another world has put its own there."""
    file = Path(path)
    try:
        if file.read_text(encoding="utf-8", errors="replace") == text:
            file.unlink()
    except OSError:
        return


def _unusable(path: str, error: OSError) -> InputError:
    return input_error(Place(path), f"cannot be used as a kubeconfig: {error.strerror}")
