"""Wiring: options, the controllers over their ports, and the embedded world in which all of it runs at once.

Belongs here: what one process is made of. Does not belong here: what its parts do.
"""
