"""Names that are a contract: label, annotation, taint and finalizer keys, API groups.

Source: spec/karpenter-lifecycle.md 0.1, spec/karpenter-scheduling.md 6.5, spec/linode-provider.md 1.5 and 3.3.
"""

from typing import Final

# Kubernetes
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
HOSTNAME: Final = "kubernetes.io/hostname"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"
EXCLUDE_FROM_LOAD_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
IMPLICIT_EXTENDED_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"

# Karpenter
KARPENTER_GROUP: Final = "karpenter.sh"
NODEPOOL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
REGISTERED: Final = "karpenter.sh/registered"
INITIALIZED: Final = "karpenter.sh/initialized"
DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
NODEPOOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
NODEPOOL_HASH_VERSION_VALUE: Final = "v3"
TERMINATION_TIMESTAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
REQUESTED_DRA_DRIVERS: Final = "karpenter.sh/requested-dra-drivers"
TERMINATION_FINALIZER: Final = "karpenter.sh/termination"
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"
CAPACITY_ON_DEMAND: Final = "on-demand"
CAPACITY_SPOT: Final = "spot"
CAPACITY_RESERVED: Final = "reserved"
NODES_RESOURCE: Final = "nodes"

# Linode
LINODE_GROUP: Final = "karpenter.k8s.linode"
LINODE_NODE_CLASS: Final = "karpenter.k8s.linode/linodenodeclass"
LINODE_TERMINATION_FINALIZER: Final = "karpenter.k8s.linode/termination"
LINODE_NODE_CLASS_HASH: Final = "karpenter.k8s.linode/linodenodeclass-hash"
LINODE_NODE_CLASS_HASH_VERSION: Final = "karpenter.k8s.linode/linodenodeclass-hash-version"
LINODE_LKE_MANAGED: Final = "karpenter.k8s.linode/lke-managed"
LINODE_INSTANCE_CPU: Final = "karpenter.k8s.linode/instance-cpu"
LINODE_INSTANCE_MEMORY: Final = "karpenter.k8s.linode/instance-memory"
LINODE_INSTANCE_DISK: Final = "karpenter.k8s.linode/instance-disk"
LINODE_INSTANCE_TRANSFER: Final = "karpenter.k8s.linode/instance-transfer"
LINODE_INSTANCE_NETWORK_OUT: Final = "karpenter.k8s.linode/instance-network-out"
LINODE_INSTANCE_CLASS: Final = "karpenter.k8s.linode/instance-class"
LINODE_INSTANCE_GPU_COUNT: Final = "karpenter.k8s.linode/instance-gpu-count"
LINODE_INSTANCE_ACCELERATED_DEVICES: Final = "karpenter.k8s.linode/instance-accelerated-devices-count"
LINODE_INSTANCE_GENERATION: Final = "karpenter.k8s.linode/instance-generation"
LINODE_INSTANCE_GPU_NAME: Final = "karpenter.k8s.linode/instance-gpu-name"
LINODE_INSTANCE_GPU_MODEL: Final = "karpenter.k8s.linode/instance-gpu-model"
LINODE_TOPOLOGY_REGION: Final = "topology.linode.com/region"
NODECLAIM_TAG: Final = "karpenter.sh/nodeclaim"

# Time limits of a NodePool's nodes, as annotations of the NodePool; durations as Go writes them
REGISTRATION_TIMEOUT: Final = "karpenter.k8s.linode/registration-timeout"
INITIALIZATION_TIMEOUT: Final = "karpenter.k8s.linode/initialization-timeout"

# Devices
GPU_RESOURCE: Final = "nvidia.com/gpu"
NVIDIA_DRIVER: Final = "gpu.nvidia.com"

CORE_WELL_KNOWN: Final = frozenset(
    {NODEPOOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD},
)
LINODE_WELL_KNOWN: Final = frozenset(
    {
        LINODE_INSTANCE_CPU,
        LINODE_INSTANCE_MEMORY,
        LINODE_INSTANCE_DISK,
        LINODE_INSTANCE_TRANSFER,
        LINODE_INSTANCE_NETWORK_OUT,
        LINODE_INSTANCE_CLASS,
        LINODE_INSTANCE_GPU_COUNT,
        LINODE_INSTANCE_ACCELERATED_DEVICES,
        LINODE_INSTANCE_GENERATION,
        LINODE_INSTANCE_GPU_NAME,
        LINODE_INSTANCE_GPU_MODEL,
        LINODE_TOPOLOGY_REGION,
    },
)
WELL_KNOWN: Final = CORE_WELL_KNOWN | LINODE_WELL_KNOWN
RESTRICTED_DOMAINS: Final = (KARPENTER_GROUP, LINODE_GROUP)
RESTRICTED_LABELS: Final = frozenset({HOSTNAME})

# Old spellings of well-known labels, normalised wherever a requirement is built (spec/karpenter-scheduling.md 6.5).
ALIASES: Final = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}
