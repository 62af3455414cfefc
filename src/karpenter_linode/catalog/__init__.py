"""The plan catalog: GPU families with the evidence of every value, and the devices that a plan's node will publish.

Belongs here: what is known of a GPU model before a node exists. Does not belong here: counts, prices and availability
(the Linode API tells them), and what devices are given to whom (``dra``).
"""

from karpenter_linode.catalog.families import AttributeValue, CapacityValue, Family, families, family_of
from karpenter_linode.catalog.predict import POOL, predict

__all__ = ["POOL", "AttributeValue", "CapacityValue", "Family", "families", "family_of", "predict"]
