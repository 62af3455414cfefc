"""What happened in a world, told so that two worlds can be compared: without names, numbers, times and repetitions.

A story is kept for each object and each teller: the sequence of its different Kubernetes Events, of the states of each
condition of a NodeClaim, and of the calls that changed something at Linode.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import httpx2

if TYPE_CHECKING:
    from collections.abc import Sequence

Object: TypeAlias = dict[str, Any]
Lines: TypeAlias = tuple[str, ...]
# Told of by stand-ins of ours in both worlds: comparing them would compare us with ourselves.
PLAYED = frozenset({"kubelet", "cloud-node-lifecycle-controller"})
_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
_WATCH_SECONDS = 2.0


class Subject(NamedTuple):
    """What is told of, and by whom. Objects of a kind are told apart by their stories, not by their names."""

    kind: str
    teller: str


Story: TypeAlias = dict[Subject, Counter[Lines]]


class Notes:
    """Collects what happens, in the order in which it happened."""

    def __init__(self, namespace: str, calls: Sequence[str]) -> None:
        """Args: `calls` may grow until the story is asked for."""
        self._namespace, self._calls = namespace, calls
        self._names: dict[str, str] = {}
        self._claims: dict[str, dict[str, list[str]]] = {}
        self._events: list[Object] = []
        self._pods: list[Object] = []

    def pod(self, pod: Object) -> None:
        """A pod as it is in the end."""
        self._pods.append(pod)

    def event(self, event: Object) -> None:
        """A Kubernetes Event that is new."""
        self._events.append(event)

    def node_claim(self, claim: Object, *, gone: bool) -> None:
        """A NodeClaim's next version."""
        self._names[claim["metadata"]["name"]] = "NODECLAIM"
        status = claim.get("status", {})
        if status.get("nodeName"):
            self._names[status["nodeName"]] = "NODE"
        known = self._claims.setdefault(claim["metadata"]["uid"], {})
        for condition in status.get("conditions", []):
            _extend(known.setdefault(condition["type"], []), _state(condition))
        if gone:
            _extend(known.setdefault("object", []), "gone")

    def story(self) -> Story:
        """All stories, each with the number of objects that it was told of."""
        found: Story = {}
        told: dict[tuple[Subject, str], list[str]] = {}
        for event in self._events:
            about, teller = event["involvedObject"], _teller(event)
            if teller in PLAYED or not self._is_ours(about):
                continue
            subject = Subject(about["kind"], teller)
            line = self._neutral(f"{event['reason']}: {event['message']}")
            lines = told.setdefault((subject, about["name"]), [])
            if line not in lines:
                lines.append(line)
        for (subject, _), lines in told.items():
            found.setdefault(subject, Counter())[tuple(lines)] += 1
        for conditions in self._claims.values():
            for kind, states in conditions.items():
                found.setdefault(Subject("NodeClaim", f"condition {kind}"), Counter())[tuple(states)] += 1
        found[Subject("Linode", "calls")] = Counter({tuple(self._calls): 1})
        for pod in self._pods:
            found.setdefault(Subject("Pod", "end"), Counter())[(self._neutral(_end(pod)),)] += 1
        return found

    def _is_ours(self, about: Object) -> bool:
        if about.get("namespace", "") == self._namespace:
            return True
        return about["kind"] in {"NodePool", "LinodeNodeClass"} or about["name"] in self._names

    def _neutral(self, text: str) -> str:
        for name, word in self._names.items():
            text = text.replace(name, word)
        text = text.replace(f"{self._namespace}/", "NAMESPACE/")
        text = re.sub(r"linode://\d+", "PROVIDER-ID", text)
        text = re.sub(r"(?<=Successfully assigned NAMESPACE/)\S+", "POD", text)
        text = re.sub(r"\b(\d+(\.\d+)?(h|ms|m|s))+\b", "DURATION", text)
        return _without_counts(text)


def _end(pod: Object) -> str:
    status = pod.get("status", {})
    scheduled = next((item for item in status.get("conditions", []) if item["type"] == "PodScheduled"), {})
    told = " ".join(str(scheduled.get(key, "")) for key in ("status", "reason", "message")).strip()
    return f"{status.get('phase', '')}, scheduled: {told}"


def _extend(states: list[str], state: str) -> None:
    if not states or states[-1] != state:
        states.append(state)


def _state(condition: Object) -> str:
    return f"{condition['status']} {condition['reason']}"


def _teller(event: Object) -> str:
    return str(event.get("source", {}).get("component") or event.get("reportingComponent", ""))


def _without_counts(text: str) -> str:
    """How many nodes refuse for which reason depends on when one looks; which reasons there are does not."""
    start, found, rest = text.partition("0/")
    number, found, reasons = rest.partition(" nodes are available: ")
    if not found or not number.isdecimal():
        return text
    reasons = re.sub(r"preemption: 0/\d+ nodes are available: ", "", reasons)
    kept = {re.sub(r"^\d+ ", "", part) for part in re.split(r"(?:\.|,) ", reasons.rstrip("."))}
    kept.discard("still not schedulable")  # what 1.34 adds where claims cannot be allocated
    return f"{start}0/N{found}{'; '.join(sorted(kept))}"


class Allowance(NamedTuple):
    """Lines that may be told in one world and not in the other.

    Args:
        subject: regular expression for `kind / teller`.
        line: regular expression for a whole line.
        reason: why.
    """

    subject: str
    line: str
    reason: str


ALLOWED = (
    Allowance(
        "Node / node-controller",
        "(Registered|Removing)Node: .*",
        "the diary of Kubernetes' node controller, written up to 5 s late; nobody decides by it",
    ),
    Allowance(
        "(Node|NodeClaim) / karpenter",
        "DisruptionBlocked: .*",
        "told when the disruption controller looks, every 10 s: what it meets depends on when the example began",
    ),
    Allowance(
        "NodeClaim / condition Initialized",
        "Unknown (NodeNotReady|KnownEphemeralTaintsExist|DRADriverPoolsNotPublished)",
        "gates that are closed for a moment: which of them the controller meets depends on when it looks. Scenarios "
        "that keep one closed for long assert themselves what is shown",
    ),
    Allowance(
        "NodeClaim / condition Registered",
        "Unknown NodeNotFound",
        "told only where the controller looks between the launch and the node's arrival",
    ),
    Allowance(
        "Pod / default-scheduler",
        "FailedScheduling: 0/N nodes are available: .*",
        "kube-scheduler keeps one event for all refusals of a pod, with the words of the first; the embedded one tells "
        "each different refusal, as it is there to be read. What a pod is told in the end is compared",
    ),
    Allowance(
        "Pod / karpenter",
        "Nominated: Pod should schedule on: nodeclaim/NODECLAIM, node/NODE",
        "told again where the provisioner looks between the node's arrival and the binding",
    ),
    Allowance(
        "(NodeClaim|NodePool|LinodeNodeClass|Node) / karpenter",
        "[A-Za-z]+: Status condition transitioned, .*|Finalized: Finalized .*",
        "only the controller process watches conditions to tell of them",
    ),
)
"""Why the two worlds may differ. Whatever is not in this table fails the comparison."""


def differences(real: Story, embedded: Story, *, by_line: bool = False) -> list[str]:
    """What is told in one world only, one line each.

    Args:
        real: of the real control plane.
        embedded: of the embedded world.
        by_line: compare only which lines there are of a kind of objects: for scenarios with so many objects that
            chance decides which of them meets what.
    """
    found = []
    for subject in sorted(real.keys() | embedded.keys()):
        theirs, ours = (_allowed(subject, story.get(subject, Counter()), by_line=by_line) for story in (real, embedded))
        for world, more in (("real", theirs - ours), ("embedded", ours - theirs)):
            found += [
                f"{subject.kind} / {subject.teller}: {count} x {world} only: {' -> '.join(lines)}"
                for lines, count in sorted(more.items())
            ]
    return found


def _allowed(subject: Subject, stories: Counter[Lines], *, by_line: bool) -> Counter[Lines]:
    name = f"{subject.kind} / {subject.teller}"
    patterns = [item.line for item in ALLOWED if re.fullmatch(item.subject, name)]
    found: Counter[Lines] = Counter()
    for lines, count in stories.items():
        kept = [line for line in lines if not any(re.fullmatch(pattern, line) for pattern in patterns)]
        if by_line:
            found |= Counter({(line,): 1 for line in kept})
        elif kept:
            found[tuple(kept)] += count
    return found


class ClaimDiary:
    """A context manager that notes every version of the NodeClaims of a real API server, in a thread of its own."""

    def __init__(self, client: httpx2.Client, namespace: str, calls: Sequence[str]) -> None:
        self._client = client
        self._namespace, self._calls = namespace, calls
        self._versions: list[tuple[Object, bool]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="diary", daemon=True)

    def __enter__(self) -> Self:
        self._version = self._client.get(_CLAIMS).json()["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def notes(self) -> Notes:
        """What was noted so far."""
        notes = Notes(self._namespace, self._calls)
        for claim, gone in list(self._versions):
            notes.node_claim(claim, gone=gone)
        return notes

    def _keep(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except (httpx2.HTTPError, json.JSONDecodeError):
                self._stop.wait(0.2)  # silence, or the server restarts or refuses while it starts

    def _follow(self) -> None:
        query = {"watch": "true", "resourceVersion": self._version}
        silence = httpx2.Timeout(30.0, read=_WATCH_SECONDS)
        with self._client.stream("GET", _CLAIMS, params=query, timeout=silence) as answer:
            answer.raise_for_status()
            for line in answer.iter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":  # too old a version: the server is a new one
                    self._relist()
                    return
                self._note(event["object"], gone=event["type"] == "DELETED")

    def _relist(self) -> None:
        listed = self._client.get(_CLAIMS).raise_for_status().json()
        for claim in listed["items"]:
            self._note(claim, gone=False)
        self._version = listed["metadata"]["resourceVersion"]

    def _note(self, claim: Object, *, gone: bool) -> None:
        self._versions.append((claim, gone))
        self._version = claim["metadata"]["resourceVersion"]
