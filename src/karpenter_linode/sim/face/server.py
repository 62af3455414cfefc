"""The HTTP server around the face: on this machine only, inside the world's own event loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Generator

    from karpenter_linode.sim.face.app import Face

LOOPBACK: Final = "127.0.0.1"
_MAX_CONNECTIONS: Final = 512
_KEEP_ALIVE: Final = 75.0
_GRACE: Final = 2.0


class FaceServer(uvicorn.Server):
    """Serves a face until told to stop. Signals are its owner's business.

    Args:
        face: what to serve.
        listener: a listening socket.
        speed: the loop's seconds in a real one; the server's own patience is told in real ones.
    """

    def __init__(self, face: Face, listener: socket.socket, speed: float) -> None:
        self._face, self._listener = face, listener
        self._stopped = asyncio.Event()
        super().__init__(
            uvicorn.Config(
                face.app(),
                log_level="error",  # what clients ask in vain is told to them, not to the terminal of the story
                access_log=False,
                lifespan="off",
                ws="none",
                http="h11",
                server_header=False,
                date_header=False,
                limit_concurrency=_MAX_CONNECTIONS,
                timeout_keep_alive=int(_KEEP_ALIVE * speed),
                timeout_graceful_shutdown=int(_GRACE * speed),
            )
        )

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield

    async def main_loop(self) -> None:
        """Wait for the end. The base looks ten times a second, and a fast loop would do little else."""
        await self._stopped.wait()

    async def run_until_stopped(self) -> None:
        """Serve."""
        await self.serve(sockets=[self._listener])

    def stop(self) -> None:
        """End all watches, take no more requests, and finish those under way."""
        self._face.streams.close()
        self.should_exit = True
        self._stopped.set()


def listen(port: int) -> socket.socket:
    """A socket that listens on this machine alone.

    Args:
        port: 0 for any free one.

    Raises:
        OSError: the port is taken.
    """
    return socket.create_server((LOOPBACK, port))
