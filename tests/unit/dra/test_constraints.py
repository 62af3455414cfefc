"""Constraints between devices, and attribute bindings (spec/dra-allocation.md 10: constraints)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.dra import Allocation
from karpenter_linode.dra.bindings import bound_devices
from karpenter_linode.model.reason import Reason

MATCH = [{"matchAttribute": "acme.io/k"}]
DISTINCT = [{"distinctAttribute": "acme.io/k"}]


def allocate(
    b: Any, values: list[Any], constraints: list[dict[str, Any]], *requests: dict[str, Any], driver: str = "acme.io"
) -> Any:
    devices = [
        b.device(f"d{index}", driver_attributes={} if value is None else {"k": value})
        for index, value in enumerate(values)
    ]
    allocator = b.allocator(b.slice_of(devices, node="n1", driver=driver))
    return allocator.allocate(b.node(), [b.claim("c", *requests, constraints=constraints)], explain=True)


def test_the_first_device_pins_the_value(b: Any) -> None:
    assert b.names_of(allocate(b, ["a", "c", "a"], MATCH, b.exactly(count=2))) == ["d0", "d2"]


def test_a_different_value_or_a_missing_attribute_is_refused(b: Any) -> None:
    for values in (["a", "c"], ["a", None], [None, None]):
        assert isinstance(allocate(b, values, MATCH, b.exactly(count=2)), Reason)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ({"string": "1.0.0"}, {"string": "1.0.0"}, True),
        ({"int": 1}, {"int": 1}, True),
        ({"bool": True}, {"bool": True}, True),
        ({"version": "1.0.0"}, {"version": "1.0.0"}, True),
        ({"version": "1.0.0+a"}, {"version": "1.0.0+b"}, False),
        ({"string": "1.0.0"}, {"version": "1.0.0"}, False),
        ({"int": 1}, {"bool": True}, False),
        ({"int": 1}, {"string": "1"}, False),
        ({"ints": [1, 2]}, {"int": 2}, True),
        ({"strings": ["a"]}, {"strings": ["c"]}, False),
        ({"ints": []}, {"ints": []}, False),
    ],
)
def test_values_are_compared_within_their_kind(b: Any, left: Any, right: Any, *, equal: bool) -> None:
    assert isinstance(allocate(b, [left, right], MATCH, b.exactly(count=2)), Allocation) is equal


def test_the_scope_is_the_requests_named(b: Any) -> None:
    two = [b.exactly("x", count=2), b.exactly("y")]
    scoped = [{"matchAttribute": "acme.io/k", "requests": ["x"]}]
    assert b.devices_of(allocate(b, ["a", "c", "a"], scoped, *two)) == [
        "x=acme.io/n1/d0",
        "x=acme.io/n1/d2",
        "y=acme.io/n1/d1",
    ]
    assert isinstance(allocate(b, ["a", "c", "a"], MATCH, *two), Reason)


def test_a_parent_covers_its_alternatives_and_a_qualified_name_only_one(b: Any) -> None:
    request = b.first_available("x", big=b.item(count=3), two=b.item(count=2))
    parent = [{"matchAttribute": "acme.io/k", "requests": ["x"]}]
    assert b.names_of(allocate(b, ["a", "c", "a"], parent, request)) == ["d0", "d2"]
    other = [{"matchAttribute": "acme.io/k", "requests": ["x/two"]}]
    assert b.names_of(allocate(b, ["a", "c", "a"], other, request)) == ["d0", "d1", "d2"]


def test_the_pin_is_the_same_across_requests(b: Any) -> None:
    requests = [b.first_available("x", one=b.item("device.attributes['acme.io'].k == 'c'")), b.exactly("y")]
    assert b.names_of(allocate(b, ["a", "c", "c"], MATCH, *requests)) == ["d1", "d2"]


def test_full_names_are_looked_up_first_and_bare_ones_stand_for_the_drivers_domain(b: Any) -> None:
    def devices(key: str) -> list[Any]:
        return [b.device(f"d{index}", driver_attributes={key: "a"}) for index in range(2)]

    def found(key: str, attribute: str) -> bool:
        allocator = b.allocator(b.slice_of(devices(key), node="n1", driver="acme.io"))
        item = b.claim("c", b.exactly(count=2), constraints=[{"matchAttribute": attribute}])
        return isinstance(allocator.allocate(b.node(), [item]), Allocation)

    assert found("acme.io/k", "acme.io/k")
    assert found("k", "acme.io/k")
    assert found("other.io/k", "other.io/k")
    assert not found("k", "other.io/k")


def test_list_values_share_an_element_whatever_is_tried_first(b: Any) -> None:
    values = [{"ints": [1, 2]}, {"ints": [1]}, {"ints": [2]}, {"ints": [2]}]
    assert b.names_of(allocate(b, values, MATCH, b.exactly(count=3))) == ["d0", "d2", "d3"]


class TestDistinct:
    def test_all_values_differ(self, b: Any) -> None:
        assert b.names_of(allocate(b, ["a", "a", "c"], DISTINCT, b.exactly(count=2))) == ["d0", "d2"]
        assert isinstance(allocate(b, ["a", "a"], DISTINCT, b.exactly(count=2)), Reason)

    def test_all_devices_need_the_attribute(self, b: Any) -> None:
        assert isinstance(allocate(b, ["a", None], DISTINCT, b.exactly(count=2)), Reason)

    def test_lists_must_not_overlap(self, b: Any) -> None:
        values = [{"ints": [1, 2]}, {"ints": [2, 3]}, {"ints": [3]}]
        assert b.names_of(allocate(b, values, DISTINCT, b.exactly(count=2))) == ["d0", "d2"]

    def test_it_is_evaluated_on_predicted_devices(self, b: Any) -> None:
        types = (b.plan("p", b.template([b.device(f"d{i}", driver_attributes={"k": i % 2}) for i in range(3)])),)
        item = b.claim("c", b.exactly(count=2), constraints=DISTINCT)
        assert b.names_of(b.allocator().allocate(b.new_node(*types), [item]), "p") == ["d0", "d1"]


class TestBindings:
    def allocate(self, b: Any, count: int, *bindings: Any, devices: int = 3, valued: int = 0) -> Any:
        found = [b.device(f"d{i}", driver_attributes={"k": "v"} if i < valued else {}) for i in range(devices)]
        target = b.new_node(b.plan("p", b.template(found), bindings=bindings))
        item = b.claim("c", b.exactly(count=count), constraints=MATCH)
        return b.allocator().allocate(target, [item])

    def test_bound_devices_match(self, b: Any) -> None:
        assert b.names_of(self.allocate(b, 2, b.binding("acme.io/k", "d0", "d2")), "p") == ["d0", "d2"]

    def test_unbound_devices_do_not(self, b: Any) -> None:
        assert isinstance(self.allocate(b, 1), Reason)
        assert isinstance(self.allocate(b, 3, b.binding("acme.io/k", "d0", "d2")), Reason)
        assert isinstance(self.allocate(b, 2, b.binding("other.io/k", "d0", "d2")), Reason)

    def test_concrete_and_bound_devices_never_mix(self, b: Any) -> None:
        assert isinstance(self.allocate(b, 3, b.binding("acme.io/k", "d0", "d1", "d2"), valued=1), Reason)
        assert b.names_of(self.allocate(b, 2, b.binding("acme.io/k", "d1", "d2"), valued=1), "p") == ["d1", "d2"]

    def test_the_closure_is_symmetric_and_transitive(self, b: Any) -> None:
        chain = [b.binding("a/k", f"d{index}", f"d{index + 1}") for index in range(5)]
        table = bound_devices(chain)["a/k"]
        keys = [("acme.io", "predicted", f"d{index}") for index in range(6)]
        assert all(table[key] == frozenset(keys) - {key} for key in keys)

    def test_cycles_duplicates_and_lonely_devices_are_harmless(self, b: Any) -> None:
        cycle = [b.binding("a/k", "d0", "d1"), b.binding("a/k", "d1", "d0"), b.binding("a/k", "d0", "d1", "d1")]
        table = bound_devices([*cycle, b.binding("a/k", "lonely"), b.binding("a/j", "d0", "x")])
        assert table["a/k"][("acme.io", "predicted", "d0")] == {("acme.io", "predicted", "d1")}
        assert ("acme.io", "predicted", "lonely") not in table["a/k"]
        assert set(table["a/j"]) == {("acme.io", "predicted", "d0"), ("acme.io", "predicted", "x")}

    def test_a_device_listed_twice_is_bound_to_nothing(self, b: Any) -> None:
        assert isinstance(self.allocate(b, 2, b.binding("acme.io/k", "d0", "d0")), Reason)
        assert b.names_of(self.allocate(b, 1, b.binding("acme.io/k", "d0", "d0")), "p") == ["d0"]

    def test_bindings_belong_to_one_instance_type(self, b: Any) -> None:
        devices = b.template([b.device("d0"), b.device("d1")])
        target = b.new_node(
            b.plan("p1", devices, bindings=(b.binding("acme.io/k", "d0", "d1"),)), b.plan("p2", devices)
        )
        item = b.claim("c", b.exactly(count=2), constraints=MATCH)
        assert b.allocator().allocate(target, [item]).instance_types == ("p1",)


def test_all_that_breaks_a_constraint_is_an_error_that_names_the_attribute(b: Any) -> None:
    refused = allocate(b, ["a", "c"], MATCH, b.exactly(allocationMode="All"))
    assert "cannot add device acme.io/n1/d1 because a claim constraint on acme.io/k would not be satisfied" in b.tree(
        refused
    )


def test_the_reason_shows_the_values_that_differ(b: Any) -> None:
    refused = allocate(b, ["a", "c"], MATCH, b.exactly(count=2))
    assert "matchAttribute acme.io/k: a on d0; c on d1" in b.tree(refused)
