"""The referee's books of credits: in fractions, over all projects, at every event. Knows the promise, not the code."""

from dataclasses import dataclass, field
from fractions import Fraction

from gpu_worker.scheduler.events import PastCredits
from tests.scheduler.project_book import ProjectBook
from tests.scheduler.tenancy import USING

#: ("project", its name), or ("members", the name of the project that they are in).
Who = tuple[str, str]
STEP = 6 * 60_000 * 1000


@dataclass
class CreditBook:
    projects: ProjectBook
    earned: dict[Who, Fraction] = field(default_factory=dict)  # thousandths of a GPU, times milliseconds
    spent: dict[Who, Fraction] = field(default_factory=dict)
    balance: dict[Who, Fraction] = field(default_factory=dict)  # what counts of it
    forgotten: dict[Who, Fraction] = field(default_factory=dict)
    forgiven: dict[Who, Fraction] = field(default_factory=dict)

    def count(self, now_ms: int) -> None:
        """What was traded since the event before this one, while nothing changed."""
        used = self.projects.amounts(*USING)
        names = {key[1] for key in used if key[0] == "project"} | {one.id for one in self.projects.settings.projects}
        parents = {self.projects.project(name).parent for name in names}
        for parent in parents:
            surplus: dict[Who, int] = {}
            for name in names:
                if self.projects.project(name).parent == parent:
                    surplus["project", name] = used.get(("project", name), 0) - self.projects.guaranteed(name)
            free = 0
            if parent is None:
                free = max(0, self.projects.pool.offered() - sum(self.projects.guaranteed(who[1]) for who in surplus))
            else:
                rest = used.get(("project", parent), 0) - self.projects.guaranteed(parent) - sum(surplus.values())
                surplus["members", parent] = rest
            self.trade(surplus, free, now_ms - self.projects.now_ms)

    def trade(self, surplus: dict[Who, int], free: int, passed_ms: int) -> None:
        idle = sum(-one for one in surplus.values() if one < 0)
        borrowed = sum(one for one in surplus.values() if one > 0)
        lent = max(0, min(idle, borrowed - free))
        for who, one in surplus.items():
            if lent and one:
                part = abs(one) * Fraction(lent * passed_ms, idle if one < 0 else borrowed)
                book = self.earned if one < 0 else self.spent
                book[who] = book.get(who, Fraction(0)) + part
                self.balance[who] = self.balance.get(who, Fraction(0)) + (part if one < 0 else -part)
        self.forget()

    def forget(self) -> None:
        """What is above four GPU-hours for its weight, or as far below none, is not counted on."""
        for who in self.balance:
            most, wanted = 40 * STEP * self.weight(who), self.balance[who]
            self.balance[who] = max(Fraction(-most), min(Fraction(most), wanted))
            if wanted != self.balance[who]:
                book = self.forgotten if wanted > 0 else self.forgiven
                book[who] = book.get(who, Fraction(0)) + abs(wanted - self.balance[who])

    def recall(self, past: PastCredits) -> None:
        """What was earned and spent before anybody looked."""
        who = ("members" if past.own_users else "project", past.project)
        books = self.earned, self.spent, self.forgotten, self.forgiven
        told = past.credits.earned, past.credits.spent, past.credits.forgotten, past.credits.forgiven
        for book, gpu_ms, sign in zip(books, told, (1, -1, -1, 1), strict=True):
            book[who] = book.get(who, Fraction(0)) + 1000 * gpu_ms
            self.balance[who] = self.balance.get(who, Fraction(0)) + sign * 1000 * gpu_ms
        self.forget()

    def weight(self, who: Who) -> int:
        return self.projects.project(who[1]).weight if who[0] == "project" else 1
