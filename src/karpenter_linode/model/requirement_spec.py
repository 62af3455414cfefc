"""The written form of a requirement, shared by selectors, affinities, NodePools and NodeClaims."""

from __future__ import annotations

from msgspec import Struct


class NodeSelectorRequirement(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """``key operator values``; ``min_values`` only in NodePools and NodeClaims (spec/karpenter-scheduling.md 6.3)."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    min_values: int | None = None
