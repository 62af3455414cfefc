"""Values: the objects that are read and written, and the algebra over them.

Belongs here: frozen msgspec Structs for Kubernetes, Karpenter and Linode objects, ``Quantity``, ``SemVer``,
requirements, selectors, label names, ``Reason``. Does not belong here: any rule that decides about pods, nodes or
devices.
"""
