"""The short form of contract texts: what a terminal shows where events and JSON carry the whole sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from karpenter_linode.model.reason import Reason

# What a contract text lists of the pod and the pool it is about. The lines below name what matters of it.
_DUMP: Final = re.compile(r", requirements=.*?, resources=(?:min=)?\{[^{}]*\}(?:, max=\{[^{}]*\})?", re.DOTALL)
_POOL: Final = "NodePool "


def brief(message: str) -> str:
    """A message without the requirements and resources that the contract appends to it."""
    return _DUMP.sub("", message)


def summary(reason: Reason) -> str:
    """The message of a pod's refusal in brief; what several NodePools say alike is said once."""
    pools = [child.message for child in reason.children if child.subject.startswith(_POOL)]
    return "; ".join(dict.fromkeys(map(brief, pools or [reason.message])))
