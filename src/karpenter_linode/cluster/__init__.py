"""The mirrored cluster: events in, immutable snapshots out.

Belongs here: what is known of the cluster and how it is asked, which pods call for capacity, and the ``Problem`` that a
moment poses. Does not belong here: what to do about any of it (``lifecycle``, ``disruption``), and how events arrive
(``controllers.mirror``). Everything but nominations and marks can be rebuilt from the API.
"""
