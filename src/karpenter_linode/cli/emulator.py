"""``emulator``: the Linode API of the embedded world, served over HTTP in real time."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Final

import click
import uvicorn

from karpenter_linode.cli.errors import EXIT_BAD_INPUT
from karpenter_linode.cli.output import note
from karpenter_linode.linode.tables import bundled_availability, bundled_regions, bundled_types
from karpenter_linode.sim.clock import WallClock
from karpenter_linode.sim.linode.app import create_app
from karpenter_linode.sim.linode.limits import DOCUMENTED
from karpenter_linode.sim.linode.world import LinodeWorld
from karpenter_linode.sim.seeded import SeededRandom

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@click.command("emulator")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8480,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 picks a free one.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides ids and delays.")
@click.option("--token", default="", help="The only token that is let in; without it every token is.")
@click.option("--rate-limits", is_flag=True, help="Refuse calls beyond Linode's documented rate limits with 429.")
def command(*, host: str, port: int, seed: int, token: str, rate_limits: bool) -> int:
    """Serve an emulated Linode API over HTTP until interrupted.

    Types, regions, availability, LKE clusters, node pools and instances: enough for this project's own client, for
    linode-cli and for scripts. Machines take as long to boot as real ones. Nothing is bought and nothing is kept.

    \b
    Examples:
      karpenter-linode emulator --port 8480
      export LINODE_CLI_TOKEN=any LINODE_CLI_API_HOST=127.0.0.1:8480 LINODE_CLI_API_SCHEME=http
      linode-cli linodes types --class gpu --json

    LKE cluster 561146 (embedded, us-ord) is there from the start, without node pools.
    """  # noqa: D301 - \b is click's mark for "do not rewrap"
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        click.echo(f"error: cannot listen on {host} port {port}: {error.strerror}", err=True)
        return EXIT_BAD_INPUT
    if host not in _LOOPBACK:
        note(f"whoever reaches {host} can use this API{'' if token else '; every token is let in'}")
    app = create_app(_world(seed), token=token, limits=DOCUMENTED if rate_limits else None)
    address = f"[{host}]" if ":" in host else host
    click.echo(f"Linode API on http://{address}:{listener.getsockname()[1]}/v4 (stop with ctrl-c)", err=True)
    # An interrupt is how this command ends.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off")).run(sockets=[listener])
    return 0


def _world(seed: int) -> LinodeWorld:
    regions = bundled_regions()
    return LinodeWorld(
        WallClock(),
        SeededRandom(seed),
        types=bundled_types(),
        regions=regions,
        availability=[row for region in regions for row in bundled_availability(region.id)],
    )
