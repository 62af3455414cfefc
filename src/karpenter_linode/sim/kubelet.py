"""Kubelets: they run the pods bound to their node and confirm the end of those being deleted.

A pod starts once each of its claims is allocated and reserved for it and its images are pulled. How long it then runs
is told by an annotation. Pods that may end (``restartPolicy`` Never or OnFailure) succeed; one that Kubernetes would
restart for ever is deleted, as its user would when the work is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from karpenter_linode.model.core import Pod
from karpenter_linode.model.duration import DurationError, parse_duration
from karpenter_linode.model.resource import ResourceClaim
from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.ports import NotFoundError
from karpenter_linode.sim.agenda import Appointment
from karpenter_linode.sim.deletion import TERMINAL
from karpenter_linode.sim.events import forget_oldest
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from datetime import timedelta

    from karpenter_linode.model.core import Container
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.nodes import NodeLifecycle
    from karpenter_linode.sim.watches import Change

RUNTIME_ANNOTATION: Final = "simulate.karpenter-linode/runtime"
_POD: Final = type_of(Pod)
_KILLED: Final = 137


class _Running(Struct):
    """What a kubelet holds for one pod: the next thing that will happen to it."""

    uid: str
    next: Appointment | None = None
    accepted: bool = False
    begun: bool = False
    stopping: bool = False


class Kubelet:
    """The kubelets of all nodes.

    Args:
        context: the world.
        nodes: tells which kubelets are alive.
        default_runtime: how long pods without the annotation run; None for ever.
    """

    def __init__(self, context: SimContext, nodes: NodeLifecycle, default_runtime: timedelta | None = None) -> None:
        self._context = context
        self._nodes = nodes
        self._default_runtime = default_runtime
        self._pods: dict[str, _Running] = {}
        self._waiting: dict[str, dict[str, None]] = {}
        self._done: dict[str, None] = {}
        self._events = context.recorder("kubelet")
        context.store.listen(Pod, self._pod_changed)
        context.store.listen(ResourceClaim, self._claim_changed)
        nodes.when_alive(self._look_again)

    def is_done(self, uid: str) -> bool:
        """Whether a pod was deleted since its work was done."""
        return uid in self._done

    def _pod_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        pod = change.stored.decode(Pod)
        if change.type == "DELETED":
            running = self._pods.pop(pod.key, None)
            if running is not None and running.next is not None:
                running.next.cancel()
        elif pod.spec.node_name and self._nodes.is_alive(pod.spec.node_name):
            self._sync(pod)

    def _look_again(self, node_name: str) -> None:
        """A kubelet that starts looks at the pods that are bound to its node."""
        for pod in self._context.store.all(Pod):
            if pod.spec.node_name == node_name:
                self._sync(pod)

    def _claim_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        for pod_key in list(self._waiting.get(change.stored.key, ())):
            namespace, _, name = pod_key.partition("/")
            pod = self._context.store.find(Pod, name, namespace)
            if pod is not None:
                self._sync(pod)

    def _sync(self, pod: Pod) -> None:
        """Take the next step of a pod's life, if it is this kubelet's turn."""
        running = self._pods.get(pod.key)
        if running is None or running.uid != pod.uid:
            running = self._pods[pod.key] = _Running(pod.uid)
        if pod.metadata.deletion_timestamp is not None:
            self._stop(pod, running)
        elif pod.status.phase not in TERMINAL and not running.begun:
            self._start(pod, running)

    def _start(self, pod: Pod, running: _Running) -> None:
        if not running.accepted:
            running.accepted = True
            self._set_status(pod, "Pending", ready=False, reason="ContainersNotReady")
        if self._missing_claims(pod):
            return
        running.begun = True
        pull = self._context.draw(self._context.delays.image_pull, f"pull/{pod.key}")
        running.next = self._context.agenda.after(pull, self._started, pod.name, pod.namespace, pod.uid)

    def _missing_claims(self, pod: Pod) -> bool:
        """Whether a claim is not usable by the pod yet; then the pod waits for that claim."""
        missing = False
        generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        names = [entry.resource_claim_name or generated.get(entry.name) for entry in pod.spec.resource_claims]
        if pod.status.extended_resource_claim_status is not None:
            names.append(pod.status.extended_resource_claim_status.resource_claim_name)
        for name in names:
            key = f"{pod.namespace}/{name}"
            claim = self._context.store.find(ResourceClaim, name, pod.namespace) if name else None
            usable = claim is not None and any(user.uid == pod.uid for user in claim.status.reserved_for)
            if name is not None and not usable:
                self._waiting.setdefault(key, {})[pod.key] = None
                missing = True
            else:
                self._waiting.get(key, {}).pop(pod.key, None)
        return missing

    def _started(self, name: str, namespace: str, uid: str) -> None:
        pod, running = self._current(name, namespace, uid)
        if pod is None or running is None:
            return
        running.next = None
        if not self._nodes.is_alive(pod.spec.node_name):
            running.begun = False
            return
        self._events.record(pod, "Normal", "Started", f"Started container {pod.spec.containers[0].name}")
        pod = self._set_status(pod, "Running", ready=True)
        runtime = self._runtime(pod)
        if runtime is not None:
            seconds = runtime.total_seconds()
            running.next = self._context.agenda.after(seconds, self._finished, name, namespace, uid)

    def _runtime(self, pod: Pod) -> timedelta | None:
        text = pod.metadata.annotations.get(RUNTIME_ANNOTATION)
        if text is None:
            owners = pod.metadata.owner_references
            kept = any(owner.controller and owner.uid in self._context.managed for owner in owners)
            return None if kept else self._default_runtime
        try:
            return parse_duration(text)
        except DurationError as error:
            self._events.record(pod, "Warning", "InvalidRuntime", f"annotation {RUNTIME_ANNOTATION}: {error}")
            return self._default_runtime

    def _finished(self, name: str, namespace: str, uid: str) -> None:
        """The pod's work is done."""
        pod, running = self._current(name, namespace, uid)
        if pod is None or running is None:
            return
        if not self._nodes.is_alive(pod.spec.node_name):
            running.begun = False
            return
        if pod.spec.restart_policy == "Always":
            self._context.journal.step("user", pod, "Pod deleted, its work is done")
            self._done[uid] = None
            forget_oldest(self._done, self._context.keep)
            self._context.store.delete(_POD, name, namespace, uid=uid)
        else:
            self._set_status(pod, "Succeeded", ready=False, reason="PodCompleted")

    def _stop(self, pod: Pod, running: _Running) -> None:
        """Containers get the signal, and the grace period bounds how long they take."""
        if running.stopping:
            return
        running.stopping = True
        if running.next is not None:
            running.next.cancel()
        if pod.status.phase == "Running":
            self._events.record(pod, "Normal", "Killing", f"Stopping container {pod.spec.containers[0].name}")
        deadline = pod.metadata.deletion_timestamp
        left = (deadline - self._context.clock.now()).total_seconds() if deadline is not None else 0.0
        stop = min(max(left, 0.0), self._context.draw(self._context.delays.container_stop, f"stop/{pod.key}"))
        running.next = self._context.agenda.after(stop, self._stopped, pod.name, pod.namespace, pod.uid)

    def _stopped(self, name: str, namespace: str, uid: str) -> None:
        """All containers have ended, interrupted at their work unless that was done: confirm the deletion."""
        pod, running = self._current(name, namespace, uid)
        if pod is None or running is None:
            return
        if not self._nodes.is_alive(pod.spec.node_name):
            running.stopping = False
            return
        if pod.status.phase not in TERMINAL:
            phase, reason = ("Succeeded", "PodCompleted") if uid in self._done else ("Failed", "PodFailed")
            self._set_status(pod, phase, ready=False, reason=reason)
        try:
            self._context.store.delete(_POD, name, namespace, uid=uid, grace_period_seconds=0)
        except NotFoundError:
            return

    def _current(self, name: str, namespace: str, uid: str) -> tuple[Pod | None, _Running | None]:
        pod = self._context.store.find(Pod, name, namespace)
        if pod is None or pod.uid != uid:
            return None, None
        return pod, self._pods.get(pod.key)

    def _set_status(self, pod: Pod, phase: str, *, ready: bool, reason: str = "") -> Pod:
        now = rfc3339(self._context.clock.now())
        status: dict[str, Any] = {"phase": phase}
        if pod.status.start_time is None:
            status["startTime"] = now
        old = {condition.type: condition for condition in pod.status.conditions}
        conditions = []
        for kind, holds in (("Initialized", True), ("ContainersReady", ready), ("Ready", ready)):
            value = "True" if holds else "False"
            since = old[kind].last_transition_time if kind in old and old[kind].status == value else None
            condition = {"type": kind, "status": value, "lastTransitionTime": rfc3339(since) if since else now}
            conditions.append(
                {**condition, "reason": reason} if reason and not holds else {**condition, "reason": None}
            )
        status["conditions"] = conditions
        status["containerStatuses"] = [_container_status(container, phase, now) for container in pod.spec.containers]
        stored = self._context.store.patch(
            _POD, pod.name, {"status": status}, namespace=pod.namespace, subresource="status", patch_kind="strategic"
        )
        if phase != pod.status.phase:
            self._context.journal.step("kubelet", pod, f"Pod is {phase}", node=pod.spec.node_name)
        return stored.decode(Pod)


def _container_status(container: Container, phase: str, now: str) -> dict[str, Any]:
    """A container of a pod that has just come into that phase."""
    running = phase == "Running"
    state: dict[str, Any]
    match phase:
        case "Running":
            state = {"running": {"startedAt": now}}
        case "Succeeded":
            state = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
        case "Failed":
            state = {"terminated": {"exitCode": _KILLED, "reason": "Error", "finishedAt": now}}
        case _:
            state = {"waiting": {"reason": "ContainerCreating"}}
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": running,
        "started": running,
        "restartCount": 0,
        "state": state,
    }
