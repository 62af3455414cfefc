"""Judges an answer to a scheduling vector by the rules that come with the vectors, from the plain JSON alone.

It shares only ``Quantity`` with the solver. Faults are collected, not raised: an empty list means that all is well.
"""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import Any

from karpenter_linode.model.quantity import Quantity

Plain = dict[str, Any]
NODEPOOL, HOSTNAME, INSTANCE_TYPE = (
    "karpenter.sh/nodepool",
    "kubernetes.io/hostname",
    "node.kubernetes.io/instance-type",
)
EPHEMERAL = {
    ("node.kubernetes.io/not-ready", "NoSchedule"),
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    ("karpenter.sh/unregistered", "NoExecute"),
}
ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}
CENT = Decimal("0.000001")


# --- small algebra ---------------------------------------------------------------------------------------------------


def holds(expression: Plain, value: str | None) -> bool:
    """Whether one expression holds for a label value, None where the label is absent."""
    operator, values = expression["operator"], expression.get("values") or []
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "DoesNotExist":
        return value is None
    if value is None:
        return False
    if operator == "In":
        return value in values
    if operator == "Exists":
        return True
    if not re.fullmatch(r"[+-]?\d+", value):
        return False
    number, bound = int(value), int(values[0])
    return {"Gt": number > bound, "Gte": number >= bound, "Lt": number < bound, "Lte": number <= bound}[operator]


def implied(expression: Plain, requirements: list[Plain]) -> bool:
    """Whether every node that meets a claim's requirements meets an expression."""
    mine = [item for item in requirements if item["key"] == expression["key"]]
    if not mine:
        return expression["operator"] in {"NotIn", "DoesNotExist"}
    for item in mine:
        if item["operator"] == "In":
            return all(holds(expression, value) for value in item["values"])
        if item["operator"] == "DoesNotExist":
            return holds(expression, None)
    operator, values = expression["operator"], set(expression.get("values") or [])
    if operator == "Exists":
        return True
    if operator == "NotIn":
        excluded = {value for item in mine if item["operator"] == "NotIn" for value in item["values"]}
        return all(value in excluded or any(not holds(item, value) for item in mine) for value in values)
    if operator in {"Gt", "Gte"}:
        least = int(expression["values"][0]) + (operator == "Gt")
        return any(item["operator"] == "Gte" and int(item["values"][0]) >= least for item in mine)
    if operator in {"Lt", "Lte"}:
        most = int(expression["values"][0]) - (operator == "Lt")
        return any(item["operator"] == "Lte" and int(item["values"][0]) <= most for item in mine)
    return False


def meets(requirements: list[Plain], other: list[Plain]) -> bool:
    """Whether two requirement lists can hold together (keys on one side only are free)."""
    for left in requirements:
        for right in other:
            if left["key"] != right["key"]:
                continue
            if left["operator"] == "In":
                if not any(holds(right, value) for value in left["values"]):
                    return False
            elif right["operator"] == "In":
                if not any(holds(left, value) for value in right["values"]):
                    return False
            elif "DoesNotExist" in {left["operator"], right["operator"]} and not (
                {left["operator"], right["operator"]} <= {"NotIn", "DoesNotExist"}
            ):
                return False
    return True


def tolerated(taint: Plain, tolerations: list[Plain]) -> bool:
    for item in tolerations:
        if item.get("effect") and item["effect"] != taint["effect"]:
            continue
        if item.get("key") and item["key"] != taint["key"]:
            continue
        if item.get("operator") == "Exists" or item.get("value", "") == taint.get("value", ""):
            return True
    return False


def selects(selector: Plain | None, values: dict[str, str]) -> bool:
    if selector is None:
        return False
    return all(values.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        holds(item, values.get(item["key"])) for item in selector.get("matchExpressions") or []
    )


def amount(text: Any) -> int:
    return Quantity.parse(str(text)).nano


def add(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in {*left, *right}}


def requests(pod: Plain) -> dict[str, int]:
    spec = pod["spec"]

    def of(container: Plain) -> dict[str, int]:
        resources = container.get("resources") or {}
        merged = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return {name: amount(value) for name, value in merged.items()}

    def larger(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        return {name: max(left.get(name, 0), right.get(name, 0)) for name in {*left, *right}}

    running: dict[str, int] = {}
    for container in spec["containers"]:
        running = add(running, of(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, of(container))
            running = add(running, of(container))
            peak = larger(peak, sidecars)
        else:
            peak = larger(peak, add(sidecars, of(container)))
    needed = larger(running, peak)
    for name, value in ((spec.get("resources") or {}).get("requests") or {}).items():
        needed[name] = amount(value)
    needed = add(needed, {name: amount(value) for name, value in (spec.get("overhead") or {}).items()})
    needed["pods"] = amount(1)
    return needed


def required_terms(pod: Plain) -> list[list[Plain]]:
    """The selector with each required term: every expression as written."""
    selector = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in (pod["spec"].get("nodeSelector") or {}).items()
    ]
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = [term.get("matchExpressions") or [] for term in (affinity or {}).get("nodeSelectorTerms") or []]
    alternatives = [selector + term for term in terms] or [selector]
    return [[{**item, "key": ALIASES.get(item["key"], item["key"])} for item in term] for term in alternatives]


def ports(pod: Plain) -> list[tuple[str, int, str]]:
    return [
        (port.get("hostIP") or "0.0.0.0", port["hostPort"], port.get("protocol") or "TCP")  # noqa: S104 - compared only
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or []
        if port.get("hostPort")
    ]


def clash(left: tuple[str, int, str], right: tuple[str, int, str]) -> bool:
    same = left[1:] == right[1:]
    return same and (left[0] == right[0] or {left[0], right[0]} & {"0.0.0.0", "::"} != set())  # noqa: S104 - compared only


# --- places ----------------------------------------------------------------------------------------------------------


class Place:
    """A node or a planned claim with the pods on it."""

    def __init__(self, name: str, values: dict[str, str], taints: list[Plain]) -> None:
        self.name = name
        self.values = values
        self.taints = taints
        self.requirements: list[Plain] | None = None
        self.settled: list[Plain] = []  # running pods
        self.placed: list[Plain] = []  # pods of the batch

    def domain(self, key: str) -> str | None:
        """Its domain of a topology key, where it is determined."""
        if key == HOSTNAME:
            return self.values.get(HOSTNAME, self.name)
        if self.requirements is None:
            return self.values.get(key)
        items = [item for item in self.requirements if item["key"] == key]
        if len(items) == 1 and items[0]["operator"] == "In" and len(items[0]["values"]) == 1:
            return str(items[0]["values"][0])
        return None

    def selected_by(self, pod: Plain) -> bool:
        if self.requirements is None:
            return any(all(holds(item, self.values.get(item["key"])) for item in term) for term in required_terms(pod))
        return any(all(implied(item, self.requirements) for item in term) for term in required_terms(pod))


def node_places(problem: Plain) -> dict[str, Place]:
    """Nodes by the name that answers use; the NodeClaim speaks until the Node is registered."""
    places = {}
    for item in problem["nodes"]:
        node, claim = item.get("node"), item.get("nodeClaim")
        labels = (node or {}).get("metadata", {}).get("labels") or {}
        registered = claim is None or labels.get("karpenter.sh/registered") == "true"
        initialized = claim is None or labels.get("karpenter.sh/initialized") == "true"
        speaker = node if node is not None and registered else claim
        taints = (
            (speaker["spec"].get("taints") or [])
            if speaker is claim or node is None
            else node["spec"].get("taints") or []
        )
        if not initialized and claim is not None:
            startup = {(taint["key"], taint["effect"]) for taint in claim["spec"].get("startupTaints") or []}
            taints = [
                taint
                for taint in taints
                if (taint["key"], taint["effect"]) not in EPHEMERAL | startup
                and not taint["key"].startswith("readiness.k8s.io/")
            ]
        place = Place(speaker["metadata"]["name"], dict(speaker["metadata"].get("labels") or {}), taints)
        place.settled = [
            pod
            for pod in problem["boundPods"]
            if node is not None
            and pod["spec"]["nodeName"] == node["metadata"]["name"]
            and (pod.get("status") or {}).get("phase") not in {"Failed", "Succeeded"}
        ]
        places[place.name] = place
    return places


def room_of(problem: Plain, name: str) -> dict[str, int]:
    for item in problem["nodes"]:
        node, claim = item.get("node"), item.get("nodeClaim")
        if name not in {(part or {}).get("metadata", {}).get("name") for part in (node, claim)}:
            continue
        room = {key: amount(value) for key, value in ((node or {}).get("status", {}).get("allocatable") or {}).items()}
        for key, value in ((claim or {}).get("status", {}).get("allocatable") or {}).items():
            if not room.get(key):
                room[key] = amount(value)
        return room
    return {}


# --- rules -----------------------------------------------------------------------------------------------------------


class Judge:
    """One row and one answer."""

    def __init__(self, row: Plain, answer: Plain) -> None:
        self.row, self.answer = row, answer
        self.problem, self.outcome = row["problem"], row["outcome"]
        self.flags = set(self.outcome.get("versionFlags") or ())
        self.pools = {pool["metadata"]["name"]: pool for pool in self.problem["nodePools"]}
        self.types = {item["name"]: item for item in self.problem["instanceTypes"]}
        self.batch = self._batch()
        self.faults: list[str] = []

    def _batch(self) -> dict[str, Plain]:
        going = {
            item["node"]["metadata"]["name"]
            for item in self.problem["nodes"]
            if item.get("node") and item.get("nodeClaim") and item["nodeClaim"]["metadata"].get("deletionTimestamp")
        }
        moving = [pod for pod in self.problem["boundPods"] if pod["spec"]["nodeName"] in going]
        return {pod["metadata"]["name"]: pod for pod in (*self.problem["pods"], *moving)}

    def verdict(self) -> list[str]:
        self._unschedulable()
        places = self._places()
        self._each_pod_once(places)
        for place in places:
            self._pods_of(place)
        self._limits()
        self._apart_and_together(places)
        self._spread(places)
        self._price()
        self._type_sets()
        return self.faults

    def fault(self, text: str) -> None:
        self.faults.append(text)

    def _unschedulable(self) -> None:
        ours, theirs = set(self.answer["errors"]), set(self.outcome["errors"])
        extra, missing = sorted(ours - theirs), sorted(theirs - ours)
        if extra or (missing and "daemon-per-type" not in self.flags):
            self.fault(f"unschedulable here only: {extra}, upstream only: {missing}")

    def _places(self) -> list[Place]:
        nodes = node_places(self.problem)
        for name, pods in self.answer["existing"].items():
            if name not in nodes:
                self.fault(f"no such node: {name}")
                continue
            nodes[name].placed = [self.batch[pod] for pod in pods if pod in self.batch]
        for place in nodes.values():
            place.settled = [pod for pod in place.settled if pod["metadata"]["name"] not in self.batch]
        claims = []
        for index, claim in enumerate(self.answer["newNodeClaims"]):
            pool = self.pools.get(claim["nodePool"])
            if pool is None or not self._usable(pool):
                self.fault(f"claim {index}: pool {claim['nodePool']} cannot be used")
                continue
            place = Place(f"new-{index}", {}, pool["spec"]["template"]["spec"].get("taints") or [])
            place.requirements = claim["requirements"]
            place.placed = [self.batch[pod] for pod in claim["pods"] if pod in self.batch]
            self._types_of(claim, place)
            claims.append(place)
        return [*nodes.values(), *claims]

    @staticmethod
    def _usable(pool: Plain) -> bool:
        ready = any(item["type"] == "Ready" and item["status"] == "True" for item in pool["status"]["conditions"])
        return ready and "replicas" not in pool["spec"] and not pool["metadata"].get("deletionTimestamp")

    def _each_pod_once(self, places: list[Place]) -> None:
        seen = Counter(pod["metadata"]["name"] for place in places for pod in place.placed)
        seen.update(list(self.answer["errors"]))
        for name in self.batch:
            if seen[name] != 1:
                self.fault(f"pod {name} is in {seen[name]} places")

    def _pods_of(self, place: Place) -> None:
        for pod in place.placed:
            name = pod["metadata"]["name"]
            tolerations = pod["spec"].get("tolerations") or []
            for taint in place.taints:
                if taint["effect"] != "PreferNoSchedule" and not tolerated(taint, tolerations):
                    self.fault(f"pod {name} does not tolerate {taint} on {place.name}")
            if not place.selected_by(pod):
                self.fault(f"pod {name} does not select {place.name}")
            others = [other for other in (*place.placed, *place.settled) if other is not pod]
            if any(clash(mine, theirs) for mine in ports(pod) for other in others for theirs in ports(other)):
                self.fault(f"pod {name} clashes on a host port on {place.name}")
        if place.requirements is None and place.placed:
            need: dict[str, int] = {}
            for pod in (*place.placed, *place.settled):
                need = add(need, requests(pod))
            room = room_of(self.problem, place.name)
            for key, value in need.items():
                if value > room.get(key, 0) and any(
                    key in requests(pod) and requests(pod)[key] for pod in place.placed
                ):
                    self.fault(f"node {place.name} has too little {key}")

    def _types_of(self, claim: Plain, place: Place) -> None:
        if not claim["instanceTypes"]:
            self.fault(f"{place.name} allows no plan")
        need: dict[str, int] = {}
        for pod in place.placed:
            need = add(need, requests(pod))
        for name in claim["instanceTypes"]:
            plan = self.types[name]
            if not meets(plan["requirements"], place.requirements or []):
                self.fault(f"{place.name}: plan {name} does not meet the requirements")
            if self._cheapest(plan, claim) is None:
                self.fault(f"{place.name}: plan {name} has no offering")
            room = {key: amount(value) for key, value in plan["capacity"].items()}
            for part in (plan.get("overhead") or {}).values():
                room = {key: value - amount(part.get(key, 0)) for key, value in room.items()}
            total = add(need, self._daemons(claim, plan, place))
            for key, value in total.items():
                if value > room.get(key, 0):
                    self.fault(f"{place.name}: plan {name} has too little {key}")

    def _daemons(self, claim: Plain, plan: Plain, place: Place) -> dict[str, int]:
        """What daemons surely take: those that every node of the claim with this plan runs."""
        total: dict[str, int] = {}
        for daemon in self.problem["daemonSets"]:
            template = daemon["spec"]["template"]
            pod = {"metadata": daemon["metadata"], "spec": template["spec"]}
            if any(
                owner["uid"] == daemon["metadata"].get("uid")
                for bound in self.problem["boundPods"]
                for owner in bound["metadata"].get("ownerReferences") or []
            ):
                continue  # a running pod stands for it, whose size differs
            hard = [taint for taint in place.taints if taint["effect"] != "PreferNoSchedule"]
            if not all(tolerated(taint, template["spec"].get("tolerations") or []) for taint in hard):
                continue
            facts = [*(place.requirements or []), *plan["requirements"]]
            if any(all(implied(item, facts) for item in term) for term in required_terms(pod)):
                total = add(total, requests(pod))
        del claim
        return total

    def _cheapest(self, plan: Plain, claim: Plain) -> Decimal | None:
        prices = [
            Decimal(str(offering["price"]))
            for offering in plan["offerings"]
            if offering.get("available", True) and meets(offering["requirements"], claim["requirements"])
        ]
        return min(prices, default=None)

    def _limits(self) -> None:
        used: dict[str, dict[str, int]] = {}
        for item in self.problem["nodes"]:
            claim, node = item.get("nodeClaim"), item.get("node")
            labels = ((claim or node)["metadata"].get("labels")) or {}
            pool = labels.get(NODEPOOL)
            if pool and not (claim or {}).get("metadata", {}).get("deletionTimestamp"):
                capacity = {
                    **((claim or {}).get("status", {}).get("capacity") or {}),
                    **((node or {}).get("status", {}).get("capacity") or {}),
                }
                used[pool] = add(used.get(pool, {}), {key: amount(value) for key, value in capacity.items()})
        for claim in self.answer["newNodeClaims"]:
            smallest: dict[str, int] = {}
            plans = [self.types[name]["capacity"] for name in claim["instanceTypes"]]
            for key in {key for plan in plans for key in plan}:
                smallest[key] = min(amount(plan.get(key, 0)) for plan in plans)
            used[claim["nodePool"]] = add(used.get(claim["nodePool"], {}), smallest)
        for name in {claim["nodePool"] for claim in self.answer["newNodeClaims"]}:
            for key, limit in (self.pools[name]["spec"].get("limits") or {}).items():
                if key != "nodes" and used[name].get(key, 0) > amount(limit):
                    self.fault(f"pool {name} exceeds its limit of {key}")

    # Topology

    def _namespaces(self, term: Plain, pod: Plain) -> set[str]:
        own = pod["metadata"]["namespace"]
        if "namespaceSelector" not in term:
            return set(term.get("namespaces") or [own])
        picked = {
            item["metadata"]["name"]
            for item in self.problem["namespaces"]
            if selects(term["namespaceSelector"], item["metadata"].get("labels") or {})
        }
        return picked | set(term.get("namespaces") or [])

    def _apart_and_together(self, places: list[Place]) -> None:
        running = [
            (pod, place) for place in places for pod in place.settled if not pod["metadata"].get("deletionTimestamp")
        ]
        placed = [(pod, place) for place in places for pod in place.placed]
        for pod, place in (*placed, *running):
            affinity = pod["spec"].get("affinity") or {}
            for term in (affinity.get("podAntiAffinity") or {}).get(
                "requiredDuringSchedulingIgnoredDuringExecution"
            ) or []:
                self._apart(pod, place, term, placed if pod["spec"].get("nodeName") else (*placed, *running))
        for pod, place in placed:
            affinity = pod["spec"].get("affinity") or {}
            for term in (affinity.get("podAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or []:
                self._together(pod, place, term, (*placed, *running))

    def _matching(self, pod: Plain, term: Plain, pods: Any) -> list[tuple[Plain, Place]]:
        spaces = self._namespaces(term, pod)
        return [
            (other, place)
            for other, place in pods
            if other["metadata"]["namespace"] in spaces
            and selects(term.get("labelSelector"), other["metadata"].get("labels") or {})
        ]

    def _apart(self, pod: Plain, place: Place, term: Plain, pods: Any) -> None:
        key = term["topologyKey"]
        domain = place.domain(key)
        for other, elsewhere in self._matching(pod, term, pods):
            if other is not pod and domain is not None and elsewhere.domain(key) == domain:
                self.fault(
                    f"pods {pod['metadata']['name']} and {other['metadata']['name']} must not share {key} {domain}"
                )

    def _together(self, pod: Plain, place: Place, term: Plain, pods: Any) -> None:
        key = term["topologyKey"]
        matching = self._matching(pod, term, pods)
        domain = place.domain(key)
        if domain is None:
            self.fault(f"pod {pod['metadata']['name']} has affinity but its {key} is open")
        elif not any(elsewhere.domain(key) == domain for _, elsewhere in matching):
            self.fault(f"pod {pod['metadata']['name']} is without company in {key} {domain}")

    def _spread(self, places: list[Place]) -> None:
        placed = [(pod, place) for place in places for pod in place.placed]
        for pod, place in placed:
            for constraint in pod["spec"].get("topologySpreadConstraints") or []:
                if constraint["whenUnsatisfiable"] == "DoNotSchedule" and constraint.get("labelSelector") is not None:
                    self._skew(pod, place, constraint, places)

    def _skew(self, pod: Plain, place: Place, constraint: Plain, places: list[Place]) -> None:
        key, selector = constraint["topologyKey"], dict(constraint["labelSelector"])
        own = pod["metadata"].get("labels") or {}
        selector["matchExpressions"] = [
            *(selector.get("matchExpressions") or []),
            *(
                {"key": name, "operator": "In", "values": [own[name]]}
                for name in constraint.get("matchLabelKeys") or []
                if name in own
            ),
        ]
        domain = place.domain(key)
        if domain is None or not selects(selector, own):
            return
        counts: Counter[str] = Counter()
        space = pod["metadata"]["namespace"]
        for other in places:
            where = other.domain(key)
            if where is None or not self._takes_part(other, pod, constraint):
                continue
            for item in (*other.placed, *other.settled):
                if item["metadata"].get("deletionTimestamp") and item in other.settled:
                    continue
                if item["metadata"]["namespace"] == space and selects(selector, item["metadata"].get("labels") or {}):
                    counts[where] += 1
                    same = constraint in (item["spec"].get("topologySpreadConstraints") or [])
                    if where == domain and item in other.placed and not same:
                        return  # a pod without the rule may have come later
        known = set(counts) if key != HOSTNAME else set()
        least = 0 if key == HOSTNAME else min((counts[name] for name in self._known(known, pod, key)), default=0)
        if counts[domain] - least > constraint["maxSkew"]:
            self.fault(
                f"pod {pod['metadata']['name']}: skew {counts[domain] - least} on {key} exceeds {constraint['maxSkew']}"
            )

    def _known(self, known: set[str], pod: Plain, key: str) -> set[str]:
        """Domains that surely exist: those with pods on them that the pod could also be in."""
        terms = required_terms(pod)
        return {
            name
            for name in known
            if any(all(holds(item, name) for item in term if item["key"] == key) for term in terms)
        }

    @staticmethod
    def _takes_part(place: Place, pod: Plain, constraint: Plain) -> bool:
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not place.selected_by(pod):
            return False
        if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor":
            return all(tolerated(taint, pod["spec"].get("tolerations") or []) for taint in place.taints)
        return True

    # Price and plans

    def _price(self) -> None:
        total = Decimal(0)
        for claim in self.answer["newNodeClaims"]:
            prices = [self._cheapest(self.types[name], claim) for name in claim["instanceTypes"]]
            total += min((price for price in prices if price is not None), default=Decimal(0))
        most = Decimal(str(self.outcome.get("priceTieMax", self.outcome["price"])))
        if total > most + CENT:
            self.fault(f"price {total} exceeds {most}")

    def _type_sets(self) -> None:
        if self.outcome.get("tier") not in {"exact", "shape"} or "daemon-per-type" in self.flags:
            return
        theirs = {frozenset(claim["pods"]): set(claim["instanceTypes"]) for claim in self.outcome["newNodeClaims"]}
        for claim in self.answer["newNodeClaims"]:
            expected = theirs.get(frozenset(claim["pods"]))
            if expected is not None and expected != set(claim["instanceTypes"]):
                self.fault(
                    f"claim with {claim['pods'][0]}: plans differ by {sorted(expected ^ set(claim['instanceTypes']))}"
                )


def judge(row: Plain, answer: Plain) -> list[str]:
    """What is wrong with an answer; nothing if it passes."""
    return Judge(row, answer).verdict()
