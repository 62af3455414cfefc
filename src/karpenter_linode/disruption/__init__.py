"""Pure deciders that remove nodes: candidates, budgets, and the methods that turn them into a ``Command``.

Belongs here: which nodes may go, how many, and why others may not. Does not belong here: the 15 seconds of waiting,
taints and deletions (``controllers.disruption``, ``lifecycle.disruption_marks``).
"""
