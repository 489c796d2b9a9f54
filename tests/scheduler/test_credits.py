"""Credits, as a reader of Karma (OSDI 2023) would try them: who earns, who spends, and whom they put first."""

from fractions import Fraction

import msgspec
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from bulletin.ids import ProjectId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, Grant, Reclaim
from gpu_worker.scheduler.policy.credits import PARTS, STEP, Credits, Market, Trader
from gpu_worker.scheduler.policy.projects import Project
from tests.scheduler.bench import MINUTE, SETTINGS, granted, project, slots
from tests.scheduler.quota_bench import Quotas

HOUR = 60 * MINUTE
LONG = tuple(msgspec.structs.replace(one, walltime_ms=1000 * HOUR) for one in SETTINGS.qos)


class Pool(Quotas):
    """Quotas whose credits can be asked for, in whole minutes of a GPU."""

    def __init__(self, *projects: Project) -> None:
        super().__init__(*projects, qos=LONG)

    def earned(self, name: str) -> int:
        return self.scheduler.state.accounts.credits(ProjectId(name)).earned // MINUTE

    def spent(self, name: str) -> int:
        return self.scheduler.state.accounts.credits(ProjectId(name)).spent // MINUTE

    def change(self, *projects: Project) -> list[Action]:
        return self.say(ev.SettingsChanged(msgspec.structs.replace(SETTINGS, projects=projects, qos=LONG)))


def lent(ms: int, *projects: Project, gpus: int = 3) -> Pool:
    """One GPU is guaranteed to the lab, and guests use it and all others for some time."""
    pool = Pool(project("lab", guaranteed_milli=1000), *projects)
    pool.join("a", slots(gpus))
    pool.busy(*(f"guests.eve{n}" for n in range(gpus)))
    pool.later(ms)
    return pool


def test_who_lends_earns_what_others_use_and_who_borrows_spends_it() -> None:
    pool = lent(2 * HOUR)
    assert (pool.earned("lab"), pool.spent("lab")) == (120, 0)
    assert (pool.earned("guests"), pool.spent("guests")) == (0, 120)  # the other two are nobody's, and cost nothing
    pool.replay()


def test_a_guarantee_that_nobody_uses_earns_nothing() -> None:
    pool = Pool(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(3))
    pool.later(2 * HOUR)
    pool.busy("guests.eve", "guests.tom")
    pool.later(2 * HOUR)
    assert (pool.earned("lab"), pool.spent("guests")) == (0, 0)  # what is beyond all guarantees is used first
    pool.busy("guests.kim")
    pool.later(HOUR)
    assert (pool.earned("lab"), pool.spent("guests")) == (60, 60)
    pool.replay()


def test_what_is_beyond_all_guarantees_is_less_when_a_node_is_drained() -> None:
    pool = Pool(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1))
    pool.join("b", slots(1))
    pool.busy("guests.eve")
    pool.drain("b")
    pool.later(HOUR)
    assert pool.earned("lab") == 60
    pool.drain("b", undo=True)
    pool.later(HOUR)
    assert pool.earned("lab") == 60
    pool.drain("a")  # eve still runs there
    pool.later(HOUR)
    assert pool.earned("lab") == 60
    pool.replay()


def test_what_is_beyond_all_guarantees_is_less_when_a_node_is_lost() -> None:
    pool = Pool(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1))
    pool.join("b", slots(1))
    pool.busy("guests.eve")
    pool.later(HOUR)
    assert pool.earned("lab") == 0
    pool.lose("b")
    pool.later(HOUR)
    assert pool.earned("lab") == 60
    pool.replay()


def test_two_lenders_earn_by_what_they_leave_and_two_borrowers_spend_by_what_they_take() -> None:
    pool = Pool(project("lab", guaranteed_milli=1000), project("chair", guaranteed_milli=3000))
    pool.join("a", slots(4))
    pool.busy("guests.eve", "club.tom")
    pool.later(2 * HOUR)
    assert [pool.earned(name) for name in ("lab", "chair")] == [60, 180]  # of two GPUs a quarter, and the rest
    assert [pool.spent(name) for name in ("guests", "club")] == [120, 120]
    pool.replay()


def test_cells_on_cpu_slots_cost_nothing_beside_gpus() -> None:
    pool = Pool(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1) + slots(2, "cpu"))
    pool.busy("guests.eve", "guests.tom", gpus=0)
    pool.later(HOUR)
    assert (pool.earned("lab"), pool.spent("guests")) == (0, 0)
    pool.replay()


def test_parts_of_a_project_trade_with_each_other_and_with_its_own_users() -> None:
    pool = Pool(
        project("school", guaranteed_milli=3000),
        project("maths", "school", guaranteed_milli=1000),
        project("physics", "school", guaranteed_milli=1000),
        project("lab", guaranteed_milli=1000),
    )
    pool.join("a", slots(4))
    pool.busy("physics.ann", "physics.bob", "school.cem", "school.dan")
    pool.later(HOUR)
    assert (pool.earned("maths"), pool.spent("physics")) == (60, 30)  # half is the school's own users'
    assert (pool.earned("lab"), pool.spent("school")) == (60, 60)  # together they use one more than theirs: the lab's
    pool.replay()


def test_among_borrowers_who_lent_comes_before_who_came_first() -> None:
    pool = lent(HOUR)
    assert pool.wants("club.tom") == pool.wants("lab.ann") == pool.wants("lab.bob") == []
    assert pool.order(["guests.eve0:1", "guests.eve1:1", "guests.eve2:1"]) == ["lab.ann:1", "lab.bob:1", "club.tom:1"]
    pool.replay()


def test_among_borrowers_who_took_stands_behind_even_with_nothing_now() -> None:
    pool = lent(HOUR, project("club", guaranteed_milli=0))
    pool.free("guests.eve0:1")
    pool.busy("club.tom")
    pool.free("guests.eve1:1")
    pool.busy("club.kim")
    pool.free("guests.eve2:1")
    pool.busy("lab.ann")
    assert pool.wants("guests.eve", n=1) == pool.wants("club.sue") == []
    assert pool.why("guests.eve/1").reason == (
        "project 'guests' has -1 GPU-hour of credits, and who has more comes first; all 3 GPUs are busy; "
        "1 request is before yours"
    )
    assert pool.order(["club.tom:1", "club.kim:1"]) == ["club.sue:1", "guests.eve:1"]
    pool.replay()


def test_credits_buy_no_guarantee() -> None:
    pool = lent(4 * HOUR, project("chair", guaranteed_milli=1000))
    pool.free("guests.eve0:1")
    pool.busy("lab.ann")
    assert pool.wants("lab.bob") == pool.wants("chair.tom") == []
    assert pool.earned("lab") == 240
    assert pool.order(["guests.eve1:1", "guests.eve2:1"]) == ["chair.tom:1", "lab.bob:1"]
    pool.replay()


def test_who_spent_much_keeps_its_own_guarantee_and_its_place_among_those_in_quota() -> None:
    pool = Pool(project("lab", guaranteed_milli=2000), project("chair", guaranteed_milli=2000))
    pool.join("a", slots(4))
    pool.busy("chair.a", "chair.b", "chair.c", "chair.d")
    pool.later(2 * HOUR)
    pool.free("chair.d:1")
    pool.busy("lab.ann")
    for lease in ("chair.a:1", "chair.b:1"):
        pool.free(lease)
    pool.busy("guests.eve", "guests.tom")
    assert pool.wants("chair.a", n=2) == pool.wants("lab.bob") == []
    assert pool.spent("chair") == 240
    assert pool.order(["guests.eve:1", "guests.tom:1"]) == ["lab.bob:1", "chair.a:2"]  # the least used before, as ever
    pool.replay()


def test_less_than_a_tenth_of_an_hour_for_its_weight_puts_nobody_first() -> None:
    pool = lent(6 * MINUTE - 1)
    assert pool.wants("club.tom") == pool.wants("lab.ann") == pool.wants("lab.bob") == []
    assert pool.order(["guests.eve0:1", "guests.eve1:1", "guests.eve2:1"]) == ["lab.ann:1", "club.tom:1", "lab.bob:1"]
    pool.replay()


def test_weights_split_what_is_lent_three_to_one_while_credits_tie() -> None:
    pool = Pool(project("lab", guaranteed_milli=4000), project("big", weight=3), project("small"))
    pool.join("a", slots(4))
    pool.busy("big.a", "big.b", "big.c", "small.a")
    pool.later(3 * HOUR)
    assert (pool.spent("big"), pool.spent("small")) == (9 * 60, 3 * 60)
    for session in ("small.b", "small.c", "big.d", "big.e", "big.f"):
        assert pool.wants(session) == []
    got = pool.order(["big.a:1", "big.b:1", "big.c:1", "small.a:1"])
    assert sorted(one.partition(".")[0] for one in got) == ["big", "big", "big", "small"]
    pool.replay()


def test_a_project_in_two_halves_gains_nothing() -> None:
    def play(halves: tuple[str, str], *projects: Project) -> tuple[int, list[bool]]:
        """What both halves earned while they used a GPU each; of many that waited, who was of them, in order."""
        pool = Pool(*projects, project("rival", guaranteed_milli=4000, weight=2))
        pool.join("a", slots(8))
        pool.busy(f"{halves[0]}.one", f"{halves[1]}.two", *(f"guests.eve{n}" for n in range(6)))
        pool.later(3 * HOUR)
        earned = sum(pool.earned(name) for name in set(halves))
        for number in range(3):
            for user in "abc":
                for name in (*halves, "rival"):
                    pool.wants(f"{name}.{user}{number}{name == halves[1]}", n=1 + (name == halves[0]))
        grants = pool.order([f"guests.eve{n}:1" for n in range(6)])
        grants += pool.order(list(grants))
        pool.replay()
        return earned, [not one.startswith("rival") for one in grants]

    whole = play(("big", "big"), project("big", guaranteed_milli=4000, weight=2))
    halves = play(
        ("left", "right"),
        project("left", guaranteed_milli=2000, weight=1),
        project("right", guaranteed_milli=2000, weight=1),
    )
    assert halves[0] == whole[0] == 2 * 180
    assert sum(halves[1]) == sum(whole[1])


def test_a_hundred_hours_lent_put_nobody_further_ahead_than_four() -> None:
    pool = lent(100 * HOUR)
    assert pool.earned("lab") == 6000
    for number in range(3):
        pool.free(f"guests.eve{number}:1")
    pool.change(project("lab"), project("chair", guaranteed_milli=3000))
    pool.busy("lab.ann", "lab.bob", "club.kim")
    pool.later(2 * HOUR)
    pool.free("lab.ann:1")
    pool.free("lab.bob:1")
    pool.busy("other.x", "other.y")  # four hours are spent, so the lab is where everybody begins
    assert pool.wants("new.tom") == pool.wants("lab.ann", n=2) == []
    assert pool.order(["other.x:1", "other.y:1"]) == ["new.tom:1", "lab.ann:2"]
    pool.replay()


def test_who_waits_for_four_hours_stands_behind_nobody_for_their_credits() -> None:
    pool = lent(5 * HOUR)
    pool.free("guests.eve0:1")
    pool.busy("lab.ann")
    pool.wants("club.tom")
    pool.later(4 * HOUR)
    pool.wants("lab.bob")
    assert granted(pool.free("guests.eve1:1")) == ["club.tom:1"]
    pool.replay()


def test_who_waits_for_less_does() -> None:
    pool = lent(5 * HOUR)
    pool.free("guests.eve0:1")
    pool.busy("lab.ann")
    pool.wants("club.tom")
    pool.later(HOUR - 10_000)
    pool.wants("lab.bob")
    assert granted(pool.free("guests.eve1:1")) == ["lab.bob:1"]
    pool.replay()


def test_credits_outlive_new_settings() -> None:
    pool = lent(HOUR)
    pool.change(project("lab", guaranteed_milli=1000, weight=2), project("chair", guaranteed_milli=1000))
    assert (pool.earned("lab"), pool.spent("guests")) == (60, 60)
    pool.later(HOUR)
    assert (pool.earned("lab"), pool.earned("chair"), pool.spent("guests")) == (120, 60, 180)
    pool.change(project("chair", guaranteed_milli=1000))
    pool.later(HOUR)
    assert (pool.earned("lab"), pool.earned("chair"), pool.spent("guests")) == (120, 120, 240)
    pool.replay()


def test_what_a_projects_own_users_lent_to_the_projects_inside_it_outlives_new_settings() -> None:
    school = (
        project("school", guaranteed_milli=2000),
        project("maths", "school", guaranteed_milli=1000),
        project("physics", "school"),
        project("music", "school"),
    )
    pool = Pool(*school)
    pool.join("a", slots(3))
    pool.busy("physics.ann", "physics.bob", "guests.eve")
    pool.later(HOUR)
    pool.change(*school)
    pool.free("physics.ann:1")
    pool.busy("school.cem")
    assert pool.wants("music.dan") == pool.wants("school.eli") == []
    assert pool.order(["physics.bob:1", "guests.eve:1"]) == ["school.eli:1", "music.dan:1"]
    pool.replay()


def test_who_lent_before_a_restart_comes_first_after_it() -> None:
    before = lent(HOUR, project("school", guaranteed_milli=0), project("maths", "school"))
    kept = [
        ev.PastCredits(ProjectId(name), before.scheduler.state.accounts.credits(ProjectId(name)))
        for name in ("lab", "guests", "gone")
    ]
    pool = Pool(project("lab", guaranteed_milli=1000))
    pool.say(ev.UseRecalled((), credits=tuple(kept)))
    pool.join("a", slots(3))
    pool.busy("guests.eve", "guests.tom", "guests.kim")
    pool.later(HOUR)
    assert (pool.earned("lab"), pool.spent("guests")) == (120, 120)
    assert pool.wants("club.tom") == pool.wants("lab.ann") == pool.wants("lab.bob") == []
    assert pool.order(["guests.eve:1", "guests.tom:1", "guests.kim:1"]) == ["lab.ann:1", "lab.bob:1", "club.tom:1"]
    pool.replay()


def test_what_a_projects_own_users_lent_before_a_restart_is_theirs_after_it() -> None:
    past = ev.PastCredits(ProjectId("school"), Credits(earned=HOUR), own_users=True)
    for told, first in (((), "physics.dan:1"), ((past,), "school.eli:1")):
        pool = Pool(project("school"), project("maths", "school"), project("physics", "school"))
        pool.say(ev.UseRecalled((), credits=told))
        pool.join("a", slots(1))
        pool.busy("maths.ann")
        assert pool.wants("physics.dan") == pool.wants("school.eli") == []
        assert pool.order(["maths.ann:1"]) == [first]
        pool.replay()


def test_a_recalled_balance_is_cut_at_what_counts_now_and_what_is_cut_is_in_the_books() -> None:
    pool = Pool(project("lab", weight=1), project("club", weight=2))
    for name, past in (
        ("lab", Credits(earned=7 * HOUR)),
        ("club", Credits(spent=9 * HOUR)),
        ("new", Credits(earned=5 * HOUR, spent=2 * HOUR, forgotten=HOUR)),
    ):
        pool.say(ev.UseRecalled((), credits=(ev.PastCredits(ProjectId(name), past),)))
    told = [pool.scheduler.state.accounts.credits(ProjectId(name)) for name in ("lab", "club", "new")]
    assert told == [
        Credits(earned=7 * HOUR, forgotten=3 * HOUR),
        Credits(spent=9 * HOUR, forgiven=HOUR),
        Credits(earned=5 * HOUR, spent=2 * HOUR, forgotten=HOUR),
    ]
    assert [one.balance for one in told] == [4 * HOUR, -8 * HOUR, 2 * HOUR]
    pool.replay()


def test_who_asks_for_credits_changes_none() -> None:
    pools = []
    for is_asked in (False, True):
        pool = lent(0, project("chair", guaranteed_milli=6000))  # sevenths, which are not whole
        for _ in range(50):
            pool.later(7)
            if is_asked:
                for trader in [account.trader for account in pool.scheduler.state.accounts.by_id.values()]:
                    trader.credits(pool.now_ms)
        pools.append([account.trader.at(pool.now_ms) for account in pool.scheduler.state.accounts.by_id.values()])
    assert [(one.earned, one.spent, one.balance) for one in pools[0]] == [
        (one.earned, one.spent, one.balance) for one in pools[1]
    ]


#: Who trades in random histories, before and after a change of the quotas.
LENDERS = (
    project("lab", guaranteed_milli=2000, weight=2),
    project("school", guaranteed_milli=2000),
    project("maths", "school", guaranteed_milli=1000),
    project("physics", "school", weight=2),
)
FEWER = (project("lab", guaranteed_milli=1000), project("physics"), project("maths", priority=1))
KEEPERS = (
    project("lab", guaranteed_milli=2000, lending_limit_milli=500),
    project("school", guaranteed_milli=2000, lending_limit_milli=1500),
    project("maths", "school", guaranteed_milli=1000, lending_limit_milli=0),
    project("physics", "school"),
)
SESSIONS = [f"{name}.{user}" for name in ("lab", "school", "maths", "physics", "guests", "club") for user in "abc"]
MOVES = st.one_of(
    st.sampled_from(SESSIONS),
    st.sampled_from(SESSIONS),
    st.sampled_from((10_000, 2 * MINUTE, 20 * MINUTE, HOUR, 5 * HOUR)),
    st.sampled_from((LENDERS, FEWER, KEEPERS)),
    st.booleans(),
    st.builds(
        ev.PastCredits,
        st.sampled_from([ProjectId(name) for name in ("lab", "school", "maths", "guests")]),
        st.builds(Credits, *(st.integers(0, 6 * HOUR) for _ in range(4))),
        own_users=st.booleans(),
    ),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None
)
@given(st.lists(MOVES, min_size=20, max_size=60))
def test_in_any_history_of_borrowing_the_referee_agrees_with_order_and_credits(moves: list[object]) -> None:
    pool, running, number = Pool(*LENDERS), dict[str, str](), 0
    pool.join("a", slots(3))

    def perform(actions: list[Action]) -> None:
        """Cells start and end as they are told to, at once."""
        for action in actions:
            if isinstance(action, Grant):
                running[action.session] = action.lease
                perform(pool.start(action.lease))
            elif isinstance(action, Reclaim) and action.lease in running.values():
                end(next(session for session, lease in running.items() if lease == action.lease))

    def end(session: str) -> None:
        perform(pool.free(running.pop(session)))

    for move in moves:
        if isinstance(move, bool):
            perform(pool.join("b", slots(2)) if move else [])
        elif isinstance(move, int):
            perform(pool.later(move))
        elif isinstance(move, ev.PastCredits):
            perform(pool.say(ev.UseRecalled((), credits=(move,))))
        elif isinstance(move, tuple):
            perform(pool.change(*move))
        elif move in running:
            end(str(move))
        else:
            number += 1
            name, _, user = str(move).partition(".")
            perform(pool.ask(str(move), n=number, project=name, user=user))
    book = pool.referee.facts.credits
    for account in pool.scheduler.state.accounts.by_id.values():
        name = account.project.id
        for who, trader in (("project", account.trader), ("members", account.members)):
            kept = trader.credits(pool.now_ms)
            books = book.earned, book.spent, book.forgotten, book.forgiven
            told = [int(one.get((who, name), Fraction(0)) / 1000) for one in books]
            assert [kept.earned, kept.spent, kept.forgotten, kept.forgiven] == told, (who, name)


CHANGES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-24, 24), st.integers(0, 3 * HOUR)), min_size=1, max_size=20
)


@given(CHANGES, st.integers(0, 8))
def test_what_is_earned_is_spent_and_is_the_integral_of_what_was_lent(
    changes: list[tuple[int, int, int]], unpromised: int
) -> None:
    market, now_ms = Market(unpromised=unpromised * 1000), 0
    traders = [Trader(market) for _ in range(5)]
    earned, spent = [Fraction(0)] * 5, [Fraction(0)] * 5
    for number, gpus, passed_ms in changes:
        traders[number].change(gpus * 1000, now_ms)
        idle = sum(max(0, -one.surplus) for one in traders)
        borrowed = sum(max(0, one.surplus) for one in traders)
        lent = max(0, min(idle, borrowed - unpromised * 1000))
        for n, one in enumerate(traders):
            earned[n] += Fraction(max(0, -one.surplus) * lent * passed_ms, idle or 1)
            spent[n] += Fraction(max(0, one.surplus) * lent * passed_ms, borrowed or 1)
        now_ms += passed_ms
        assert all(abs(one.standing_at(now_ms)) <= 40 for one in traders)
    standings = [one.standing_at(now_ms) for one in traders]
    counted = [one.at(now_ms) for one in traders]
    assert standings == [one.standing for one in counted]
    assert sum(earned) == sum(spent)
    lost = 5 * 24_000 * len(changes)  # parts, of five billion each
    for n, one in enumerate(counted):
        assert 0 <= earned[n] * PARTS - one.earned <= lost
        assert 0 <= spent[n] * PARTS - one.spent <= lost


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12), st.integers(1, 4))
def test_a_standing_is_in_whole_steps_and_within_forty(amounts: list[int], weight: int) -> None:
    trader, balance = Trader(Market(), weight), 0
    for amount in amounts:
        trader.pay(amount * STEP * 7 // 2)
        balance = max(-80 * weight, min(80 * weight, balance + 7 * amount))
        assert trader.standing == int(Fraction(balance, 2 * weight))
