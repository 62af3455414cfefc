"""All topology rules of a simulation: nodes a pod may join, how a claim must narrow, what a placement adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.model import labels
from karpenter_linode.model.requirement import Requirement, exists
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling.existing import ExistingNode
from karpenter_linode.scheduling.plans import NO_PRICE
from karpenter_linode.scheduling.topology.group import GroupKey, TopologyGroup
from karpenter_linode.scheduling.topology.rules import affinity_rules, inverse_rules, spread_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.scheduling.existing import ExistingNodes
    from karpenter_linode.scheduling.open_claims import OpenClaim
    from karpenter_linode.scheduling.shape import Shape
    from karpenter_linode.scheduling.template import ClaimState, Template
    from karpenter_linode.scheduling.topology.group import Kind
    from karpenter_linode.scheduling.topology.population import Population
    from karpenter_linode.scheduling.topology.universe import Universe


class Check:
    """A rule that a shape must respect, with what only depends on the shape."""

    __slots__ = ("counts_itself", "group", "pod_domains")

    def __init__(self, group: TopologyGroup, shape: Shape) -> None:
        self.group = group
        self.counts_itself = group.selects(shape.label_class)
        self.pod_domains: Requirement | None = shape.strict.requirements.find(group.topology_key)


class ShapeTopology:
    """Every rule that concerns a shape.

    Args:
        hosts: rules on the hostname key.
        domains: rules on other keys.
        records: rules that select the shape's pods.
        counted: rules to count a placed pod in: those of ``records``, and the shape's own anti-affinity turned round.
    """

    __slots__ = ("checks", "counted", "domains", "hosts", "version")

    def __init__(
        self,
        checks: Iterable[Check],
        records: tuple[TopologyGroup, ...],
        inverse_owned: tuple[TopologyGroup, ...],
        version: int,
    ) -> None:
        self.checks = tuple(checks)
        self.hosts = tuple(check for check in self.checks if check.group.is_hostname)
        self.domains = tuple(check for check in self.checks if not check.group.is_hostname)
        self.counted = (*records, *inverse_owned)
        self.version = version


class Topology:
    """The tracker.

    Args:
        universe: domains that pools can build.
        population: pods that run already.
        namespaces: labels of every namespace, by name.
        respect_preferences: the preference policy.
        existing: nodes that pods may join.
    """

    def __init__(
        self,
        universe: Universe,
        population: Population,
        namespaces: Mapping[str, Mapping[str, str]],
        existing: ExistingNodes,
        *,
        respect_preferences: bool,
    ) -> None:
        self._universe = universe
        self._population = population
        self._namespaces = namespaces
        self._existing = existing
        self._respect = respect_preferences
        self._groups: dict[GroupKey, TopologyGroup] = {}
        self._inverse: dict[GroupKey, TopologyGroup] = {}
        self._placed: list[tuple[Shape, OpenClaim | ExistingNode]] = []
        self._rules: dict[Any, tuple[tuple[TopologyGroup, ...], tuple[TopologyGroup, ...]]] = {}
        self._profiles: dict[Any, ShapeTopology] = {}
        self._passing: dict[tuple[GroupKey, ClaimState], bool] = {}
        self.active = False
        for pod, facts in population.averse:
            for rule in inverse_rules(pod, namespaces):
                group = self._inverse_group(rule)
                domain = facts.domain(rule.key)
                if domain is not None:
                    bits = self._bits_of_host(domain) if group.is_hostname else 0
                    group.count(domain, existing_bits=bits)

    def learn(self, shape: Shape) -> None:
        """Begin to count for the rules of a shape, before any pod is placed."""
        if shape.topology_key is not None and shape.topology_key not in self._rules:
            self._rules_of(shape)

    def of(self, shape: Shape) -> ShapeTopology:
        """The rules of a shape; groups that are new begin with the pods that are already placed."""
        found = shape.topology
        if found is not None and found.version == len(self._groups) + len(self._inverse):
            return found
        owned, inverse = self._rules_of(shape)
        version = len(self._groups) + len(self._inverse)
        key = (shape.label_class, shape.topology_key, shape.strict)
        profile = self._profiles.get(key)
        if profile is None or profile.version != version:
            pods = shape.label_class
            checks = [Check(group, shape) for group in owned]
            checks += [Check(group, shape) for group in self._inverse.values() if group.selects(pods)]
            records = tuple(group for group in self._groups.values() if group.selects(pods))
            profile = self._profiles[key] = ShapeTopology(checks, records, inverse, version)
        shape.topology = profile
        return profile

    def _rules_of(self, shape: Shape) -> tuple[tuple[TopologyGroup, ...], tuple[TopologyGroup, ...]]:
        """The groups that a shape is under, and its own anti-affinity turned round."""
        key = shape.topology_key
        if key is None:
            return (), ()
        found = self._rules.get(key)
        if found is None:
            rules = (
                *spread_rules(shape.pod, respect_preferences=self._respect),
                *affinity_rules(
                    shape.pod, self._namespaces, self._universe.has_tainted, respect_preferences=self._respect
                ),
            )
            owned = tuple({rule: self._group(rule) for rule in rules}.values())
            turned = {rule: self._inverse_group(rule) for rule in inverse_rules(shape.pod, self._namespaces)}
            found = self._rules[key] = (owned, tuple(turned.values()))
        return found

    def existing_allowed(self, rules: ShapeTopology) -> int:
        """Existing nodes that every rule allows now."""
        mask = self._existing.everything
        for check in rules.hosts:
            mask &= self.existing_allowed_by(check)
        for check in rules.domains:
            mask &= self.existing_allowed_by(check)
        return mask

    def existing_allowed_by(self, check: Check) -> int:
        """Existing nodes that one rule allows now."""
        group = check.group
        if group.is_hostname:
            _, hosts, refused = group.hosts_allowed(counts_itself=check.counts_itself, pod_domains=check.pod_domains)
            return self._existing.everything & ~hosts if refused else hosts
        values = self._existing.values(group.topology_key)
        options = group.options(counts_itself=check.counts_itself, pod_domains=check.pod_domains)
        allowed = 0
        for domain in options.domains:
            allowed |= values.get(domain, 0)
        return allowed

    def open_allowed(self, rules: ShapeTopology, templates: Iterable[Template], mask: int) -> int:
        """Open claims of a mask that every rule, taken alone, allows now."""
        for check in rules.hosts:
            hosts, _, refused = check.group.hosts_allowed(
                counts_itself=check.counts_itself, pod_domains=check.pod_domains
            )
            mask &= ~hosts if refused else hosts
        for check in rules.domains:
            if not mask:
                return 0
            options = check.group.options(counts_itself=check.counts_itself, pod_domains=check.pod_domains)
            key = check.group.topology_key
            for template in templates:
                for state in template.states:
                    if state.members & mask and not options.reach(state.requirements.find(key)):
                        mask &= ~state.members
        return mask

    def new_host_allowed(self, rules: ShapeTopology) -> TopologyGroup | None:
        """The first rule that forbids a host without any pods, or None."""
        for check in rules.hosts:
            if check.group.needs_company and not check.group.may_bootstrap(
                counts_itself=check.counts_itself, pod_domains=check.pod_domains
            ):
                return check.group
        return None

    def narrow(self, rules: ShapeTopology, state: ClaimState, mask: int) -> ClaimState | None:
        """The state after a claim took on domains that every rule allows, or None where there are none.

        Where a rule leaves several domains equally good, the one with the cheapest plan of ``mask`` is taken, then the
        first by name.
        """
        decided = _decided(rules, state)
        if decided is not None:
            return state if decided else None
        allowed, single = self.common_domains(rules, state)
        for key, domains in allowed.items():
            if not domains:
                return None
            settled = self._settle(state, mask, key, domains) if key in single else _within(state, key, domains)
            if settled is None:
                return None
            state = settled
        return state

    @staticmethod
    def common_domains(rules: ShapeTopology, state: ClaimState) -> tuple[dict[str, list[str]], set[str]]:
        """The domains by key that all rules allow, as far as the first key without any; keys that must be settled."""
        allowed: dict[str, list[str]] = {}
        single: set[str] = set()
        for check in rules.domains:
            key = check.group.topology_key
            options = check.group.options(counts_itself=check.counts_itself, pod_domains=check.pod_domains)
            domains = options.within(state.requirements.find(key))
            held = allowed.get(key)
            allowed[key] = domains = domains if held is None else [domain for domain in held if domain in domains]
            if options.single:
                single.add(key)
            if not domains:
                break
        return allowed, single

    def refusal(self, rules: ShapeTopology, state: ClaimState) -> tuple[Kind, str] | None:
        """The first rule that leaves a state no domain, by kind and contract text, or None."""
        for check in rules.domains:
            item = state.requirements.find(check.group.topology_key)
            options = check.group.options(counts_itself=check.counts_itself, pod_domains=check.pod_domains)
            if not options.within(item):
                return check.group.kind, check.group.refusal(*_domains_of(check, item))
        return None

    def host_refusal(self, check: Check, hostname: str) -> str:
        """The contract text of a hostname rule for one host."""
        return check.group.refusal(
            check.pod_domains or exists(labels.HOSTNAME), Requirement(labels.HOSTNAME, frozenset((hostname,)))
        )

    def record_existing(self, rules: ShapeTopology, shape: Shape, node: ExistingNode) -> None:
        """Count a pod that joined an existing node."""
        self._placed.append((shape, node))
        for group in rules.counted:
            self._count_on_node(group, node)

    def record_open(self, rules: ShapeTopology, shape: Shape, claim: OpenClaim) -> None:
        """Count a pod that joined an open claim, in the domains that are settled by now."""
        self._placed.append((shape, claim))
        for group in rules.counted:
            self._count_on_claim(group, claim)

    def _settle(self, state: ClaimState, mask: int, key: str, domains: list[str]) -> ClaimState | None:
        if len(domains) == 1:
            return _within(state, key, domains)
        best: ClaimState | None = None
        best_price = NO_PRICE
        for domain in domains:
            narrowed = _within(state, key, [domain])
            plans = mask & narrowed.mask if narrowed is not None else 0
            if narrowed is not None and plans:
                price = narrowed.market.cheapest(plans)
                if best is None or price < best_price:
                    best, best_price = narrowed, price
        return best

    def _group(self, rule: GroupKey) -> TopologyGroup:
        group = self._groups.get(rule)
        if group is None:
            self.active = True
            tolerations = rule.tolerations if rule.node_filter.tolerations is None else rule.node_filter.tolerations
            group = self._groups[rule] = TopologyGroup(rule, self._universe.domains(rule.key, tolerations))
            self._population.seed(group, self._bits_of_host)
            for shape, place in self._placed:
                if group.selects(shape.label_class):
                    if isinstance(place, ExistingNode):
                        self._count_on_node(group, place)
                    else:
                        self._count_on_claim(group, place)
        return group

    def _inverse_group(self, rule: GroupKey) -> TopologyGroup:
        group = self._inverse.get(rule)
        if group is None:
            self.active = True
            group = self._inverse[rule] = TopologyGroup(rule, self._universe.domains(rule.key))
            for facts in self._population.nodes.values():
                domain = facts.domain(rule.key)
                if domain is not None and not facts.going and not group.is_hostname:
                    group.know(domain)
        return group

    def _bits_of_host(self, hostname: str) -> int:
        return self._existing.values(labels.HOSTNAME).get(hostname, 0)

    def _count_on_node(self, group: TopologyGroup, node: ExistingNode) -> None:
        domain = node.labels.get(group.topology_key)
        if domain is None:
            return
        if not group.every_node and not group.key.node_filter.passes(node.requirements, node.view.taints):
            return
        group.count(domain, existing_bits=node.bit)

    def _count_on_claim(self, group: TopologyGroup, claim: OpenClaim) -> None:
        state = claim.state
        if not group.every_node:
            key = (group.key, state)
            passes = self._passing.get(key)
            if passes is None:
                passes = self._passing[key] = group.key.node_filter.passes(state.requirements, state.template.taints)
            if not passes:
                return
        if group.is_hostname:
            group.count(claim.hostname, open_bit=claim.bit)
            return
        item = state.requirements.find(group.topology_key)
        if item is None or item.complement:
            return
        if len(item.values) == 1:
            group.count(next(iter(item.values)))
        elif group.counts_undecided:
            for domain in sorted(item.values):
                group.count(domain)


def _decided(rules: ShapeTopology, state: ClaimState) -> bool | None:
    """Whether the rules allow a state whose domains are settled; None where one is still open. The common case."""
    for check in rules.domains:
        group = check.group
        item = state.requirements.find(group.topology_key)
        if item is None or item.complement or len(item.values) != 1:
            return None
        options = group.options(counts_itself=check.counts_itself, pod_domains=check.pod_domains)
        if item.values.isdisjoint(options.domains):
            return False
    return True


def _within(state: ClaimState, key: str, domains: list[str]) -> ClaimState | None:
    item = state.requirements.find(key)
    if item is not None and not item.complement and len(item.values) == len(domains):
        return state  # the domains come from these very values
    return state.narrow(Requirements((Requirement(key, frozenset(domains)),)))


def _domains_of(check: Check, item: Requirement | None) -> tuple[Requirement, Requirement]:
    key = check.group.topology_key
    return check.pod_domains or exists(key), item or exists(key)
