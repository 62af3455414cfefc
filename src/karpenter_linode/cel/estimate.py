from __future__ import annotations
SizeHint = None
