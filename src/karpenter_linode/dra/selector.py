"""Selectors over devices: the CEL environment, device values as CEL sees them, and outcomes kept by device shape.

A selector is compiled once for each text and evaluated once for each distinct device (spec/cel-for-dra.md 1).
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from karpenter_linode.cel import (
    BOOL,
    DYN,
    QUANTITY,
    STRING,
    CompileError,
    DefaultMap,
    Environment,
    EvaluationError,
    map_of,
    object_type,
)
from karpenter_linode.dra.key_hints import UNPREDICTED
from karpenter_linode.model import codec
from karpenter_linode.model.semver import SemVer, SemVerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from karpenter_linode.cel import Clause, Program
    from karpenter_linode.model.resource import Device, DeviceAttribute, DeviceCapacity

DEVICE_TYPE: Final = object_type(
    "kubernetes.DRADevice",
    {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, DYN)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
        "allowMultipleAllocations": BOOL,
    },
)
_EMPTY: Final[dict[str, Any]] = {}
_MAX_DOMAIN: Final = 63
_MAX_NAME: Final = 32
_MAX_VALUE: Final = 64
_MAX_ENTRIES: Final = 32


@cache
def device_environment() -> Environment:
    """What a device selector may name: the variable ``device``."""
    return Environment({"device": DEVICE_TYPE}, sizes=_largest)


def _largest(path: tuple[str, ...]) -> tuple[int, int] | None:
    """How large the parts of a device may be by the API's own limits; cost estimates rest on it (spec section 3)."""
    match path:
        case ("device", "driver") | ("device", _, "@keys"):
            return 0, _MAX_DOMAIN
        case ("device", "allowMultipleAllocations"):
            return 1, 1
        case ("device", _) | ("device", _, _):
            return 0, _MAX_ENTRIES
        case ("device", _, _, "@keys"):
            return 0, _MAX_NAME
        case ("device", "attributes", _, _):
            return 0, _MAX_VALUE
    return None


@lru_cache(maxsize=4096)
def compiled(text: str) -> Program | CompileError:
    """A selector compiled, or why it is no valid one."""
    try:
        return device_environment().compile(text)
    except CompileError as error:
        return error.with_traceback(None)


class PredictedMap(dict[str, Any]):
    """Attributes of a predicted device in one domain, some of which are published but cannot be known beforehand.

    Any use of an unknown one fails, even asking whether it is there: the real device will have it, so both answers
    would be guesses. Counting and going through the names fail likewise. ``&&`` and ``||`` absorb the failure where the
    rest of the selector decides by itself.
    """

    __slots__ = ("unknown",)

    def __init__(self, known: Mapping[str, Any], unknown: frozenset[str]) -> None:
        super().__init__(known)
        self.unknown = unknown - known.keys()

    def __missing__(self, key: object) -> NoReturn:
        if key in self.unknown:
            raise self._guess(key)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        if key in self.unknown:
            raise self._guess(key)
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        raise self._guess(min(self.unknown))

    def __len__(self) -> int:
        raise self._guess(min(self.unknown))

    @staticmethod
    def _guess(key: object) -> EvaluationError:
        return EvaluationError(f"no such key: {key} {UNPREDICTED}")


class Shape:
    """Everything a selector can see of a device. Equal devices share one shape.

    Args:
        number: identity among the shapes of one ``Shapes``.
        driver: of the slice.
        device: one device of this shape.
        unknown: attributes that the driver will publish but nobody can predict, by domain; empty for a real device.
    """

    __slots__ = ("_input", "device", "driver", "number", "unknown")

    def __init__(self, number: int, driver: str, device: Device, unknown: Mapping[str, frozenset[str]]) -> None:
        self.number = number
        self.driver = driver
        self.device = device
        self.unknown = unknown
        self._input: dict[str, Any] | str | None = None

    def cel_input(self) -> dict[str, Any]:
        """The variables for a selector.

        Raises:
            EvaluationError: an attribute has no usable value; no selector can be evaluated on such a device.
        """
        if self._input is None:
            try:
                self._input = {"device": _cel_device(self.driver, self.device, self.unknown)}
            except EvaluationError as error:
                self._input = error.message
        if isinstance(self._input, str):
            raise EvaluationError(self._input)
        return self._input


class Shapes:
    """Finds the shape of a device."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, Shape] = {}

    def of(self, driver: str, device: Device, unknown: Mapping[str, frozenset[str]] = _EMPTY) -> Shape:
        """The shape of a device; ``unknown`` as in ``Shape``."""
        capacity = {name: item.value for name, item in device.capacity.items()}
        seen = (driver, device.attributes, capacity, device.allow_multiple_allocations, bool(unknown))
        key = codec.encode(seen)
        shape = self._by_key.get(key)
        if shape is None:
            shape = self._by_key[key] = Shape(len(self._by_key), driver, device, unknown)
        return shape


class Selector:
    """One expression with its outcome on every shape it has met. Compiled when it is first applied."""

    __slots__ = ("_outcomes", "_program", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._program: Program | CompileError | None = None
        self._outcomes: dict[int, bool | EvaluationError] = {}

    @property
    def program(self) -> Program:
        """The compiled expression. Raises ``CompileError``."""
        if self._program is None:
            self._program = compiled(self.text)
        if isinstance(self._program, CompileError):
            raise self._program
        return self._program

    def holds(self, shape: Shape) -> bool:
        """Whether devices of this shape are selected.

        Raises:
            CompileError: the text is no valid selector.
            EvaluationError: it fails on this device.
        """
        outcome = self._outcomes.get(shape.number)
        if outcome is None:
            outcome = self._outcomes[shape.number] = self._evaluate(shape)
        if isinstance(outcome, EvaluationError):
            raise outcome
        return outcome

    def explain(self, shape: Shape) -> tuple[Clause, ...]:
        """The clauses of the expression with what each saw on this device. Raises as ``holds``, bar false clauses."""
        return self.program.explain(shape.cel_input())

    def _evaluate(self, shape: Shape) -> bool | EvaluationError:
        program = self.program
        try:
            value = program.evaluate(shape.cel_input())
        except EvaluationError as error:
            return error.with_traceback(None)
        if isinstance(value, bool):
            return value
        kind = type(value).__name__.lower()
        return EvaluationError(f"CEL result of type {kind} could not be converted to bool")


class Selectors:
    """Finds the selector of a text, so that equal texts are evaluated once."""

    def __init__(self) -> None:
        self._by_text: dict[str, Selector] = {}

    def of(self, text: str) -> Selector:
        """The selector of a text; not compiled yet."""
        selector = self._by_text.get(text)
        if selector is None:
            selector = self._by_text[text] = Selector(text)
        return selector


def _cel_device(driver: str, device: Device, unknown: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {}
    for key, attribute in device.attributes.items():
        domain, name = split_name(key, driver)
        attributes.setdefault(domain, {})[name] = _cel_value(name, attribute)
    for domain, names in unknown.items():
        known = attributes.get(domain, _EMPTY)
        if names - known.keys():
            attributes[domain] = PredictedMap(known, names)
    capacity: dict[str, dict[str, DeviceCapacity | Any]] = {}
    for key, amount in device.capacity.items():
        domain, name = split_name(key, driver)
        capacity.setdefault(domain, {})[name] = amount.value
    return {
        "driver": driver,
        "attributes": DefaultMap(attributes, _EMPTY),
        "capacity": DefaultMap(capacity, _EMPTY),
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }


def split_name(key: str, driver: str) -> tuple[str, str]:
    """Domain and name of an attribute or a capacity; a bare name belongs to the driver's domain."""
    domain, slash, name = key.partition("/")
    return (domain, name) if slash else (driver, key)


def _cel_value(name: str, attribute: DeviceAttribute) -> Any:
    for value in (attribute.bool_, attribute.int_, attribute.string):
        if value is not None:
            return value
    if attribute.version is not None:
        return _version(name, attribute.version)
    for values in (attribute.bools, attribute.ints, attribute.strings):
        if values is not None:
            return list(values)
    if attribute.versions is not None:
        return [_version(name, item) for item in attribute.versions]
    raise EvaluationError(f"attribute {name}: unsupported attribute value")


def _version(name: str, text: str) -> SemVer:
    try:
        return SemVer.parse(text)
    except SemVerError as error:
        raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None
