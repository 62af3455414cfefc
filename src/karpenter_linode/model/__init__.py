"""Values: the objects that are read and written, trimmed to the fields in use, and the algebra over them.

Belongs here: frozen msgspec Structs for Kubernetes, Karpenter and Linode objects, ``Quantity``, ``SemVer``, requirements,
selectors, label names, ``Reason``. Does not belong here: any rule that decides about pods, nodes or devices.
"""
