"""Delays that more than one decider uses."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

NOW: Final = timedelta(0)
NODE_POLL: Final = timedelta(seconds=1)
INSTANCE_POLL: Final = timedelta(seconds=5)
