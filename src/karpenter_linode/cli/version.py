"""``version``: which release this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import click


def current() -> str:
    """The installed version, or ``unspecified`` for a bare source tree."""
    try:
        return version("karpenter-linode")
    except PackageNotFoundError:
        return "unspecified"


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(f"karpenter-linode {current()}")
