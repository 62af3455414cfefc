"""Pure deciders: one small state machine for each kind, from (object, view, now) to Effects."""
