"""What this program was built from."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

import msgspec
from msgspec import Struct

_DIGITS = 7


class _Source(Struct, frozen=True):
    commit_id: str = ""


class _DirectUrl(Struct, frozen=True):
    vcs_info: _Source = _Source()


def commit() -> str:
    """The first seven digits of the commit that was installed, or "" where the installer did not note it (PEP 610)."""
    try:
        noted = distribution("karpenter-linode").read_text("direct_url.json")
        return msgspec.json.decode(noted or "{}", type=_DirectUrl).vcs_info.commit_id[:_DIGITS]
    except (PackageNotFoundError, msgspec.MsgspecError):
        return ""
