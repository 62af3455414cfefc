"""What to do about a selector that reads a key which a device does not have."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from karpenter_linode.dra.limits import feature_of_attribute

if TYPE_CHECKING:
    from karpenter_linode.model.resource import Device

UNPREDICTED: Final = "(published by the driver, not predicted)"
MISSING_KEY: Final = re.compile(r"no such key: ([A-Za-z0-9_./-]+)")


def key_hint(message: str, driver: str, device: Device) -> str:
    """A line of advice, or "" where the failure is of another kind or no other name would help.

    Args:
        message: the failure of the evaluation.
        driver: of the device.
        device: what the selector was tried on.
    """
    found = MISSING_KEY.search(message)
    if found is None or feature_of_attribute(found[1]) or message.endswith(UNPREDICTED):
        return ""
    key = found[1]
    places = {
        name.rpartition("/")[2]: f"device.{side}['{name.rpartition('/')[0] or driver}']"
        for side, names in (("capacity", device.capacity), ("attributes", device.attributes))
        for name in names
    }
    if key in places:
        return f"is {places[key]}.{key} meant?"
    near = _nearest(key, sorted(places))
    if near:
        return f"is {near} meant? names are case-sensitive"
    return f"ask first whether it is there: '{key}' in device.attributes['{driver}'] && ..."


def _nearest(name: str, known: list[str]) -> str:
    alike = [other for other in known if other.lower() == name.lower()]
    return next(iter(alike or get_close_matches(name, known, n=1)), "")
