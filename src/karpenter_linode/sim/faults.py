"""Faults that a scenario can play, each against one part of the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import re2
from msgspec import Struct

from karpenter_linode.ports import ConflictError, KubeError, TooManyRequestsError
from karpenter_linode.sim.kube_faults import ApiCall, FaultRule
from karpenter_linode.sim.nvidia import DriverBehaviour
from karpenter_linode.sim.resource_types import RESOURCE_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.sim.cluster import EmbeddedCluster

CONFLICT_TEXT: Final = "the object has been modified; please apply your changes to the latest version and try again"


class _Fault(Struct, frozen=True, rename="camel", tag_field="kind", forbid_unknown_fields=True):
    """Base of all faults; ``kind`` tells them apart."""


class KubeCalls(_Fault, frozen=True, tag="kube-calls", rename="camel"):
    """Calls of the API server fail.

    Args:
        verb: of the calls (get, list, watch, create, patch, delete); empty for every verb.
        resource: plural of the kind; empty for every kind.
        status: 409, 429 or a 5xx.
        skip: matching calls that pass first.
        times: matching calls that fail.
        lost_answer: the call takes effect and only its answer is lost.
    """

    verb: str = ""
    resource: str = ""
    status: int = 500
    skip: int = 0
    times: int = 1
    lost_answer: bool = False


class KubeWatches(_Fault, frozen=True, tag="kube-watches", rename="camel"):
    """Watches break.

    Args:
        effect: ``drop`` ends the streams; ``silence`` keeps them open and sends nothing more; ``compact`` ends them and
            forgets the history, so that resuming answers 410.
        resource: plural of the kind; empty for every kind.
    """

    effect: Literal["drop", "silence", "compact"] = "drop"
    resource: str = ""


class KubeLatency(_Fault, frozen=True, tag="kube-latency", rename="camel"):
    """The API server slows down.

    Args:
        seconds: least and greatest duration of a call.
        watch_lag: seconds between a change and its watch event.
    """

    seconds: tuple[float, float]
    watch_lag: float = 0.01


class LinodeSoldOut(_Fault, frozen=True, tag="linode-sold-out", rename="camel"):
    """A plan can't be built in a region, or can again."""

    plan: str
    region: str
    sold_out: bool = True


class LinodeCalls(_Fault, frozen=True, tag="linode-calls", rename="camel"):
    """Calls of the Linode API fail.

    Args:
        method: HTTP method.
        path: regular expression in RE2's syntax for the whole path behind the version.
        status: of the answer; 0 refuses the connection.
        reason: in the answer.
        headers: of the answer.
        skip: matching calls that pass first.
        times: matching calls that fail.
        lost_answer: the call is carried out and only its answer is lost.
    """

    method: str
    path: str
    status: int = 500
    reason: str = "Internal server error"
    headers: dict[str, str] = {}
    skip: int = 0
    times: int = 1
    lost_answer: bool = False

    def __post_init__(self) -> None:
        """Refuse a path that is no pattern here, where the scenario is read, and not in the middle of the run."""
        options = re2.Options()
        options.log_errors = False
        try:
            re2.compile(self.path, options)
        except re2.error as error:
            msg = f"path {self.path!r} is no regular expression: {error}"
            raise ValueError(msg) from error


class Driver(_Fault, frozen=True, tag="dra-driver", rename="camel"):
    """The DRA driver behaves otherwise on nodes to come."""

    behaviour: DriverBehaviour


class NodeStop(_Fault, frozen=True, tag="node-stop", rename="camel"):
    """A node's kubelet falls silent. Without a name the first node that lives is taken."""

    node: str = ""


Fault = KubeCalls | KubeWatches | KubeLatency | LinodeSoldOut | LinodeCalls | Driver | NodeStop


def play_fault(cluster: EmbeddedCluster, fault: Fault) -> None:
    """Let a fault strike from now on, and tell it in the journal."""
    match fault:
        case KubeCalls():
            cluster.faults.rules.append(_kube_rule(fault))
        case KubeWatches():
            _break_watches(cluster, fault)
        case KubeLatency():
            cluster.faults.latency_seconds = fault.seconds
            cluster.faults.watch_lag = fault.watch_lag
        case LinodeSoldOut():
            pairs = cluster.linode.faults.sold_out
            (pairs.add if fault.sold_out else pairs.discard)((fault.plan, fault.region))
        case LinodeCalls():
            _fail_linode(cluster, fault)
        case Driver():
            cluster.driver.behaviour = fault.behaviour
        case NodeStop():
            name = fault.node or next(iter(cluster.nodes.alive()), "")
            cluster.nodes.stopped(name)
    cluster.journal.add("scenario", "fault", "", f"Fault: {type(fault).__struct_config__.tag}", fields={"fault": fault})


def _kube_rule(fault: KubeCalls) -> FaultRule:
    def matches(call: ApiCall) -> bool:
        return fault.verb in {"", call.verb} and fault.resource in {"", call.resource}

    return FaultRule(matches, _kube_error(fault.status), fault.skip, fault.times, fault.lost_answer)


def _kube_error(status: int) -> Callable[[ApiCall], KubeError]:
    def make(call: ApiCall) -> KubeError:
        match status:
            case 409:
                return ConflictError(f'Operation cannot be fulfilled on {call.resource} "{call.name}": {CONFLICT_TEXT}')
            case 429:
                return TooManyRequestsError(
                    "the server has received too many requests and has asked us to try again later"
                )
            case _:
                error = KubeError(f"the server is currently unable to handle the request ({call.verb} {call.resource})")
                error.status = status
                return error

    return make


def _break_watches(cluster: EmbeddedCluster, fault: KubeWatches) -> None:
    for kind in RESOURCE_TYPES:
        if fault.resource not in {"", kind.plural}:
            continue
        history = cluster.store.history(kind)
        if fault.effect == "silence":
            history.silence_watches()
        else:
            history.drop_watches()
        if fault.effect == "compact":
            history.compact()


def _fail_linode(cluster: EmbeddedCluster, fault: LinodeCalls) -> None:
    faults = cluster.linode.faults
    if fault.lost_answer:
        faults.lose_answer(fault.method, fault.path, times=fault.times, skip=fault.skip)
    elif not fault.status:
        faults.refuse_connection(fault.method, fault.path, times=fault.times)
    else:
        faults.fail(
            fault.method,
            fault.path,
            fault.status,
            fault.reason,
            times=fault.times,
            skip=fault.skip,
            headers=fault.headers,
        )
