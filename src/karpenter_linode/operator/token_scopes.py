"""What the Linode token may do, as far as the API tells (spec/linode-provider.md 7.6)."""

from __future__ import annotations

import re
from typing import Final

NEEDED: Final = ("lke:read_write", "linodes:read_write")
_ALL: Final = "*"
_BETWEEN: Final = re.compile(r"[\s,]+")


class GrantedScopes:
    """What the answers of the API said of the token, in the header ``X-OAuth-Scopes``.

    Attributes:
        text: the header's value; None where no answer had it.
    """

    def __init__(self) -> None:
        self.text: str | None = None

    def missing(self) -> tuple[str, ...]:
        """Scopes that are needed and not granted; none where the API doesn't tell."""
        if self.text is None:
            return ()
        granted = frozenset(filter(None, _BETWEEN.split(self.text)))
        return tuple(scope for scope in NEEDED if not {_ALL, scope, f"{scope.partition(':')[0]}:*"} & granted)
