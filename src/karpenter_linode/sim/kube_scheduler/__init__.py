"""The stand-in for kube-scheduler: it queues, filters, scores, allocates claims and binds, as Kubernetes' own does.

Belongs here: what decides where a pod runs once nodes exist. It shares resource, taint and device arithmetic with the
provisioning simulation and none of its decisions, so that a wrong prediction shows. Left out: preemption, extenders,
profiles, volume provisioning.
"""

from karpenter_linode.sim.kube_scheduler.scheduler import KubeScheduler

__all__ = ["KubeScheduler"]
