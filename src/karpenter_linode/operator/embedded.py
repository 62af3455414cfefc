"""The embedded world: the whole system in one process, in virtual time.

Signature for callers (``cli simulate``, tests); the world is built here once its parts stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.operator.options import Options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from karpenter_linode.operator.outcome import Outcome


class EmbeddedWorld:
    """A cluster, a cloud and the controllers.

    Args:
        manifests: plain objects to apply at the start.
        seed: decides every random choice and delay.
        options: settings of the controllers.
        scenario: what happens beside the manifests (pods that end, faults), or None.
        delays: how long things take, or None for realistic defaults.
    """

    def __init__(
        self,
        manifests: Sequence[Mapping[str, Any]],
        *,
        seed: int = 0,
        options: Options | None = None,
        scenario: Any = None,
        delays: Any = None,
    ) -> None:
        self.manifests, self.seed, self.options = manifests, seed, options or Options()
        self.scenario, self.delays = scenario, delays

    async def run(self, limit_seconds: float) -> Outcome:
        """Run until nothing is left to do, or until the limit in virtual seconds."""
        raise NotImplementedError


def run_embedded(
    manifests: Sequence[Mapping[str, Any]],
    *,
    seed: int = 0,
    options: Options | None = None,
    scenario: Any = None,
    delays: Any = None,
    limit_seconds: float = 7200.0,
) -> Outcome:
    """Run a world under the virtual-time loop and return what it came to. Equal arguments give equal outcomes."""
    raise NotImplementedError
