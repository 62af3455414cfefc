"""``linode://<id>``, as the cloud controller manager writes it to nodes (spec/linode-provider.md 0)."""

from __future__ import annotations

import re
from typing import Final

from karpenter_linode.ports import InstanceNotFoundError

_KNOWN: Final = re.compile(r"linode://([0-9]{1,18})")


def provider_id(instance: int) -> str:
    """The provider id of an instance."""
    return f"linode://{instance}"


def instance_id(text: str) -> int:
    """The instance of a provider id.

    Raises:
        InstanceNotFoundError: it's no provider id of ours, so no instance of ours can have it.
    """
    match = _KNOWN.fullmatch(text)
    if match is None:
        raise InstanceNotFoundError(f"parsing instance ID: provider id does not match known format: {text!r}")
    return int(match[1])
