"""The objects that ``plan`` and ``simulate`` start from: read, checked against each other and against the plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.cli.errors import InputError
from karpenter_linode.cli.manifests import load
from karpenter_linode.cli.plan_names import plan_warnings
from karpenter_linode.cli.references import reference_errors, reference_warnings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.cli.manifests import Manifests
    from karpenter_linode.cli.offline import Market


def read_input(paths: Iterable[str], market: Market, *, strict: bool, spread: bool = False) -> Manifests:
    """Read manifests and check what they refer to.

    Args:
        paths: files, directories and ``-``.
        market: the plans that may be named.
        strict: take a warning for an error.
        spread: keep what only a default topology spread asks for.

    Raises:
        InputError: something is wrong; holds all findings.
    """
    manifests = load(paths, spread=spread)
    manifests.warnings += [*reference_warnings(manifests), *plan_warnings(manifests, market)]
    errors = reference_errors(manifests)
    if errors:
        raise InputError(errors, manifests.warnings)
    if strict and manifests.warnings:
        raise InputError(manifests.warnings)
    return manifests
