"""The Kubernetes API over the network: connection, calls, lists and watches, the leader's lease, events.

Belongs here: what turns the API server's protocol into ``ports``. Does not belong here: what to do with the objects.
"""
