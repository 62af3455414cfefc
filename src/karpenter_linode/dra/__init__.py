"""Dynamic Resource Allocation: which devices a claim could be given, on which node or plan, and why not.

Belongs here: devices, pools, selectors, constraints, counters, shared capacity, the search, the ledger of a round.
Does not belong here: pods' other needs and the choice of nodes (``scheduling``), what a plan has (``catalog``).
"""

from karpenter_linode.dra.allocation import Allocation, ClaimAllocation, DeviceGrant, Target
from karpenter_linode.dra.allocator import Allocator
from karpenter_linode.dra.claims import ClaimKey, claim_keys, has_dra_requirements, make_claim
from karpenter_linode.dra.errors import AllocationError, StepLimitError
from karpenter_linode.dra.features import ALL_FEATURES, Features
from karpenter_linode.dra.in_use import InUse, in_use
from karpenter_linode.dra.node import allocate_on_node

__all__ = [
    "ALL_FEATURES",
    "Allocation",
    "AllocationError",
    "Allocator",
    "ClaimAllocation",
    "ClaimKey",
    "DeviceGrant",
    "Features",
    "InUse",
    "StepLimitError",
    "Target",
    "allocate_on_node",
    "claim_keys",
    "has_dra_requirements",
    "in_use",
    "make_claim",
]
