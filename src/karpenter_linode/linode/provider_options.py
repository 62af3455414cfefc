"""Settings of the cloud provider (spec/linode-provider.md 2.1 and 4.9)."""

from __future__ import annotations

from msgspec import Struct

from karpenter_linode.linode.classify import Classifier
from karpenter_linode.linode.instance_types import InstanceTypeOptions


class ProviderOptions(Struct, frozen=True):
    """Settings of the cloud provider; seconds where a time is meant.

    Args:
        ignore_dra_requests: count GPUs as ``nvidia.com/gpu`` instead of predicting devices.
        instance_types: settings that shape instance types.
        create_deadline: how long ``create`` waits for a member; it resumes when called again.
        gather_quiet: NodeClaims are looked for once no other came for so long, so that one call buys for all of them.
        gather_longest: the first of them waits no longer than this for the others.
        poll_interval: pause between looks at a growing pool, at first.
        poll_cap: the longest such pause.
        tag_verification_timeout: how long a written tag may stay invisible.
        provisioning_timeout: a member without an instance after this long counts as sold out and is given up.
        settle_time: after a POST without a known outcome, how long to look for what it made before sending another.
        availability_ttl: how long an availability list is believed.
        types_ttl: how long a list of plans is believed.
        pool_tags: tags on every pool, so that other tools know to leave it alone.
        standard_pool_cap: members of a pool on the standard tier.
        enterprise_pool_cap: members of a pool on the enterprise tier.
        failures_before_region: server errors in a row after which the whole region counts as unavailable.
        classifier: reads error texts.
    """

    ignore_dra_requests: bool = True
    instance_types: InstanceTypeOptions = InstanceTypeOptions()
    create_deadline: float = 120
    gather_quiet: float = 0.1
    gather_longest: float = 0.5
    poll_interval: float = 2
    poll_cap: float = 10
    tag_verification_timeout: float = 4
    provisioning_timeout: float = 180
    settle_time: float = 15
    availability_ttl: float = 300
    types_ttl: float = 12 * 3600
    pool_tags: tuple[str, ...] = ()
    standard_pool_cap: int = 100
    enterprise_pool_cap: int = 500
    failures_before_region: int = 5
    classifier: Classifier = Classifier()
