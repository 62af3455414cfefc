"""The Linode API emulator: a world of clusters, pools and machines, and the ASGI app in front of it.

``world`` keeps the state and the passing of time, ``app`` the HTTP face; ``faults`` and ``delays`` are what a scenario
sets. Nothing here reads the wall clock or draws unseeded randomness, and nothing knows the provider that it serves.
"""
