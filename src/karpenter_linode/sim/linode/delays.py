"""How long Linode takes (spec/linode-provider.md 7.7). Seconds; each pair is drawn from evenly."""

from __future__ import annotations

from msgspec import Struct

Span = tuple[float, float]


class LinodeDelays(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Delays of the emulated cloud.

    Args:
        api: from request to answer.
        instance_id: until a member of a standard pool has its instance.
        enterprise_instance: until the instance of an enterprise pool's member exists.
        enterprise_listing: until an enterprise pool lists its member.
        provisioning: how long an instance is ``provisioning``.
        booting: how long it is ``booting``.
        join: from the instance's creation to its Kubernetes node, plans without GPUs.
        join_gpu: the same for GPU plans.
        member_ready: from the node's joining to the pool calling it ``ready``.
        deletion: from the deletion of an instance to its end.
    """

    api: Span = (0.05, 0.25)
    instance_id: Span = (1, 3)
    enterprise_instance: Span = (3, 7)
    enterprise_listing: Span = (30, 60)
    provisioning: Span = (20, 35)
    booting: Span = (20, 35)
    join: Span = (90, 120)
    join_gpu: Span = (110, 180)
    member_ready: Span = (15, 25)
    deletion: Span = (5, 15)


INSTANT = LinodeDelays(*([(0.0, 0.0)] * len(LinodeDelays.__struct_fields__)))
"""Nothing takes time, for callers that only look at answers."""
