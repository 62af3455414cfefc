"""The embedded world: everything around the controller, in one process, under virtual time.

Belongs here: an API server (``store``, ``watches``, ``validation``, ``kube_api``), what Kubernetes does around a
controller (``nodes``, ``kubelet``, ``kube_scheduler``, ``claims``, ``garbage``, ``taint_eviction``, ``budgets``,
``workloads``, ``replicas``), the DRA driver (``nvidia``), the cloud (``linode``), and what drives and tells a run
(``loop``, ``agenda``, ``scenario``, ``faults``, ``journal``). ``cluster`` assembles them.

Does not belong here: the controller and its decisions. The world must never be kinder than Kubernetes: where it stands
in for a rule, it has that rule; what it leaves out is named in the module that leaves it out.
"""
