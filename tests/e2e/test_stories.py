"""The comparison of two worlds' stories, on stories made here."""

from __future__ import annotations

from typing import Any

import pytest
from stories import ALLOWED, Notes, differences

Object = dict[str, Any]


def pod_event(message: str, *, reason: str = "Nominated", teller: str = "karpenter", pod: str = "job") -> Object:
    about = {"kind": "Pod", "name": pod, "namespace": "default"}
    return {"involvedObject": about, "reason": reason, "message": message, "source": {"component": teller}}


def claim(name: str, *conditions: tuple[str, str, str]) -> Object:
    states = [{"type": kind, "status": status, "reason": reason} for kind, status, reason in conditions]
    return {"metadata": {"name": name, "uid": name}, "status": {"nodeName": f"node-of-{name}", "conditions": states}}


def told(*events: Object, calls: tuple[str, ...] = (), claims: tuple[Object, ...] = ()) -> Notes:
    notes = Notes("default", calls)
    for item in claims:
        notes.node_claim(item, gone=False)
    for event in events:
        notes.event(event)
    return notes


def compare(real: Notes, embedded: Notes, *, by_line: bool = False) -> list[str]:
    return differences(real.story(), embedded.story(), by_line=by_line)


def test_names_numbers_and_repetitions_do_not_count() -> None:
    real = told(
        pod_event("on gpu-a after 12.5s at linode://17"),
        pod_event("on gpu-a after 12.5s at linode://17"),
        claims=(claim("gpu-a"),),
    )
    embedded = told(pod_event("on gpu-b after 1m3s at linode://4"), claims=(claim("gpu-b"),))
    assert compare(real, embedded) == []


def test_what_one_world_tells_alone_is_found() -> None:
    found = compare(told(pod_event("a")), told(pod_event("b")))
    assert found == ["Pod / karpenter: 1 x real only: Nominated: a", "Pod / karpenter: 1 x embedded only: Nominated: b"]


def test_order_counts_for_each_object() -> None:
    real, embedded = told(pod_event("a"), pod_event("b")), told(pod_event("b"), pod_event("a"))
    assert len(compare(real, embedded)) == 2
    assert compare(real, embedded, by_line=True) == []


def test_the_number_of_objects_counts_where_chance_does_not_decide() -> None:
    real = told(pod_event("a", pod="one"), pod_event("a", pod="two"))
    assert compare(real, told(pod_event("a"))) == ["Pod / karpenter: 1 x real only: Nominated: a"]


def test_states_of_conditions_count_by_their_turns() -> None:
    waiting, done = claim("x", ("Launched", "Unknown", "Waits")), claim("x", ("Launched", "True", "Launched"))
    real, embedded = told(claims=(waiting, waiting, done)), told(claims=(waiting, done))
    assert compare(real, embedded) == []
    found = compare(real, told(claims=(done,)))
    assert found[0] == "NodeClaim / condition Launched: 1 x real only: Unknown Waits -> True Launched"


def test_calls_at_linode_count() -> None:
    assert compare(told(calls=("POST /lke: 200",)), told()) == ["Linode / calls: 1 x real only: POST /lke: 200"]


def test_how_many_nodes_refuse_does_not_count() -> None:
    first = "0/3 nodes are available: 1 too small, 2 tainted. preemption: 0/3 nodes are available: 3 no use."
    second = "0/9 nodes are available: 4 tainted, 5 too small. preemption: 0/9 nodes are available: 9 no use."
    assert compare(told(pod_event(first)), told(pod_event(second))) == []
    assert compare(told(pod_event(first)), told(pod_event(second.replace("too small", "too old")))) != []


def test_events_of_stand_ins_do_not_count() -> None:
    assert compare(told(pod_event("Started", teller="kubelet")), told()) == []


@pytest.mark.parametrize("allowance", ALLOWED, ids=lambda item: item.subject)
def test_every_allowance_says_why(allowance: Any) -> None:
    assert len(allowance.reason) > 20
