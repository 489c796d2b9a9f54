"""Who is covered by a guarantee, counted afresh after each step, for whoever plays a story."""

from itertools import count

from bulletin.ids import LeaseId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.coverage import Coverage
from gpu_worker.scheduler.actions import Action
from gpu_worker.scheduler.leases.life import Phase
from tests.scheduler.bench import Bench
from tests.scheduler.quota_bench import Quotas


class Watch:
    """Follows a bench, and works out all of it again after each event."""

    def __init__(self) -> None:
        self.coverage = Coverage()
        self.borrowed: set[str] = set()  # as told, change by change
        self.starts: dict[LeaseId, tuple[int, int]] = {}
        self.numbers = count()

    def see(self, bench: Bench) -> None:
        state = bench.scheduler.state
        turned = self.coverage.follow(state.accounts, state.leases, state.touched)
        using = {
            lease.id: lease
            for lease in state.leases.values()
            if lease.phase in {Phase.GRANTED, Phase.BUSY, Phase.RECLAIMING} and lease.cost
        }
        assert all((name in self.borrowed) == is_in_quota for name, is_in_quota in turned.items()), "news is new"
        self.borrowed = {name for name in self.borrowed | set(turned) if name in using and not turned.get(name)}
        self.starts = {name: start for name, start in self.starts.items() if name in using}
        for name in state.touched:
            if name in using:
                self.starts.setdefault(name, (using[name].since_ms, next(self.numbers)))

        def left_over(account: Account) -> tuple[list[LeaseId], int]:
            """What stays uncovered in a project and inside it, and how much is covered there."""
            own = [name for name, lease in using.items() if lease.project == account.project.id]
            part = account.guaranteed - sum(child.guaranteed for child in account.children.values())
            wanted, covered = [], 0  # its own users are a side of their own there
            for name in sorted(own, key=self.starts.__getitem__):
                fits = covered + using[name].cost <= part
                covered += using[name].cost if fits else 0
                wanted += [] if fits else [name]
            for child in account.children.values():
                uncovered, inside = left_over(child)
                wanted += uncovered
                covered += inside
            rest = []
            for name in sorted(wanted, key=self.starts.__getitem__):
                fits = covered + using[name].cost <= account.guaranteed
                covered += using[name].cost if fits else 0
                rest += [] if fits else [name]
            assert covered <= account.guaranteed
            assert rest == [] or account.used > account.guaranteed, "who stays within a guarantee is in quota"
            return rest, covered

        expected = {name for top in state.accounts.top.values() for name in left_over(top)[0]}
        assert self.borrowed == expected
        for lease in state.leases.values():
            if lease.id in using:
                assert self.coverage.is_in_quota(state.accounts, lease) == (lease.id not in expected)


class Watched(Quotas):
    """A bench of quotas, under watch."""

    def __init__(self, *projects, **how) -> None:  # type: ignore[no-untyped-def]
        self.watch = Watch()
        super().__init__(*projects, **how)

    def say(self, event: ev.Event) -> list[Action]:
        actions = super().say(event)
        self.watch.see(self)
        return actions

    @property
    def borrowed(self) -> list[str]:
        return sorted(self.watch.borrowed)
