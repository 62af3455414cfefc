"""Devices, pools, selectors, claims and the allocator: which devices a claim can have, and why not."""
