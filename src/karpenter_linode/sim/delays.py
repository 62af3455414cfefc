"""How long things take around the controller, in seconds. Ranges are drawn from for each object by its name."""

from __future__ import annotations

from msgspec import Struct

Range = tuple[float, float]


class SimDelays(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Delays of the embedded cluster; those of the cloud (create, boot) belong to the Linode emulator.

    Args:
        api_latency: one API call.
        watch_lag: between a change and its watch event.
        cloud_node_init: from the Node object to its provider id and cloud labels.
        node_ready: from the Node object to Ready.
        node_monitor_grace: from a kubelet's last sign of life to Ready=Unknown.
        cloud_node_delete: from then to the removal of a Node whose instance is gone.
        labels_discovered: from Ready to the labels of node feature discovery.
        driver_start: from a node on which the DRA driver may run to its ResourceSlices.
        driver_part: between the parts, where a driver publishes its pool in parts.
        image_pull: of a pod's images.
        container_stop: from the signal to a container's end, at most the grace period.
        claim_made: from a pod to the claims made from its templates.
        claim_released: from a pod's end to the release of its claims.
        scheduling_cycle: of one pod.
        binding: from the decision to the binding.
        garbage_collection: from an owner's end to that of its dependents.
        orphan_quarantine: from a Node's end to that of the pods bound to it.
    """

    api_latency: Range = (0.002, 0.008)
    watch_lag: float = 0.01
    cloud_node_init: Range = (1.0, 4.0)
    node_ready: Range = (15.0, 25.0)
    node_monitor_grace: float = 50.0
    cloud_node_delete: Range = (1.0, 6.0)
    labels_discovered: Range = (5.0, 15.0)
    driver_start: Range = (60.0, 120.0)
    driver_part: Range = (5.0, 15.0)
    image_pull: Range = (5.0, 20.0)
    container_stop: Range = (0.5, 3.0)
    claim_made: Range = (0.05, 0.3)
    claim_released: Range = (0.1, 0.5)
    scheduling_cycle: float = 0.002
    binding: Range = (0.01, 0.05)
    garbage_collection: Range = (0.2, 1.5)
    orphan_quarantine: Range = (40.0, 60.0)
