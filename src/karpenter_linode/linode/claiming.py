"""Makes an instance serve a NodeClaim: write the claim tag, read it back (spec/linode-provider.md 4.5, trap 20)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from karpenter_linode.linode import tags
from karpenter_linode.linode.errors import LinodeNotFoundError
from karpenter_linode.linode.plan_filter import STANDARD
from karpenter_linode.ports import CloudError

if TYPE_CHECKING:
    from karpenter_linode.linode.pool_template import PoolTemplate
    from karpenter_linode.linode.toolbox import Toolbox
    from karpenter_linode.model.linode import LinodeInstance


class ClaimNotSeenError(CloudError):
    """The claim tag was written but can't be read back yet; the instance stays set aside."""


async def claim(tools: Toolbox, instance: int, node_claim: str, template: PoolTemplate) -> LinodeInstance | None:
    """Claim an instance.

    The firewall comes before the tag, so that an instance which carries our claim is never without protection.

    Args:
        tools: the API.
        instance: a member that is set aside for the NodeClaim.
        node_claim: its name.
        template: tags and firewall.

    Returns:
        The instance with its tags; None where it is gone, has left the cluster or serves somebody else.

    Raises:
        LinodeApiError: the API failed; try again.
        ClaimNotSeenError: the tag did not show in time; try again.
    """
    try:
        current = await tools.client.get_instance(instance)
        if not _may_serve(current, tools.cluster.id, node_claim):
            return None
        if template.firewall_id is not None and tools.cluster.tier == STANDARD:
            # A standard pool accepts a firewall id and ignores it.
            await tools.client.set_instance_firewalls(instance, (template.firewall_id,))
        wanted = tags.merge(current.tags, template.tags, template.node_class_tags, tags.claim_tag(node_claim))
        if set(wanted) == set(current.tags):
            return current
        await tools.client.set_instance_tags(instance, wanted)
        return await _read_back(tools, instance, node_claim)
    except LinodeNotFoundError:
        return None


def _may_serve(instance: LinodeInstance, cluster: int, node_claim: str) -> bool:
    owners = tags.claimed_by(instance.tags)
    return instance.lke_cluster_id == cluster and (not owners or owners == (tags.claim_tag(node_claim),))


async def _read_back(tools: Toolbox, instance: int, node_claim: str) -> LinodeInstance | None:
    give_up = tools.clock.now() + timedelta(seconds=tools.options.tag_verification_timeout)
    while True:
        seen = await tools.client.get_instance(instance)
        owners = tags.claimed_by(seen.tags)
        if owners == (tags.claim_tag(node_claim),):
            return seen
        if owners:
            return None  # another writer was faster
        if tools.clock.now() >= give_up:
            raise ClaimNotSeenError(f"timed out verifying tags on instance {instance}")
        await tools.clock.sleep(tools.random.uniform(0.5, 1))
