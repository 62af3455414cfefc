"""The text of ``SCHEDULER_CONFIG``: YAML or JSON with default topology spread constraints (scheduling spec 1.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import yaml
from msgspec import Struct, field

from karpenter_linode.model import codec
from karpenter_linode.model.core import TopologySpreadConstraint
from karpenter_linode.scheduling.default_spread import constraint_errors

if TYPE_CHECKING:
    from collections.abc import Hashable


class SchedulerConfigError(ValueError):
    """The configuration cannot be used; the message says where and why, in upstream's words."""


class _Constraint(TopologySpreadConstraint, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A constraint, none of whose fields has a default."""

    max_skew: int = 0
    when_unsatisfiable: str = ""


class _Spread(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    default_constraints: tuple[_Constraint, ...] = ()


class _Config(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pod_topology_spread: _Spread = field(default_factory=_Spread)


def parse_scheduler_config(text: str) -> tuple[TopologySpreadConstraint, ...]:
    """The default constraints that a configuration names; none for an empty one.

    Args:
        text: YAML or JSON. Unknown fields and repeated keys are refused.

    Raises:
        SchedulerConfigError: it cannot be read, or a constraint is not one.
    """
    try:
        plain = _loaded(text)
        config = msgspec.convert(codec.without_nulls(plain or {}), _Config)
    except (yaml.YAMLError, msgspec.ValidationError, RecursionError) as error:
        found = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise SchedulerConfigError(f"parsing scheduler config, decoding scheduler config, {found}") from None
    constraints = tuple(
        TopologySpreadConstraint(**msgspec.structs.asdict(item))
        for item in config.pod_topology_spread.default_constraints
    )
    fault = constraint_errors(constraints)
    if fault:
        raise SchedulerConfigError(f"parsing scheduler config, {fault}")
    return constraints


def _loaded(text: str) -> Any:
    try:
        # A loader of its own on top of SafeLoader: it makes plain values only.
        return yaml.load(text, _Loader)  # noqa: S506 - see above
    except (ValueError, KeyError, AttributeError) as error:
        # How PyYAML says that a value isn't of the type that its look or its tag promises, as 2026-13-45 or `!!int x`.
        raise yaml.YAMLError(f"a value is not of its type: {error}") from None


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without aliases, which can grow without bound, and without repeated keys."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = sorted({str(key) for key in keys if keys.count(key) > 1})
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} is there twice", node.start_mark)
        return super().construct_mapping(node, deep)
