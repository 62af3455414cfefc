"""Why claims cannot be allocated: the tree below ``no instance type can satisfy the allocation``.

Built only when somebody asks; the search itself keeps no reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cel import CompileError
from karpenter_linode.dra.device_reasons import device_reasons, with_feature
from karpenter_linode.dra.joint_reasons import joint_reasons
from karpenter_linode.dra.view import compile_failure
from karpenter_linode.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from karpenter_linode.dra.allocation import ClaimAllocation, Target
    from karpenter_linode.dra.errors import AllocationError
    from karpenter_linode.dra.pools import Pool
    from karpenter_linode.dra.prepare import Alternative, PreparedClaim
    from karpenter_linode.dra.view import Usage, View
    from karpenter_linode.model.requirements import Requirements

NO_INSTANCE_TYPE: Final = "no instance type can satisfy the allocation"


def no_instance_type(target: Target, children: tuple[Reason, ...] = ()) -> Reason:
    """The contract's text for a target on which nothing fits."""
    return Reason("dra-no-instance-type", NO_INSTANCE_TYPE, subject=_target(target), children=children)


def incompatible(kind: str, claim: str, target: Target, detail: str | None) -> Reason:
    """A claim that is allocated already cannot be used on a target (spec 5.2)."""
    facts = (("ResourceClaim", claim),) if detail is None else (("ResourceClaim", claim), ("detail", detail))
    return Reason(
        "dra-allocation-topology",
        f"{kind} allocation topology is incompatible with NodeClaim requirements",
        subject=_target(target),
        facts=facts,
    )


def bound_elsewhere(claim: ClaimAllocation, target: Target) -> Reason:
    """A claim was given devices on another node of this round."""
    return Reason(
        "dra-claim-bound",
        "claim is bound to a different in-flight NodeClaim",
        subject=_target(target),
        facts=(("ResourceClaim", claim.claim), ("boundTo", claim.target_id)),
    )


def not_of_shared_claim(instance_type: str) -> Reason:
    """A shared claim was given no devices for an instance type."""
    return Reason(
        "dra-claim-bound", "a claim of the pod was given no devices for this plan", subject=f"plan {instance_type}"
    )


def of_error(error: AllocationError, target: Target) -> Reason:
    """A claim that can be allocated nowhere."""
    facts = (("ResourceClaim", error.claim), *error.facts) if error.claim else error.facts
    return Reason(error.code, error.message, subject=_target(target), facts=facts)


def check_compiles(claim: PreparedClaim) -> None:
    """Raise ``AllocationError`` for the first selector of a claim that is no valid expression."""
    for request in claim.spec.requests:
        for alternative in request.alternatives:
            for placed in alternative.selectors:
                try:
                    placed.selector.program  # noqa: B018 - compiles on first use
                except CompileError as error:
                    raise compile_failure(placed, error).of_claim(claim.key) from None


def short(target: Target, instance_type: str) -> Reason:
    """A refusal nobody has asked the reasons of yet."""
    return Reason("dra-no-device", "its devices cannot serve the claims", subject=_subject(target, instance_type))


def about(target: Target, instance_type: str, reason: Reason) -> Reason:
    """The same reason with its subject."""
    subject = _subject(target, instance_type)
    return Reason(reason.code, reason.message, subject=subject, facts=reason.facts, children=reason.children)


def refusal(
    claims: Sequence[PreparedClaim], view: View, usage: Usage, requirements: Requirements, error: AllocationError | None
) -> Reason:
    """Why some devices cannot serve some claims.

    Args:
        claims: to be allocated together.
        view: the devices.
        usage: what of them is taken.
        requirements: what the place must meet.
        error: what ended the search, if it ended early.
    """
    if error is not None:
        message = error.message if len(claims) > 1 else error.detail
        return Reason(error.code, with_feature(message), facts=error.facts)
    asked = sum(_least(view, claim) for claim in claims)
    facts = (("predicted" if _all_predicted(view) else "devices", str(len(view.candidates))), ("asked", str(asked)))
    wanting = _wanting(claims, view, usage, requirements)
    code, message, children = _shortage(claims, view, asked, wanting)
    if code == "dra-no-combination":
        children = joint_reasons(claims, view, usage)
    return Reason(code, f"{_offer(view)}{message}", facts=facts, children=(*children, *map(_broken, view.broken)))


def _wanting(
    claims: Sequence[PreparedClaim], view: View, usage: Usage, requirements: Requirements
) -> tuple[Reason, ...]:
    """The requests that cannot be served even alone, with every alternative."""
    wanting: list[Reason] = []
    for claim in claims:
        for request in claim.spec.requests:
            reasons = [_alternative(view, usage, requirements, item) for item in request.alternatives]
            found = [reason for reason in reasons if reason is not None]
            if len(found) == len(reasons):
                wanting.extend(_named(claim, found) if len(claims) > 1 else found)
    return tuple(wanting)


def _shortage(
    claims: Sequence[PreparedClaim], view: View, asked: int, wanting: tuple[Reason, ...]
) -> tuple[str, str, tuple[Reason, ...]]:
    """Code, text after the offer, and children of what is missing."""
    several = sum(len(request.alternatives) for claim in claims for request in claim.spec.requests) > 1
    below = wanting[0].children if len(wanting) == 1 and not several else wanting
    if not view.candidates:
        return "dra-no-device", f", {asked} asked", ()
    if asked > len(view.candidates):
        return "dra-too-few-devices", f", {asked} asked", below
    if len(wanting) == 1 and not several:
        return wanting[0].code, f", {wanting[0].message}", below
    if wanting:
        return "dra-no-device", f", too few for {', '.join(reason.subject for reason in wanting)}", below
    if several:
        return "dra-no-combination", "; each request could be served, but not all of them together", ()
    return "dra-no-combination", f"; no {asked} of those that match go together", ()


def _broken(pool: Pool) -> Reason:
    return Reason("dra-pool-unusable", f"{pool.state}: {pool.detail}", subject=f"pool {pool.key[0]}/{pool.key[1]}")


def _alternative(view: View, usage: Usage, requirements: Requirements, alternative: Alternative) -> Reason | None:
    """Why an alternative alone cannot be served, or None when enough devices could serve it."""
    wanted = len(view.everything(alternative)) if alternative.everything else alternative.count
    unfit = device_reasons(view, usage, requirements, alternative)
    fit = len(view.candidates) - sum(mask.bit_count() for mask, _ in unfit)
    if alternative.everything:
        matching = sum(1 << index for index in view.everything(alternative))
        blocked = [reason for mask, reason in unfit if mask & matching]
        if wanted and not blocked:
            return None
        reasons = tuple(blocked) or tuple(reason for _, reason in unfit)
        message = f"not all of the {wanted} that match can be had" if wanted else "none matches, all that match asked"
    else:
        if fit >= wanted:
            return None
        reasons = tuple(reason for _, reason in unfit)
        message = f"{fit} of them {'fits' if fit == 1 else 'fit'}, {wanted} asked"
    if alternative.limits:
        message = "predicted devices cannot promise " + ", ".join(str(limit) for limit in alternative.limits)
        return Reason("dra-not-promised", message, subject=f"request {alternative.label}", children=reasons)
    facts = (("fit", str(fit)), ("asked", str(wanted)))
    return Reason("dra-no-device", message, subject=f"request {alternative.label}", facts=facts, children=reasons)


def _named(claim: PreparedClaim, reasons: Iterable[Reason]) -> list[Reason]:
    return [
        Reason(item.code, item.message, f"claim {claim.key} {item.subject}", item.facts, item.children)
        for item in reasons
    ]


def _least(view: View, claim: PreparedClaim) -> int:
    return sum(
        min(max(1, len(view.everything(item))) if item.everything else item.count for item in request.alternatives)
        for request in claim.spec.requests
    )


def _offer(view: View) -> str:
    predicted = sum(candidate.id.template for candidate in view.candidates)
    published = len(view.candidates) - predicted
    if not view.candidates:
        return "no device in reach" if view.broken else "predicts no device"
    if not published:
        return f"predicts {_devices(predicted)}"
    if not predicted:
        return f"publishes {_devices(published)}"
    return f"predicts {_devices(predicted)} and reaches {published} published"


def _devices(count: int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"


def _all_predicted(view: View) -> bool:
    return all(candidate.id.template for candidate in view.candidates)


def _target(target: Target) -> str:
    return f"Node {target.node_name}" if target.node_name else f"NodeClaim {target.id}"


def _subject(target: Target, instance_type: str) -> str:
    return f"Node {target.node_name}" if target.node_name else f"plan {instance_type}"
