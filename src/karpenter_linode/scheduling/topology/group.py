"""One topology rule with its counts: how many pods it counts in each domain, and which domains it allows next."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.model.core import Toleration
from karpenter_linode.model.wording import few
from karpenter_linode.scheduling.topology.node_filter import EVERY_NODE, NodeFilter
from karpenter_linode.scheduling.topology.selector import PodSelector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.requirement import Requirement
    from karpenter_linode.scheduling.shape import LabelClass

Kind = Literal["topology spread", "pod affinity", "pod anti-affinity"]
SPREAD: Final = "topology spread"
AFFINITY: Final = "pod affinity"
ANTI_AFFINITY: Final = "pod anti-affinity"
_SHOWN_DOMAINS: Final = 25


class GroupKey(Struct, frozen=True):
    """Identity of a rule. Pods with an equal rule share one group.

    Args:
        kind: which rule.
        key: the topology key.
        selector: the pods it counts.
        max_skew: spread only.
        min_domains: spread only; part of the identity, so that two rules never share the wrong minimum.
        node_filter: nodes that take part.
        tolerations: affinity only, and only where some domain lies behind taints: domains the owner can reach.
    """

    kind: Kind
    key: str
    selector: PodSelector
    max_skew: int = 0
    min_domains: int = 0
    node_filter: NodeFilter = EVERY_NODE
    tolerations: tuple[Toleration, ...] | None = None


class Options(Struct, frozen=True, gc=False):
    """Domains that a rule allows, whatever the node.

    Args:
        domains: allowed domains with their counts, sorted by name.
        single: the pod's domain must be settled (spread, and the first pod of an affinity group).
        fewest: of the domains that a node can be in, only those with the smallest count.
    """

    domains: dict[str, int]
    single: bool
    fewest: bool

    def reach(self, node: Requirement | None) -> bool:
        """Whether a node with this requirement on the key may take any of the domains."""
        if node is None:
            return bool(self.domains)
        if not node.complement:
            return not node.values.isdisjoint(self.domains)
        return any(node.has(domain) for domain in self.domains)

    def within(self, node: Requirement | None) -> list[str]:
        """The domains that a node with this requirement on the key may take, sorted."""
        if node is None:
            found = list(self.domains)
        elif node.complement:
            found = [domain for domain in self.domains if node.has(domain)]
        else:
            values = node.values
            found = [domain for domain in self.domains if domain in values]
        if self.fewest and len(found) > 1:
            least = min(self.domains[domain] for domain in found)
            found = [domain for domain in found if self.domains[domain] == least]
        return found


class TopologyGroup:
    """A rule and its counts.

    Args:
        key: the rule.
        domains: domains that exist.
    """

    def __init__(self, key: GroupKey, domains: Iterable[str]) -> None:
        self.key = key
        self.topology_key = key.key
        self.kind = key.kind
        self.is_hostname = key.key == labels.HOSTNAME
        self.every_node = key.node_filter.passes_all
        self.counts: dict[str, int] = dict.fromkeys(sorted(domains), 0)
        self._sorted: list[str] = list(self.counts)
        self.occupied = 0
        self.version = 0
        # Masks of hosts that hold at least so many pods, for the thresholds that this rule asks about.
        thresholds = (key.max_skew, key.max_skew + 1) if key.kind == SPREAD else (1,)
        self.open_hosts = dict.fromkeys(thresholds, 0)
        self.existing_hosts = dict.fromkeys(thresholds, 0)
        self._selected: dict[LabelClass, bool] = {}
        self._options: dict[tuple[Requirement | None, bool], tuple[int, Options]] = {}

    @property
    def needs_company(self) -> bool:
        """Whether a pod may only go where others are (affinity)."""
        return self.kind == AFFINITY

    @property
    def counts_undecided(self) -> bool:
        """Whether a claim that may still become several domains counts in all of them (anti-affinity)."""
        return self.kind == ANTI_AFFINITY

    def selects(self, pods: LabelClass) -> bool:
        """Whether the rule counts pods of this class."""
        found = self._selected.get(pods)
        if found is None:
            found = self._selected[pods] = self.key.selector.selects(pods)
        return found

    def know(self, domain: str) -> None:
        """Learn that a domain exists."""
        if domain not in self.counts:
            self.counts[domain] = 0
            self.version += 1
            if not self.is_hostname:
                insort(self._sorted, domain)

    def count(self, domain: str, pods: int = 1, *, open_bit: int = 0, existing_bits: int = 0) -> None:
        """Count pods in a domain; on the hostname key the bits say which host it is."""
        before = self.counts.get(domain)
        if before is None:
            self.know(domain)
            before = 0
        after = self.counts[domain] = before + pods
        self.version += 1
        if before == 0 and after:
            self.occupied += 1
        if self.is_hostname:
            for threshold in self.open_hosts:
                if after >= threshold:
                    self.open_hosts[threshold] |= open_bit
                    self.existing_hosts[threshold] |= existing_bits

    def hosts_allowed(self, *, counts_itself: bool, pod_domains: Requirement | None) -> tuple[int, int, bool]:
        """The hostname rule as masks.

        Returns:
            ``(open, existing, inverted)``: hosts in the masks are allowed, or with ``inverted`` refused.
        """
        if self.kind == SPREAD:
            threshold = self.key.max_skew + (0 if counts_itself else 1)
            return self.open_hosts[threshold], self.existing_hosts[threshold], True
        if self.kind == ANTI_AFFINITY or self.may_bootstrap(counts_itself=counts_itself, pod_domains=pod_domains):
            anti = self.kind == ANTI_AFFINITY
            return (self.open_hosts[1], self.existing_hosts[1], True) if anti else (0, 0, True)
        return self.open_hosts[1], self.existing_hosts[1], False

    def may_bootstrap(self, *, counts_itself: bool, pod_domains: Requirement | None) -> bool:
        """Whether a pod may be the first of its affinity group: it counts itself, and no other is within its reach."""
        if not counts_itself:
            return False
        if self.occupied == 0:
            return True
        if pod_domains is None:
            return False
        return not any(count and pod_domains.has(domain) for domain, count in self.counts.items())

    def options(self, *, counts_itself: bool, pod_domains: Requirement | None) -> Options:
        """The domains that the rule allows a pod now, whatever the node."""
        key = (pod_domains, counts_itself)
        held = self._options.get(key)
        if held is not None and held[0] == self.version:
            return held[1]
        options = self._build_options(counts_itself=counts_itself, pod_domains=pod_domains)
        self._options[key] = (self.version, options)
        return options

    def refusal(self, pod_domains: Requirement, node_domains: Requirement) -> str:
        """The contract text; it has no closing parenthesis upstream, and dashboards match on that."""
        counts = [f"{domain}: {pods}" for domain, pods in sorted(self.counts.items())]
        return (
            f"unsatisfiable topology constraint for {self.kind}, key={self.topology_key} "
            f"(counts = {few(counts, _SHOWN_DOMAINS)}, podDomains = {pod_domains}, nodeDomains = {node_domains}"
        )

    def _build_options(self, *, counts_itself: bool, pod_domains: Requirement | None) -> Options:
        counts = self.counts
        allowed = self._sorted if pod_domains is None else [item for item in self._sorted if pod_domains.has(item)]
        if self.kind == SPREAD:
            return self._spread_options(allowed, counts_itself=counts_itself)
        if self.kind == ANTI_AFFINITY:
            return Options({domain: 0 for domain in allowed if not counts[domain]}, single=False, fewest=False)
        taken = {domain: counts[domain] for domain in allowed if counts[domain]}
        if not taken and self.may_bootstrap(counts_itself=counts_itself, pod_domains=pod_domains):
            return Options(dict.fromkeys(allowed, 0), single=True, fewest=False)
        return Options(taken, single=False, fewest=False)

    def _spread_options(self, allowed: list[str], *, counts_itself: bool) -> Options:
        counts = self.counts
        least = min(map(counts.__getitem__, allowed), default=0)
        if self.is_hostname or len(allowed) < self.key.min_domains:
            least = 0  # a new host can always be made; missing domains count as empty ones
        most = self.key.max_skew + least - (1 if counts_itself else 0)
        # Known domains outside the pod's reach are kept: the node's own requirements decide about them.
        return Options({domain: counts[domain] for domain in self._sorted if counts[domain] <= most}, True, True)  # noqa: FBT003 - fields of a Struct
