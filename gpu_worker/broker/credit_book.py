"""What projects earn and spend, as entries for the ledger. Pure.

Each entry is what one project earned, or spent, since the last time that entries were made. Together they are always
what the scheduler has: a broker that starts again is told their sums, and goes on.
"""

from collections.abc import Iterable, Iterator

from bulletin.ids import ProjectId
from gpu_worker.broker.records import Cause, CreditRecord
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.events import PastCredits
from gpu_worker.scheduler.policy.credits import Credits, Trader
from gpu_worker.scheduler.state import State

#: At most one entry of a kind is made for a project in so long.
PERIOD_MS = 60_000
#: Whose credits: a project's among its siblings, or those of its own users among the projects inside it.
_Whose = tuple[ProjectId, bool]
#: Which way a cause counts in a balance, in the order of the fields of `Credits`.
_SIGNS: dict[Cause, int] = {"lent": 1, "borrowed": -1, "forgotten": -1, "forgiven": 1}


class CreditBook:
    """Follows one scheduler. What it returns is to be written; it is never said again."""

    def __init__(self, state: State, run: str, past: Iterable[PastCredits], now_ms: int) -> None:
        """Take the name of this broker's life (`run`), and what the ledger has as the scheduler knows it (`past`)."""
        self._state, self._run, self._period = state, run, now_ms // PERIOD_MS
        self._written: dict[_Whose, Credits] = {(one.project, one.own_users): one.credits for one in past}
        self._accounts = state.accounts
        self._number = 0

    def take_period(self, now_ms: int) -> list[CreditRecord]:
        """Take the entries of the minute that ended; none while it is not over."""
        if now_ms // PERIOD_MS == self._period:
            return []
        self._period = now_ms // PERIOD_MS
        return self.take_entries()

    def take_entries(self) -> list[CreditRecord]:
        """Make entries of all that is in none yet, up to the scheduler's last step."""
        accounts, found = self._state.accounts, list[CreditRecord]()
        is_same_tree = accounts is self._accounts
        self._accounts = accounts
        for market in _markets(accounts):
            now = {whose: trader.credits(accounts.now_ms) for whose, trader in market.items()}
            new = {whose: _since(self._written.get(whose, Credits()), one) for whose, one in now.items()}
            sides: dict[Cause, list[ProjectId]] = {
                "lent": [project for (project, _), one in new.items() if one.spent],
                "borrowed": [project for (project, _), one in new.items() if one.earned],
            }
            for (project, own_users), one in new.items():
                for cause, gpu_ms in _by_cause(one).items():
                    others = sides.get(cause, []) if is_same_tree else []
                    found.append(
                        CreditRecord(
                            credit=f"{self._run}-{self._number:09}",
                            project=project,
                            own_users=own_users,
                            gpu_ms=gpu_ms,
                            at_ms=accounts.now_ms,
                            cause=cause,
                            counterpart=others[0] if len(others) == 1 else None,
                        )
                    )
                    self._number += 1
            self._written |= now
        return found


def sum_entries(entries: Iterable[tuple[ProjectId, bool, Cause, int]]) -> list[PastCredits]:
    """Add entries up, by project, own users and cause, to what a scheduler is told."""
    sums: dict[_Whose, dict[Cause, int]] = {}
    for project, own_users, cause, gpu_ms in entries:
        causes = sums.setdefault((project, own_users), {})
        causes[cause] = causes.get(cause, 0) + gpu_ms
    return [
        PastCredits(
            project,
            Credits(*(_SIGNS[cause] * causes.get(cause, 0) for cause in _SIGNS)),
            own_users=own_users,
        )
        for (project, own_users), causes in sums.items()
    ]


def _markets(accounts: Accounts) -> Iterator[dict[_Whose, Trader]]:
    """Yield those who trade with each other, market by market."""
    yield {(account.project.id, False): account.trader for account in accounts.top.values()}
    for account in accounts.by_id.values():
        children = [one for one in account.children.values() if not one.project.users]  # reservations keep none
        inside = {(child.project.id, False): child.trader for child in children}
        yield {(account.project.id, True): account.members, **inside}


def _since(before: Credits, now: Credits) -> Credits:
    return Credits(
        now.earned - before.earned,
        now.spent - before.spent,
        now.forgotten - before.forgotten,
        now.forgiven - before.forgiven,
    )


def _by_cause(new: Credits) -> dict[Cause, int]:
    """Give each cause's amount the sign that it has in a balance; leave out what is nothing."""
    amounts = (new.earned, new.spent, new.forgotten, new.forgiven)
    return {cause: sign * amount for (cause, sign), amount in zip(_SIGNS.items(), amounts, strict=True) if amount}
