"""Who would pay what: every machine from its creation to its end, by the started hour."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

_HOUR = timedelta(hours=1)


class Charge(Struct, frozen=True):
    """One machine's line on the invoice.

    Args:
        instance: Linode id.
        label: Linode label.
        plan: plan id.
        region: region id.
        price: nano-dollars an hour.
        start: creation.
        end: end, or None while it exists.
    """

    instance: int
    label: str
    plan: str
    region: str
    price: int
    start: datetime
    end: datetime | None = None

    def hours(self, now: datetime) -> int:
        """Started hours."""
        return max(1, -((self.start - (self.end or now)) // _HOUR))

    def cost(self, now: datetime) -> int:
        """Nano-dollars so far."""
        return self.hours(now) * self.price


class BillingLedger:
    """Every charge there ever was, in the order of creation."""

    def __init__(self) -> None:
        self._charges: dict[int, Charge] = {}

    def open(self, charge: Charge) -> None:
        """A machine begins."""
        self._charges[charge.instance] = charge

    def close(self, instance: int, at: datetime) -> None:
        """A machine ends."""
        self._charges[instance] = replace(self._charges[instance], end=at)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges."""
        return tuple(self._charges.values())

    def running(self) -> tuple[Charge, ...]:
        """Machines that are still paid for; empty means that nothing is left billed."""
        return tuple(charge for charge in self._charges.values() if charge.end is None)

    def total(self, now: datetime) -> int:
        """Nano-dollars of everything so far."""
        return _sum(self._charges.values(), now)


def _sum(charges: Iterable[Charge], now: datetime) -> int:
    return sum(charge.cost(now) for charge in charges)
