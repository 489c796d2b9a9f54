"""Credits: what a project earns while others use what it is guaranteed, and spends while it uses what others are.

After Karma (Vuppalapati et al., OSDI 2023, section 3). Siblings trade: of what all of them together leave of their
guarantees, as much as others in fact use is *lent*. Each one that leaves some earns its part of that, and each one that
uses more than its guarantee spends its part: what one earns others spend. Nothing is earned by idleness alone, and what
nobody is guaranteed costs nobody anything.
"""

from math import lcm

import msgspec

from bulletin.units import HOUR_MS
from gpu_worker.scheduler.policy.projects import GPU_MILLI

#: Sums are in so many parts of a thousandth of a GPU for a millisecond. What is divided among up to 24 comes out whole;
#: else a part is lost now and then, of five billion.
PARTS = lcm(*range(1, 25))
#: A GPU for a millisecond, in parts.
_GPU_MS = PARTS * GPU_MILLI
#: Credits that differ by less than a step, a tenth of a GPU-hour for each unit of weight, are alike.
STEP = HOUR_MS * GPU_MILLI * PARTS // 10
#: Steps that count at most, for and against: four GPU-hours.
MOST_STEPS = 40


class Credits(msgspec.Struct, frozen=True):
    """What a project ever earned and spent: GPUs times milliseconds, each sum rounded down. None of them ever falls."""

    earned: int = 0
    spent: int = 0
    forgotten: int = 0  #: of what it earned, what was above the most that counts
    forgiven: int = 0  #: of what it spent, what was as far below none

    @property
    def balance(self) -> int:
        """What counts of it."""
        return self.earned - self.spent - self.forgotten + self.forgiven


class Market(msgspec.Struct, eq=False):
    """Where siblings trade. Two running sums say what everybody's part is, so that a change costs no walk."""

    unpromised: int = 0  #: what there is beyond all guarantees: used first, and for nothing
    idle: int = 0  #: what all leave of their guarantees
    borrowed: int = 0  #: what all use above theirs
    earning: int = 0  #: what each idle thousandth of a GPU earned so far, in parts
    spending: int = 0  #: what each borrowed one cost
    counted_ms: int = 0

    def count(self, now_ms: int) -> None:
        """Bring the sums up to this time. Needed before anything changes."""
        self.earning, self.spending = self.sums(now_ms)
        self.counted_ms = now_ms

    def sums(self, now_ms: int) -> tuple[int, int]:
        """Compute what each idle thousandth of a GPU earned until this time, and each borrowed one cost."""
        lent = min(self.idle, self.borrowed - self.unpromised)  # what of the idle guarantees is in fact used by others
        if lent <= 0:
            return self.earning, self.spending
        passed = (now_ms - self.counted_ms) * PARTS * lent
        return self.earning + passed // self.idle, self.spending + passed // self.borrowed


class Trader(msgspec.Struct, eq=False):
    """A project among its siblings, or the users of the project that they are in."""

    market: Market
    weight: int = 1
    surplus: int = 0  #: what it uses above its guarantee; below 0 it leaves some
    earned: int = 0  #: all that it ever earned, in parts
    spent: int = 0
    forgotten: int = 0  #: what it earned above the most
    forgiven: int = 0  #: what it spent as far below 0
    balance: int = 0  #: what counts of it in the order: never above the most, nor as far below 0
    standing: int = 0  #: the balance in steps, for its weight: -40 to 40; less than a step is none
    up: int | None = STEP - 1  #: so much may it earn before its standing changes; None is anything
    down: int | None = STEP - 1  #: and so much may it spend
    earning_at: int = 0  #: its market's sums when they were last counted for it
    spending_at: int = 0

    def credits(self, now_ms: int) -> Credits:
        """Sum up what it earned and spent until this time. Asking counts nothing: no later sum depends on who asked."""
        earning, spending = self.market.sums(now_ms)
        earned = max(0, -self.surplus) * (earning - self.earning_at)
        spent = max(0, self.surplus) * (spending - self.spending_at)
        over, under = self._beyond(self.balance + earned - spent)
        sums = self.earned + earned, self.spent + spent, self.forgotten + over, self.forgiven + under
        return Credits(*(one // _GPU_MS for one in sums))

    def recall(self, past: Credits) -> None:
        """So much was earned and spent before it was there."""
        self.earned += past.earned * _GPU_MS
        self.spent += past.spent * _GPU_MS
        self.forgotten += past.forgotten * _GPU_MS
        self.forgiven += past.forgiven * _GPU_MS
        self.pay(past.balance * _GPU_MS)

    def at(self, now_ms: int) -> "Trader":
        """Itself, counted up to this time. Between two changes of its own it only earns, or only spends."""
        market = self.market
        if market.counted_ms != now_ms:
            market.count(now_ms)
        if self.earning_at != market.earning or self.spending_at != market.spending:
            if self.surplus < 0:
                earned = -self.surplus * (market.earning - self.earning_at)
                self.earned += earned
                self.pay(earned)
            elif self.surplus > 0:
                spent = self.surplus * (market.spending - self.spending_at)
                self.spent += spent
                self.pay(-spent)
            self.earning_at, self.spending_at = market.earning, market.spending
        return self

    def standing_at(self, now_ms: int) -> int:
        """Its standing at this time: most of the time the one that it had, which costs a comparison."""
        market = self.market
        if market.counted_ms != now_ms:
            market.count(now_ms)
        if self.surplus > 0:
            amount, room = self.surplus * (market.spending - self.spending_at), self.down
        else:
            amount, room = -self.surplus * (market.earning - self.earning_at), self.up
        return self.standing if room is None or amount <= room else self.at(now_ms).standing

    def next_step_ms(self, now_ms: int) -> int | None:
        """When its standing changes if nothing else does, or a little before; None is never."""
        market, surplus = self.market, self.surplus
        if market.counted_ms != now_ms:
            market.count(now_ms)
        if surplus > 0:
            amount, room, of = surplus * (market.spending - self.spending_at), self.down, market.borrowed
        elif surplus < 0:
            amount, room, of = -surplus * (market.earning - self.earning_at), self.up, market.idle
        else:
            return None
        if room is not None and amount > room:
            return self.at(now_ms).next_step_ms(now_ms)
        lent = min(market.idle, market.borrowed - market.unpromised)
        if lent <= 0 or room is None:
            return None
        return now_ms + max(1, (room - amount) * of // (abs(surplus) * PARTS * lent))

    def change(self, surplus: int, now_ms: int) -> None:
        """From now on it uses so much above its guarantee or, below 0, leaves so much of it."""
        before = self.at(now_ms).surplus
        self.market.idle += max(0, -surplus) - max(0, -before)
        self.market.borrowed += max(0, surplus) - max(0, before)
        self.surplus = surplus

    def pay(self, amount: int) -> None:
        """Add so much to the balance; what is above the most is forgotten."""
        over, under = self._beyond(self.balance + amount)
        self.balance += amount - over + under
        self.forgotten += over
        self.forgiven += under
        step = STEP * self.weight
        most = MOST_STEPS * step
        steps = abs(self.balance) // step
        self.standing = steps if self.balance >= 0 else -steps
        self.up = None if self.balance == most else _room(self.balance, step)
        self.down = None if self.balance == -most else _room(-self.balance, step)

    def inherit(self, before: "Trader") -> None:
        """Go on from there, with another weight."""
        self.earned, self.spent, self.balance = before.earned, before.spent, before.balance
        self.forgotten, self.forgiven = before.forgotten, before.forgiven
        self.pay(0)

    def _beyond(self, balance: int) -> tuple[int, int]:
        """How far a balance is above the most, and how far below as much less than none."""
        most = MOST_STEPS * STEP * self.weight
        return max(0, balance - most), max(0, -most - balance)


def _room(balance: int, step: int) -> int:
    """How much more a balance may have before it is in another whole step; what is less than one step is none."""
    if balance < 0 and -balance >= step:
        return -balance % step
    return step - balance % step - 1 if balance >= 0 else step - balance - 1
