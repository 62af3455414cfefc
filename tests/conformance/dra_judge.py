"""Is a set of devices legal? The rules of the vectors' README, written down without looking at the allocator.

Works on the rows' plain JSON. Only the selectors' language and quantities are shared with the package.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from karpenter_linode.cel import CelError
from karpenter_linode.dra.selector import Selectors, Shapes
from karpenter_linode.model import codec
from karpenter_linode.model.quantity import NANO, Quantity
from karpenter_linode.model.resource import Device

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]
MAX_DEVICES = 32


class Judge:
    """Knows one row; tells what is illegal about a result."""

    def __init__(self, row: Plain) -> None:
        self.given = row["input"]
        features = self.given.get("features") or {}
        self.taints = bool(features.get("taints"))
        self.partitionable = bool(features.get("partitionable"))
        self.consumable = bool(features.get("consumable"))
        self.node = self.given["node"]["metadata"]
        self.selectors, self.shapes = Selectors(), Shapes()
        self.devices: dict[str, Plain] = {}
        self.budgets: dict[tuple[str, str, str], int] = {}
        self.consumers: dict[str, Plain] = {}
        self._read_pools()

    def problem(self, results: dict[str, list[list[str]]]) -> str:
        """What is illegal about a set of results; empty when it is legal."""
        try:
            return "; ".join(self._problems(results))
        except _IllegalError as error:
            return str(error)

    # --- rules 2 and 3: usable devices ---

    def _read_pools(self) -> None:
        pools: dict[tuple[str, str], list[Plain]] = {}
        for item in self.given["slices"]:
            spec = item["spec"]
            pools.setdefault((spec["driver"], spec["pool"]["name"]), []).append(spec)
        for (driver, pool), specs in pools.items():
            usable = [spec for spec in specs if self._slice_usable(spec)]
            if not any(not spec.get("sharedCounters") for spec in usable):
                continue
            newest = max(spec["pool"]["generation"] for spec in usable)
            usable = [spec for spec in usable if spec["pool"]["generation"] == newest]
            everywhere = [spec for spec in specs if spec["pool"]["generation"] == newest]
            superseded = any(spec["pool"]["generation"] > newest for spec in specs)
            declared = {spec["pool"]["resourceSliceCount"] for spec in everywhere}
            complete = len(declared) == 1 and (
                len(usable) in declared or (not superseded and len(everywhere) in declared)
            )
            if complete:
                self._read_pool(driver, pool, usable, everywhere)

    def _read_pool(self, driver: str, pool: str, usable: list[Plain], everywhere: list[Plain]) -> None:
        names = Counter(device["name"] for spec in usable for device in spec.get("devices") or ())
        budgets = {}
        for spec in everywhere:
            for counters in spec.get("sharedCounters") or ():
                for name, counter in counters["counters"].items():
                    budgets[driver + "/" + pool, counters["name"], name] = _units(counter["value"])
        for spec in everywhere:
            for device in spec.get("devices") or ():
                self.consumers[f"{driver}/{pool}/{device['name']}"] = device
        if any(count > 1 for count in names.values()):
            return
        if self.partitionable and any(
            (driver + "/" + pool, *counter) not in budgets
            for spec in everywhere
            for device in spec.get("devices") or ()
            for counter, _ in _consumed(device)
        ):
            return
        self.budgets.update(budgets)
        self._read_devices(driver, pool, usable)

    def _read_devices(self, driver: str, pool: str, usable: list[Plain]) -> None:
        for spec in usable:
            for device in spec.get("devices") or ():
                if spec.get("perDeviceNodeSelection") and not self._reaches(device):
                    continue
                if device.get("consumesCounters") and not self.partitionable:
                    continue
                self.devices[f"{driver}/{pool}/{device['name']}"] = {**device, "driver": driver}

    def _slice_usable(self, spec: Plain) -> bool:
        if spec.get("sharedCounters"):
            return self.partitionable
        if spec.get("perDeviceNodeSelection"):
            return self.partitionable and any(self._reaches(device) for device in spec.get("devices") or ())
        return self._reaches(spec)

    def _reaches(self, spec: Plain) -> bool:
        if spec.get("allNodes"):
            return True
        if spec.get("nodeName"):
            return bool(spec["nodeName"] == self.node["name"])
        selector = spec.get("nodeSelector")
        return selector is not None and any(self._term(term) for term in selector["nodeSelectorTerms"])

    def _term(self, term: Plain) -> bool:
        labels = self.node.get("labels") or {}
        expressions = term.get("matchExpressions") or []
        fields = term.get("matchFields") or []
        if not expressions and not fields:
            return False
        return all(_holds(item, labels) for item in expressions) and all(
            _holds(item, {"metadata.name": self.node["name"]}) for item in fields
        )

    # --- rules 1 and 4 to 9 ---

    def _problems(self, results: dict[str, list[list[str]]]) -> Iterator[str]:
        in_use = set(self.given.get("allocated") or ())
        chosen: set[str] = set()
        shares: dict[str, list[dict[str, int]]] = {}
        paid: Counter[str] = Counter()
        for claim in self.given["claims"]:
            granted = results.get(claim["metadata"]["name"], [])
            if len(granted) > MAX_DEVICES:
                yield f"{len(granted)} devices in one claim"
            in_claim: Counter[str] = Counter()
            for label, device in granted:
                if device not in self.devices:
                    raise _IllegalError(f"{device} is not usable here")
                request = self._request(claim, label)
                shared = self.consumable and self.devices[device].get("allowMultipleAllocations")
                if shared:
                    shares.setdefault(device, []).append(self._share(device, request))
                else:
                    yield from self._exclusive(device, request, in_use, chosen, in_claim)
                    paid[device] += 1
                in_claim[device] += 1
                yield from self._fits(device, request)
            chosen.update(in_claim)
            yield from self._served(claim, granted)
            yield from self._constraints(claim, granted)
        yield from self._capacity(shares)
        yield from self._counters(paid, shares, in_use)

    def _exclusive(
        self, device: str, request: Plain, in_use: set[str], chosen: set[str], in_claim: Counter[str]
    ) -> Iterator[str]:
        if in_claim[device]:
            yield f"{device} twice in one claim"
        if not request.get("adminAccess") and (device in in_use or device in chosen):
            yield f"{device} is in use"

    def _fits(self, name: str, request: Plain) -> Iterator[str]:
        device = self.devices[name]
        if not self._selected(device, request):
            yield f"{name} is not selected"
        if self._untolerated(device, request):
            yield f"{name} has an untolerated taint"
        if not self._capable(device, request):
            yield f"{name} cannot serve the capacity asked"

    def _untolerated(self, device: Plain, request: Plain) -> bool:
        return self.taints and any(
            taint.get("effect") in {"NoSchedule", "NoExecute"}
            and not any(_tolerates(item, taint) for item in request.get("tolerations") or ())
            for taint in device.get("taints") or ()
        )

    def _capable(self, device: Plain, request: Plain) -> bool:
        asked = (request.get("capacity") or {}).get("requests") or {}
        if not self.consumable:
            return True
        capacity = device.get("capacity") or {}
        names = capacity if device.get("allowMultipleAllocations") else asked
        return all(name in capacity for name in asked) and all(
            _amount(capacity[name], asked.get(name)) is not None for name in names
        )

    def _selected(self, device: Plain, request: Plain) -> bool:
        plain = {key: value for key, value in device.items() if key != "driver"}
        if not self.consumable:
            plain.pop("allowMultipleAllocations", None)
        converted = codec.convert(plain, Device)
        shape = self.shapes.of(device["driver"], converted)
        of_class = next(
            item for item in self.given["classes"] if item["metadata"]["name"] == request["deviceClassName"]
        )
        texts = [item["cel"]["expression"] for item in of_class["spec"].get("selectors") or ()]
        texts += [item["cel"]["expression"] for item in request.get("selectors") or ()]
        try:
            return all(self.selectors.of(text).holds(shape) for text in texts)
        except CelError:
            return False

    def _request(self, claim: Plain, label: str) -> Plain:
        name, _, sub = label.partition("/")
        for request in claim["spec"]["devices"].get("requests") or ():
            if request["name"] != name:
                continue
            if sub:
                return next(item for item in request["firstAvailable"] if item["name"] == sub)
            return dict(request["exactly"])
        raise _IllegalError(f"no request {label}")

    def _served(self, claim: Plain, granted: list[list[str]]) -> Iterator[str]:
        for request in claim["spec"]["devices"].get("requests") or ():
            labels = sorted({label for label, _ in granted if label.split("/")[0] == request["name"]})
            if not labels and (request.get("exactly") or {}).get("count") == 0:
                continue
            if len(labels) != 1:
                yield f"request {request['name']} is served by {labels}"
                continue
            wanted = self._request(claim, labels[0])
            devices = [device for label, device in granted if label == labels[0]]
            if len(set(devices)) != len(devices):
                yield f"a device twice for {labels[0]}"
            if wanted.get("allocationMode") == "All":
                every = {
                    name
                    for name, device in self.devices.items()
                    if self._selected(device, wanted) and self._capable(device, wanted)
                }
                if set(devices) != every or not devices:
                    yield f"{labels[0]} wants all of {sorted(every)}"
            elif len(devices) != wanted["count"]:
                yield f"{labels[0]} wants {wanted['count']} devices, has {len(devices)}"

    def _constraints(self, claim: Plain, granted: list[list[str]]) -> Iterator[str]:
        for constraint in claim["spec"]["devices"].get("constraints") or ():
            scope = constraint.get("requests") or []
            names = [device for label, device in granted if not scope or label in scope or label.split("/")[0] in scope]
            attribute = constraint.get("matchAttribute") or constraint["distinctAttribute"]
            values = [_attribute(self.devices[name], attribute) for name in names]
            if any(value is None for value in values):
                yield f"a device lacks {attribute}"
            elif constraint.get("matchAttribute"):
                if len(set(values)) > 1:
                    yield f"{attribute} differs"
            elif len(set(values)) != len(values):
                yield f"{attribute} repeats"

    def _share(self, name: str, request: Plain) -> dict[str, int]:
        asked = (request.get("capacity") or {}).get("requests") or {}
        capacity = self.devices[name].get("capacity") or {}
        return {key: _amount(item, asked.get(key)) or 0 for key, item in capacity.items()}

    def _capacity(self, shares: dict[str, list[dict[str, int]]]) -> Iterator[str]:
        for name, taken in shares.items():
            for key, item in (self.devices[name].get("capacity") or {}).items():
                if sum(share[key] for share in taken) > _nano(item["value"]):
                    yield f"{key} of {name} is exceeded"

    def _counters(self, paid: Counter[str], shares: Plain, in_use: set[str]) -> Iterator[str]:
        if not self.partitionable:
            return
        drawn: Counter[tuple[str, str, str]] = Counter()
        for name in [*paid.elements(), *(set(shares) - in_use), *in_use]:
            pool = name.rsplit("/", 1)[0]
            for counter, amount in _consumed(self.consumers.get(name, {})):
                drawn[pool, *counter] += amount
        used = {name.rsplit("/", 1)[0] for name in (*paid, *shares) if self.consumers[name].get("consumesCounters")}
        for counter, amount in drawn.items():
            if counter[0] in used and amount > self.budgets.get(counter, 0):
                yield f"counter {counter} is exceeded"


class _IllegalError(Exception):
    pass


def _holds(expression: Plain, labels: dict[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" if value is not None and value.lstrip("-").isdigit():
            return int(value) > int(values[0]) if expression["operator"] == "Gt" else int(value) < int(values[0])
    return False


def _tolerates(toleration: Plain, taint: Plain) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    exists = toleration.get("operator") == "Exists"
    if toleration.get("key"):
        if toleration["key"] != taint["key"]:
            return False
    elif not exists:
        return False
    return exists or toleration.get("value", "") == taint.get("value", "")


def _attribute(device: Plain, name: str) -> tuple[str, str] | None:
    attributes = device.get("attributes") or {}
    domain, _, bare = name.partition("/")
    found = attributes.get(name) or (attributes.get(bare) if domain == device["driver"] else None)
    return None if not found else next((kind, str(value)) for kind, value in found.items())


def _amount(capacity: Plain, asked: str | None) -> int | None:
    """What one share takes, in nano-units; None when the device can never give it."""
    policy, value = capacity.get("requestPolicy") or {}, _nano(capacity["value"])
    default = _nano(policy["default"]) if policy.get("default") is not None else None
    if asked is None:
        amount = value if default is None else default
    else:
        amount = _nano(asked)
        span, listed = policy.get("validRange"), [_nano(item) for item in policy.get("validValues") or ()]
        if listed:
            amount = min((item for item in listed if item >= amount), default=amount)
        elif span:
            least, step = _nano(span["min"]), _nano(span["step"]) if span.get("step") else 0
            if amount <= least:
                amount = least
            elif step:
                amount = least + -((least - amount) // step) * step
            if amount != default and span.get("max") and amount > _nano(span["max"]):
                return None
        if listed and amount not in listed and amount != default:
            return None
    return amount if amount <= value else None


def _consumed(device: Plain) -> Iterator[tuple[tuple[str, str], int]]:
    for consumption in device.get("consumesCounters") or ():
        for name, counter in consumption["counters"].items():
            yield (consumption["counterSet"], name), _units(counter["value"])


def _nano(text: str) -> int:
    return Quantity.parse(text).nano


def _units(text: str) -> int:
    return -(-_nano(text) // NANO)
