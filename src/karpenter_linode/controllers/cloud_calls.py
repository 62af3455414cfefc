"""Questions to the cloud, with its errors turned into the deciders' words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.lifecycle.launch import LaunchFailed
from karpenter_linode.ports import (
    CloudError,
    CreateError,
    InstanceNotFoundError,
    InsufficientCapacityError,
    NodeClassNotReadyError,
)

if TYPE_CHECKING:
    from karpenter_linode.lifecycle.launch import LaunchAnswer
    from karpenter_linode.model.karpenter import NodeClaim
    from karpenter_linode.ports import CloudProvider


async def create_instance(cloud: CloudProvider, claim: NodeClaim) -> LaunchAnswer:
    """Ask for an instance; errors become the answer."""
    try:
        return await cloud.create(claim)
    except InsufficientCapacityError as error:
        return LaunchFailed("insufficient-capacity", str(error))
    except NodeClassNotReadyError as error:
        return LaunchFailed("node-class-not-ready", str(error))
    except CreateError as error:
        return LaunchFailed("create-error", str(error), error.reason)
    except CloudError as error:
        return LaunchFailed("error", str(error))


async def delete_instance(cloud: CloudProvider, provider_id: str) -> bool:
    """Ask for an instance's deletion; True once nothing is left. Raises CloudError."""
    try:
        await cloud.delete(provider_id)
    except InstanceNotFoundError:
        return True
    return False


async def instance_exists(cloud: CloudProvider, provider_id: str) -> bool:
    """Ask whether an instance exists. Raises CloudError."""
    try:
        await cloud.get(provider_id)
    except InstanceNotFoundError:
        return False
    return True
