"""Runs a program that is killed when the process that started it ends, however that one ends.

Usage: `python leash.py PROGRAM ARGUMENT...`
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked to be told
        sys.exit(1)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606  # the caller says what to run: that is its purpose
