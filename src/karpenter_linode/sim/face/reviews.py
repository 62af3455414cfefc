"""Reviews: who am I, and what may I do? Whoever has the kubeconfig may do everything."""

from __future__ import annotations

from typing import Any, Final

from karpenter_linode.sim.face.errors import bad_request

Plain = dict[str, Any]

USER: Final = "kubernetes-admin"
GROUPS: Final = ("system:masters", "system:authenticated")


def review(kind: str, body: Any) -> Plain:
    """The answer to a review.

    Args:
        kind: of the review.
        body: what was sent.

    Raises:
        RequestError: no object (400).
    """
    if not isinstance(body, dict):
        raise bad_request(f"found {type(body).__name__}, expected an object of kind {kind}")
    status: Plain
    match kind:
        case "SelfSubjectReview":
            version, status = "authentication.k8s.io/v1", {"userInfo": {"username": USER, "groups": list(GROUPS)}}
        case "SelfSubjectAccessReview":
            version, status = (
                "authorization.k8s.io/v1",
                {"allowed": True, "reason": "the kubeconfig is an administrator's"},
            )
        case _:
            version = "authorization.k8s.io/v1"
            status = {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
    spec = body.get("spec")
    return {
        "kind": kind,
        "apiVersion": version,
        "metadata": {},
        **({"spec": spec} if isinstance(spec, dict) else {"spec": {}} if kind != "SelfSubjectReview" else {}),
        "status": status,
    }
