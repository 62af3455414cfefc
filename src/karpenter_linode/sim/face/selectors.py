"""Which objects a request is about: namespace, name, label selector and the field selectors that a kind knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from karpenter_linode.ports import InvalidError
from karpenter_linode.sim.api_selectors import field_predicate, label_predicate
from karpenter_linode.sim.face.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.sim.face.requests import ApiRequest
    from karpenter_linode.sim.stored import Stored

_MAX_LENGTH: Final = 4096
_OPERATOR: Final = re.compile(r"!=|==?")
_OF_ALL: Final = frozenset({"metadata.name", "metadata.namespace"})
_INVOLVED: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_OF_KIND: Final = {
    "Pod": frozenset(
        {
            *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
            *("spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"),
        }
    ),
    "Node": frozenset({"spec.unschedulable"}),
    "Event": frozenset(
        {*(f"involvedObject.{field}" for field in _INVOLVED), "reason", "reportingComponent", "source", "type"}
    ),
    "Namespace": frozenset({"status.phase"}),
    "Secret": frozenset({"type"}),
    "ReplicaSet": frozenset({"status.replicas"}),
    "ResourceSlice": frozenset({"spec.nodeName", "spec.driver"}),
}


def predicate(request: ApiRequest) -> Callable[[Stored | None], bool]:
    """A test whether an object is one that the request is about.

    Raises:
        RequestError: a selector that cannot be read, is too long, or names a field that the kind cannot be selected by
            (400).
    """
    labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
    if max(len(labels), len(fields)) > _MAX_LENGTH:
        raise bad_request(f"a selector may not be longer than {_MAX_LENGTH} characters")
    kind = request.target.type
    known = _OF_ALL | _OF_KIND.get(kind.kind, frozenset())
    for clause in filter(None, fields.split(",")):
        field = _OPERATOR.split(clause, maxsplit=1)[0].strip()
        if field not in known:
            raise bad_request(f"field label not supported: {field}; {kind.plural} know {', '.join(sorted(known))}")
    try:
        tests = ([label_predicate(labels)] if labels else []) + ([field_predicate(fields)] if fields else [])
    except InvalidError as error:
        raise bad_request(str(error)) from None
    namespace, name = request.target.namespace, request.target.name

    def matches(stored: Stored | None) -> bool:
        return (
            stored is not None
            and (not namespace or stored.namespace == namespace)
            and (not name or stored.name == name)
            and all(test(stored.plain) for test in tests)
        )

    return matches
