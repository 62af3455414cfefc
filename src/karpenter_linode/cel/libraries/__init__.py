"""The function libraries, one module each, and the set that Kubernetes enables for device selectors."""

from __future__ import annotations

from typing import Final

from karpenter_linode.cel import macros
from karpenter_linode.cel.declarations import Library
from karpenter_linode.cel.libraries import (
    cidr,
    conversions,
    format,  # noqa: A004 - the library's name
    formatting,
    ip,
    lists,
    operators,
    optional,
    quantity,
    regex,
    semver,
    sets,
    text,
    times,
    url,
    wellknown,
)

STANDARD: Final = (
    operators.LIBRARY,
    conversions.LIBRARY,
    times.LIBRARY,
    wellknown.LIBRARY,
    Library("macros", {}, macros.STANDARD),
)
"""What every environment has, with ``text`` and ``regex`` for the string methods of the standard library."""

KUBERNETES: Final = (
    *STANDARD,
    text.LIBRARY,
    regex.LIBRARY,
    formatting.LIBRARY,
    lists.LIBRARY,
    sets.LIBRARY,
    optional.LIBRARY,
    Library("two-variable comprehensions", {}, macros.TWO_VARIABLES),
    Library("bindings", {}, {("bind", 3, True): macros.bind}),
    quantity.LIBRARY,
    semver.LIBRARY,
    ip.LIBRARY,
    cidr.LIBRARY,
    url.LIBRARY,
    format.LIBRARY,
)
"""Everything that Kubernetes 1.34 enables for device selectors (spec/cel-for-dra.md section 5)."""
