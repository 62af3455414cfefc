"""Pure deciders: one small state machine for each kind, from (object, view, now) to Effects.

Belongs here: what should happen next to a NodeClaim, Node, NodePool or LinodeNodeClass, as values. Does not belong
here: making it happen (``controllers.effects``), and choosing which nodes to remove (``disruption``). A decider never
waits: an effect that asks the cloud ends its list, and the answer comes with the next call.
"""
