"""Condition types (spec/karpenter-lifecycle.md 1.9 and 5, spec/linode-provider.md 1.4)."""

from typing import Final

READY: Final = "Ready"

# NodeClaim
LAUNCHED: Final = "Launched"
REGISTERED: Final = "Registered"
INITIALIZED: Final = "Initialized"
CONSOLIDATABLE: Final = "Consolidatable"
DRIFTED: Final = "Drifted"
DISRUPTION_REASON: Final = "DisruptionReason"
DRAINED: Final = "Drained"
VOLUMES_DETACHED: Final = "VolumesDetached"
INSTANCE_TERMINATING: Final = "InstanceTerminating"

# NodePool, LinodeNodeClass
VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"
NODE_CLASS_READY: Final = "NodeClassReady"

NODE_CLAIM_DEPENDENTS: Final = (LAUNCHED, REGISTERED, INITIALIZED)
NODE_POOL_DEPENDENTS: Final = (VALIDATION_SUCCEEDED, NODE_CLASS_READY)
NODE_CLASS_DEPENDENTS: Final = (VALIDATION_SUCCEEDED,)
