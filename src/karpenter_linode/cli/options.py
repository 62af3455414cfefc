"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from karpenter_linode.cli.output import FORMATS
from karpenter_linode.linode.tables import DEFAULT_REGION, bundled_regions

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[Any], Any]

region: Final[Decorator] = click.option(
    "--region",
    metavar="REGION",
    help=f"Linode region in which nodes are built; decides prices and availability.  [default: {DEFAULT_REGION}]",
)
ignore_dra_requests: Final[Decorator] = click.option(
    "--ignore-dra-requests",
    is_flag=True,
    help="Refuse pods with ResourceClaims, as the controller does by default.",
)
output: Final[Decorator] = click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the result.",
)


def known_region(name: str | None) -> str:
    """The region asked for, or the default one.

    Raises:
        UsageError: the program has no prices for it.
    """
    known = [item.id for item in bundled_regions()]
    if name is not None and name not in known:
        raise click.BadParameter(f"no region {name!r}: known are {', '.join(known)}", param_hint="--region")
    return name or DEFAULT_REGION
