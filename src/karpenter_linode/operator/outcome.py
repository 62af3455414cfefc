"""What a run of the embedded world came to: plain values for the command line, tests and reports."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from karpenter_linode.model.reason import Reason


class PodOutcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a pod fared.

    Args:
        pod: ``namespace/name``.
        phase: last phase seen.
        node: the node it ran on, or "".
        created: when it was created.
        scheduled: when it was bound.
        started: when it ran.
        finished: when it ended, or was deleted.
        deleted: whether it's gone from the API.
    """

    pod: str
    phase: str = ""
    node: str = ""
    created: datetime | None = None
    scheduled: datetime | None = None
    started: datetime | None = None
    finished: datetime | None = None
    deleted: bool = False


class NodeClaimOutcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The history of a NodeClaim.

    Args:
        instance_types: allowed plans, in the order of the object (alphabetical).
        instance_type: the plan that was launched, or "".
        price: nano-dollars per hour of the launched plan; 0 while not launched.
        created, launched, registered, initialized, deleting, deleted: when each step happened.
    """

    name: str
    node_pool: str = ""
    instance_types: tuple[str, ...] = ()
    instance_type: str = ""
    price: int = 0
    node: str = ""
    provider_id: str = ""
    created: datetime | None = None
    launched: datetime | None = None
    registered: datetime | None = None
    initialized: datetime | None = None
    deleting: datetime | None = None
    deleted: datetime | None = None


class DeviceOutcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A device that Kubernetes gave to a claim.

    Args:
        claim: ``namespace/name`` of the ResourceClaim.
        pods: ``namespace/name`` of the pods it was reserved for, sorted.
    """

    claim: str
    request: str
    driver: str
    pool: str
    device: str
    pods: tuple[str, ...] = ()


class BillLine(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One billed Linode.

    Args:
        hours: whole hours; a started hour counts.
        nano_dollars: what they cost.
        until: when billing ended; None while it goes on.
    """

    instance: str
    instance_type: str
    hours: int
    nano_dollars: int
    since: datetime | None = None
    until: datetime | None = None


class JournalEntry(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A line of the story.

    Args:
        at: virtual time.
        source: who did it (``karpenter``, ``kube-scheduler``, ``kubelet``, ``linode``, ...).
        subject: ``Kind namespace/name``.
        text: what happened.
    """

    at: datetime
    source: str
    subject: str
    text: str


class UnplacedPod(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod without a node at the end, and the last reason the scheduling simulation gave."""

    pod: str
    reason: Reason


class Outcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The whole result of a run.

    Args:
        seconds: virtual seconds that passed.
        quiet: whether the world came to rest before the limit.
        bill: every Linode that was billed, in order of creation.
        left: what's still billed at the end.
        nano_dollars: the sum of the bill.
        billed_hours: the hours of the bill.
    """

    seed: int
    started: datetime
    seconds: float
    quiet: bool
    pods: tuple[PodOutcome, ...] = ()
    node_claims: tuple[NodeClaimOutcome, ...] = ()
    devices: tuple[DeviceOutcome, ...] = ()
    bill: tuple[BillLine, ...] = ()
    billed_hours: int = 0
    nano_dollars: int = 0
    left: tuple[BillLine, ...] = ()
    unplaced: tuple[UnplacedPod, ...] = ()
    journal: tuple[JournalEntry, ...] = ()
