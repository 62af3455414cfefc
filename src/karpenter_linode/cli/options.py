"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from karpenter_linode.cli.errors import Place, input_error
from karpenter_linode.cli.offline import Market
from karpenter_linode.cli.output import FORMATS
from karpenter_linode.linode.tables import DEFAULT_REGION, bundled_regions, bundled_types
from karpenter_linode.model import codec
from karpenter_linode.model.linode import LinodeType
from karpenter_linode.operator.scheduler_config import SchedulerConfigError, parse_scheduler_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.model.core import TopologySpreadConstraint

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
plans: Final[Decorator] = click.option(
    "--plans",
    metavar="FILE",
    help="Plans to build from, as `linode-cli linodes types --json` prints them, instead of the bundled ones.",
)
scheduler_config: Final[Decorator] = click.option(
    "--scheduler-config",
    metavar="FILE",
    help="Topology spread of pods that declare none: YAML as in the controller's SCHEDULER_CONFIG.",
)
output: Final[Decorator] = click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the result.",
)


strict: Final[Decorator] = click.option(
    "--strict", is_flag=True, help="Take every warning about the input for an error, such as an unknown field."
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


def default_spread(path: str | None) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints that a file of ``--scheduler-config`` names; none without one.

    Raises:
        InputError: it cannot be read, or the controller would refuse it.
    """
    if path is None:
        return ()
    try:
        return parse_scheduler_config(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise input_error(Place(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise input_error(Place(path), "expected YAML in UTF-8") from None
    except SchedulerConfigError as error:
        raise input_error(Place(path), str(error)) from None


def market(region_name: str | None, plans_file: str | None) -> Market:
    """The plans and the region that the options name.

    Raises:
        UsageError: no such region.
        InputError: the file holds no list of plans.
    """
    where = known_region(region_name)
    if plans_file is None:
        return Market(where, bundled_types())
    try:
        return Market(where, codec.decode(Path(plans_file).read_bytes(), tuple[LinodeType, ...]))
    except OSError as error:
        raise input_error(Place(plans_file), f"cannot be read: {error.strerror}") from None
    except codec.DecodeError as error:
        raise input_error(Place(plans_file), f"expected a JSON list of Linode types: {error}") from None
