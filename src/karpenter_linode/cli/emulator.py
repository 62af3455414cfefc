"""``emulator``: the Linode API of the embedded world, served over HTTP in real time."""

from __future__ import annotations

import click

from karpenter_linode.cli.errors import EXIT_BAD_INPUT
from karpenter_linode.cli.output import note

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command("emulator")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8480, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on.")
def command(*, host: str, port: int) -> int:
    """Serve an emulated Linode API over HTTP until interrupted.

    Types, regions, availability, LKE clusters and pools, instances: enough for this project's own client, for
    linode-cli and for scripts. Nothing is bought. Any token is accepted, so keep it on the loopback address.

    \b
    Examples:
      karpenter-linode emulator --port 8480
      export LINODE_CLI_TOKEN=any LINODE_CLI_API_HOST=127.0.0.1:8480 LINODE_CLI_API_SCHEME=http
      linode-cli linodes types --class gpu --json
    """  # noqa: D301 - \b is click's mark for "do not rewrap"
    from karpenter_linode.sim.linode.serve import serve  # noqa: PLC0415 - a web server, for this command alone

    if host not in _LOOPBACK:
        note(f"anybody who reaches {host} can use this API: it accepts every token")
    try:
        serve(host, port)
    except OSError as error:
        click.echo(f"error: cannot listen on {host}:{port}: {error.strerror}", err=True)
        return EXIT_BAD_INPUT
    return 0
