"""Instances, tags and firewalls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.sim.linode import rules, shapes

if TYPE_CHECKING:
    from karpenter_linode.sim.linode.calls import Call
    from karpenter_linode.sim.linode.records import Machine

_FIELDS: Final = frozenset({"id", "label", "region", "image", "tags", "group", "status", "type", "created", "updated"})


def list_instances(call: Call) -> dict[str, Any]:
    """Instances."""
    return call.page([shapes.machine(item) for item in call.world.machines.all()], _FIELDS)


def create_instance(call: Call) -> dict[str, Any]:
    """Build an instance outside LKE."""
    return shapes.machine(call.world.create_machine(call.body))


def get_instance(call: Call) -> dict[str, Any]:
    """An instance."""
    return shapes.machine(_machine(call))


def update_instance(call: Call) -> dict[str, Any]:
    """Change label and tags; tags are replaced as a whole."""
    machine = _machine(call)
    fresh_label = rules.instance_label(call.body["label"]) if "label" in call.body else machine.label
    if "tags" in call.body:
        machine.write_tags(rules.tags(call.body), call.world.faults.tag_reads_until_visible)
    machine.label, machine.updated = fresh_label, call.world.clock.now()
    return shapes.machine(machine)


def delete_instance(call: Call) -> dict[str, Any]:
    """Delete an instance."""
    call.world.delete_machine(_machine(call))
    return {}


def set_firewalls(call: Call) -> dict[str, Any]:
    """Replace the firewalls of an instance."""
    machine = _machine(call)
    machine.firewalls = rules.integers(call.body, "firewall_ids")
    return call.page([_firewall(item) for item in machine.firewalls])


def list_firewalls(call: Call) -> dict[str, Any]:
    """The firewalls of an instance."""
    return call.page([_firewall(item) for item in _machine(call).firewalls])


def attach_firewall(call: Call) -> dict[str, Any]:
    """Attach a firewall to an instance."""
    machine = call.world.machines.get(rules.integer(call.body, "id"))
    firewall = call.number("firewall")
    machine.firewalls = tuple(dict.fromkeys((*machine.firewalls, firewall)))
    return {"id": machine.id, "entity": {"id": machine.id, "type": "linode", "label": machine.label}}


def create_tag(call: Call) -> dict[str, Any]:
    """Add a tag to instances."""
    (label,) = rules.tags({"tags": [call.body.get("label")]})
    machines = [call.world.machines.get(number) for number in rules.integers({"linodes": [], **call.body}, "linodes")]
    for machine in machines:
        machine.write_tags(tuple(dict.fromkeys((*machine.tags, label))), call.world.faults.tag_reads_until_visible)
    return {"label": label}


def _machine(call: Call) -> Machine:
    return call.world.machines.get(call.number("instance"))


def _firewall(number: int) -> dict[str, Any]:
    return {"id": number, "label": f"firewall-{number}", "status": "enabled"}
