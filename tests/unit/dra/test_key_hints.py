"""Advice about keys that a device does not have."""

from __future__ import annotations

import pytest

from karpenter_linode.dra.key_hints import UNPREDICTED, key_hint
from karpenter_linode.model import codec
from karpenter_linode.model.resource import Device

DEVICE = codec.convert(
    {
        "name": "gpu-0",
        "attributes": {"productName": {"string": "x"}, "gpu.nvidia.com/brand": {"string": "y"}},
        "capacity": {"memory": {"value": "20Gi"}},
    },
    Device,
)


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("no such key: productname", "is productName meant? names are case-sensitive"),
        ("no such key: brnad", "is brand meant? names are case-sensitive"),
        ("no such key: memori", "is memory meant? names are case-sensitive"),
        ("no such key: ecc", "ask first whether it is there: 'ecc' in device.attributes['gpu.nvidia.com'] && ..."),
        ("no such key: memory", "is device.capacity['gpu.nvidia.com'].memory meant?"),
        ("no such key: brand", "is device.attributes['gpu.nvidia.com'].brand meant?"),
        ("no such key: uuid", ""),
        (f"no such key: brand {UNPREDICTED}", ""),
        ("division by zero", ""),
    ],
)
def test_a_missing_key_is_answered_with_the_nearest_name_or_with_a_guard(message: str, hint: str) -> None:
    assert key_hint(message, "gpu.nvidia.com", DEVICE) == hint
