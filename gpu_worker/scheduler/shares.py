"""How GPUs are divided: water-filling, whole GPUs and decayed use. Arithmetic only, exact in whole numbers."""

from collections.abc import Sequence
from fractions import Fraction

import msgspec

HOUR_MS = 3_600_000
#: Use counts for half after a week, so what is used later counts for more: of 65,536 in each hour of a week.
_GROWTH = [round(65_536 * 2 ** (hour / 168)) for hour in range(168)]


class Claim(msgspec.Struct, frozen=True):
    """What one project brings to the division among siblings. Amounts are thousandths of a GPU."""

    guaranteed: int
    demand: int  #: what it uses and what it waits for, up to its limit
    weight: int
    priority: int = 0


def divide(amount: int, claims: Sequence[Claim]) -> list[Fraction]:
    """Each claim's share of an amount.

    Everybody first gets what is guaranteed, as far as it is asked for; the rest is poured by priority, the highest
    first, and by weight among equals, until it is gone or nobody wants more. Where not even the guarantees fit, they
    are cut in proportion.

    Parameters
    ----------
    amount
        What there is, in thousandths of a GPU.
    claims
        Length P.

    Returns
    -------
    list of Fraction
        Length P. The sum is the amount, or all demand where that is less.
    """
    shares = [Fraction(min(claim.guaranteed, claim.demand)) for claim in claims]
    promised = sum(shares, Fraction())
    if promised >= amount:
        return [share * amount / promised if promised else share for share in shares]
    left = amount - promised
    for priority in sorted({claim.priority for claim in claims}, reverse=True):
        left -= _pour(left, [n for n, claim in enumerate(claims) if claim.priority == priority], claims, shares)
    return shares


def _pour(amount: Fraction, among: Sequence[int], claims: Sequence[Claim], shares: list[Fraction]) -> Fraction:
    """Raise these shares by weight up to their demand; how much that took.

    Those that are full soonest come first, so each one is looked at once.
    """
    thirsty = [n for n in among if claims[n].demand > shares[n]]
    thirsty.sort(key=lambda n: ((claims[n].demand - shares[n]) / claims[n].weight, n))
    weight, left = sum(claims[n].weight for n in thirsty), amount
    for n in thirsty:
        part = min(claims[n].demand - shares[n], left * claims[n].weight / weight)
        shares[n] += part
        left -= part
        weight -= claims[n].weight
    return amount - left


def whole(shares: Sequence[Fraction], unit: int) -> list[int]:
    """Shares in whole units that add up to their sum in whole units: the largest remainder first, then the first.

    Parameters
    ----------
    shares
        Length P, in thousandths of a GPU.
    unit
        What cannot be divided: 1000 for a GPU.

    Returns
    -------
    list of int
        Length P, multiples of the unit. Each is less than one unit from its share.
    """
    rounded = [int(share // unit) * unit for share in shares]
    missing = (int(sum(shares)) - sum(rounded)) // unit
    remainders = sorted(range(len(shares)), key=lambda n: (rounded[n] - shares[n], n))
    for n in remainders[:missing]:
        rounded[n] += unit
    return rounded


class Used(msgspec.Struct):
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
        """What is left of it at this time, in the unit of `add`."""
        return self.amount // _weight(now_ms)


def _weight(now_ms: int) -> int:
    weeks, hours = divmod(now_ms // HOUR_MS, 168)
    return _GROWTH[hours] << weeks
