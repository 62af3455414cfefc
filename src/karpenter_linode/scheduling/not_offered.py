"""Plans that a NodePool allows and that cannot be bought now: sold out, or not available in the region."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling.template import template_requirements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.scheduling.template import Template

CODE: Final = "plan-not-offered"
_TEXT: Final = "no available offering that meets the requirements of the NodePool"


def not_offered(template: Template, kinds: Iterable[InstanceType]) -> tuple[Reason, ...]:
    """A reason for each such plan. The template does not know them: they were left out when it was made.

    Args:
        template: the NodePool.
        kinds: everything that the cloud lists for it.
    """
    wanted = template_requirements(template.pool)
    return tuple(
        Reason(CODE, _TEXT, subject=f"plan {kind.name}")
        for kind in kinds
        if kind.name not in template.plans.by_name and wanted.intersects(Requirements.from_specs(kind.requirements))
    )
