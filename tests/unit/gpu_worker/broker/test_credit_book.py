"""Credits in the ledger: what is written is what the scheduler has, whenever a broker stops and however."""

import itertools

import msgspec
from hypothesis import given, settings, strategies as st

from bulletin.ids import AgentId, ProjectId, UserName
from gpu_worker.broker.credit_book import PERIOD_MS, CreditBook, sum_entries
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import CreditRecord, Record
from gpu_worker.scheduler.events import PastCredits, UseRecalled
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.credits import Credits
from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings
from tests.scheduler.bench import slots

HOUR = 60 * PERIOD_MS
ANN = UserName("ann")


def project(name: str, parent: str | None = None, **fields: int) -> Project:
    return Project(id=ProjectId(name), parent=None if parent is None else ProjectId(parent), **fields)  # type: ignore[arg-type]


PROJECTS = (
    project("lab", guaranteed_milli=3000),
    project("school", guaranteed_milli=2000),
    project("maths", "school", guaranteed_milli=1000),
    project("physics", "school", weight=2),
)
FEWER = (project("lab", guaranteed_milli=1000, weight=3), project("physics"), project("maths"))
NAMES = ("lab", "school", "maths", "physics", "guests")


class Life:
    """A scheduler that is told at once who uses how much, and what a ledger keeps of it. It may end and begin again."""

    def __init__(self) -> None:
        self.written: list[Record] = []
        self.number, self.now_ms = itertools.count(1), 0
        self.begin(PROJECTS, ())

    def begin(self, projects: tuple[Project, ...], past: tuple[PastCredits, ...]) -> None:
        """A broker that knows this of the time before it, with all slots free."""
        self.projects, self.used = projects, dict.fromkeys(NAMES, 0)
        self.scheduler = Scheduler(SchedulerSettings(projects=projects))
        self.state = self.scheduler.state
        self.scheduler.step(UseRecalled((), credits=past), self.now_ms)
        self.credit_book = CreditBook(self.state, f"r{next(self.number)}", past, self.now_ms)
        self.state.join(self.state.slot_catalog.make_node(AgentId("a"), "a", slots(6), 1, 0, 0))

    def end(self) -> None:
        """The next broker has what is in the ledger, and no more."""
        self.begin(self.projects, tuple(self.kept()))

    def kept(self) -> list[PastCredits]:
        entries = [one for one in self.written if isinstance(one, CreditRecord)]
        return sum_entries((one.project, one.own_users, one.cause, one.gpu_ms) for one in entries)

    def later(self, ms: int) -> None:
        self.now_ms += ms
        self.state.accounts.now_ms = self.now_ms

    def use(self, name: str, gpus: int) -> None:
        """From now on a project's own users use so many."""
        cost = (gpus - self.used[name]) * 1000
        self.used[name] = gpus
        if cost:
            self.state.accounts.use(ProjectId(name), ANN, "interactive", abs(cost), 1 if cost > 0 else -1)

    def change(self, projects: tuple[Project, ...]) -> None:
        for name in NAMES:
            self.use(name, 0)
        self.projects = projects
        self.state.change_settings(SchedulerSettings(projects=projects))

    def has(self) -> dict[tuple[str, bool], Credits]:
        """What the scheduler would say, of whoever has anything."""
        found = {}
        for account in self.state.accounts.by_id.values():
            found[account.project.id, False] = account.trader.credits(self.now_ms)
            found[account.project.id, True] = account.members.credits(self.now_ms)
        return {whose: one for whose, one in found.items() if one != Credits()}

    def adds_up(self) -> None:
        """Now that all is written, the ledger's sums are the scheduler's, to the millisecond."""
        assert {(one.project, one.own_users): one.credits for one in self.kept()} == self.has()
        names = [one.credit for one in self.written if isinstance(one, CreditRecord)]
        assert len(names) == len(set(names)), "two entries of one name would be one in the ledger"


def lent(ms: int) -> Life:
    """Guests use all six GPUs, of which three are the lab's and two the school's."""
    life = Life()
    life.use("guests", 6)
    life.later(ms)
    return life


def entry(project: str, cause: str, gpu_ms: int, at_ms: int, counterpart: str | None, **fields: object) -> CreditRecord:
    return CreditRecord(
        credit="", project=project, cause=cause, gpu_ms=gpu_ms, at_ms=at_ms, counterpart=counterpart, **fields
    )  # type: ignore[arg-type]


def unnamed(entries: list[CreditRecord]) -> list[CreditRecord]:
    return [msgspec.structs.replace(one, credit="") for one in entries]


def test_a_minute_has_an_entry_for_each_that_earned_or_spent_and_nothing_is_said_twice() -> None:
    life = lent(PERIOD_MS - 1)
    assert life.credit_book.take_period(life.now_ms) == []
    life.later(1)
    entries = life.credit_book.take_period(life.now_ms)
    assert unnamed(entries) == [
        entry("lab", "lent", 3 * PERIOD_MS, PERIOD_MS, "guests"),
        entry("school", "lent", 2 * PERIOD_MS, PERIOD_MS, "guests"),
        entry("guests", "borrowed", -5 * PERIOD_MS, PERIOD_MS, None),
    ]
    assert life.credit_book.take_period(life.now_ms) == life.credit_book.take_entries() == []
    life.later(10)
    assert [one.gpu_ms for one in life.credit_book.take_entries()] == [30, 20, -50]
    assert life.credit_book.take_period(life.now_ms) == []


def test_who_neither_lends_nor_borrows_has_no_entry() -> None:
    life = Life()
    life.use("lab", 3)
    life.use("guests", 1)
    life.later(HOUR)
    assert life.credit_book.take_entries() == []


def test_what_a_projects_own_users_lend_to_the_projects_inside_it_is_theirs() -> None:
    life = Life()
    life.use("physics", 1)
    life.later(HOUR)
    assert unnamed(life.credit_book.take_entries()) == [
        entry("school", "lent", HOUR // 2, HOUR, "physics", own_users=True),
        entry("maths", "lent", HOUR // 2, HOUR, "physics"),
        entry("physics", "borrowed", -HOUR, HOUR, None),
    ]


def test_what_is_earned_above_the_most_is_an_entry_that_takes_it_away() -> None:
    life = lent(2 * HOUR)
    forgotten = [one for one in unnamed(life.credit_book.take_entries()) if one.cause in ("forgotten", "forgiven")]
    assert forgotten == [
        entry("lab", "forgotten", -2 * HOUR, 2 * HOUR, None),
        entry("guests", "forgiven", 6 * HOUR, 2 * HOUR, None),
    ]


def test_where_the_tree_changed_meanwhile_nobody_is_named() -> None:
    life = lent(PERIOD_MS)
    life.change((project("lab", guaranteed_milli=3000),))
    assert {one.counterpart for one in life.credit_book.take_entries()} == {None}
    life.use("guests", 6)
    life.later(PERIOD_MS)
    assert {one.counterpart for one in life.credit_book.take_entries()} == {"lab", "guests"}


def test_a_broker_that_is_killed_loses_the_minute_that_ran_and_counts_nothing_twice() -> None:
    life = lent(PERIOD_MS)
    first = life.credit_book.take_period(life.now_ms)
    life.written += first
    life.later(30_000)
    life.end()
    assert life.has()["lab", False] == Credits(earned=3 * PERIOD_MS)
    assert life.credit_book.take_entries() == []
    life.use("guests", 6)
    life.later(PERIOD_MS)
    second = life.credit_book.take_period(life.now_ms)
    assert [one.gpu_ms for one in second] == [one.gpu_ms for one in first]
    life.written += second
    life.adds_up()


def test_what_a_smaller_weight_cuts_at_a_restart_is_an_entry_too() -> None:
    life = Life()
    past = PastCredits(ProjectId("physics"), Credits(earned=8 * HOUR))
    life.begin((project("physics", weight=1),), (past,))
    assert unnamed(life.credit_book.take_entries()) == [entry("physics", "forgotten", -4 * HOUR, 0, None)]


def test_the_ledger_has_the_balances_and_each_entry(ledger: Ledger) -> None:
    life = lent(2 * HOUR)
    life.use("guests", 0)
    life.use("physics", 2)
    life.later(HOUR)
    entries = life.credit_book.take_entries()
    assert ledger.record(entries, at_ms=0) == entries
    assert ledger.record(entries, at_ms=0) == []
    assert {(one.project, one.own_users): one.credits for one in ledger.past_credits()} == life.has()
    assert ledger.past_credits(since_ms=life.now_ms + 1) == ledger.past_credits(until_ms=life.now_ms) == []
    assert ledger.balances() == {"guests": -4 * HOUR, "lab": 4 * HOUR, "school": 4 * HOUR} | {
        name: life.has()[name, False].balance for name in ("maths", "physics")
    }
    assert sorted(ledger.credits(), key=lambda one: one.credit) == entries
    assert list(ledger.credits(ProjectId("lab"))) == [one for one in entries if one.project == "lab"]


MOVES = st.one_of(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 5)),
    st.tuples(st.sampled_from(NAMES), st.integers(0, 5)),
    st.sampled_from((1, 999, 7_777, PERIOD_MS, 20 * PERIOD_MS, 3 * HOUR)),
    st.sampled_from(("tick", "tick", "stop", "kill")),
    st.sampled_from((PROJECTS, FEWER)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(MOVES, min_size=5, max_size=40))
def test_in_any_history_the_entries_are_what_the_scheduler_has(moves: list[object]) -> None:
    life = Life()
    for move in moves:
        match move:
            case int():
                life.later(move)
            case "tick":
                told = life.credit_book.take_period(life.now_ms)
                life.written += told
                if told:
                    life.adds_up()
            case "stop" | "kill":
                if move == "stop":
                    life.written += life.credit_book.take_entries()
                    life.adds_up()
                life.end()
                assert {whose: one.earned - one.spent for whose, one in life.has().items()} == {
                    (one.project, one.own_users): one.credits.earned - one.credits.spent for one in life.kept()
                }
            case (str(name), int(gpus)):
                life.use(name, gpus)
            case tuple():
                life.change(move)
    life.written += life.credit_book.take_entries()
    life.adds_up()
    balances = [one.credits.balance for one in life.kept()]
    whole = [one.credits.earned - one.credits.spent for one in life.kept()]
    rounded = (len(moves) + 1) * len(balances)
    assert abs(sum(whole)) <= rounded, "what one earns others spend"
