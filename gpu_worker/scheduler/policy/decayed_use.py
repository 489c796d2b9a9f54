"""Use in the past, which decays: who used more lately has less of a right to what is left. Exact, in whole numbers."""

import msgspec

from bulletin.units import HOUR_MS

#: Use counts for half after a week, so what is used later counts for more: of 65,536 in each hour of a week.
_GROWTH = [round(65_536 * 2 ** (hour / 168)) for hour in range(168)]


class DecayedUse(msgspec.Struct):
    """Use in the past, which counts for less the longer it is ago: half after a week, by the hour.

    Nothing is taken away from what is old: what is new counts for more. So amounts compare as they are, at any time,
    and only their ratios mean something.
    """

    amount: int = 0

    def add(self, amount: int, now_ms: int) -> None:
        """Use that ends now."""
        self.amount += amount * _weight(now_ms)

    def take(self, amount: int, now_ms: int) -> int:
        """Take back use that ended now, or a little before, as far as there is any: so much of `amount` is less."""
        taken = min(self.amount, amount * _weight(now_ms))
        self.amount -= taken
        return taken

    def at(self, now_ms: int) -> int:
        """Compute what is left of it at this time, in the unit of `add`."""
        return self.amount // _weight(now_ms)


def _weight(now_ms: int) -> int:
    weeks, hours = divmod(now_ms // HOUR_MS, 168)
    return _GROWTH[hours] << weeks
