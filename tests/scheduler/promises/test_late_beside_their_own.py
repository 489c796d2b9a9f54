# settings and histories in one line each
"""Who is late at a limit stands before all others of their project, also those whom its guarantee covers (1, 6, 18)."""

import pytest

from bulletin.ids import AgentId, SessionId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import quotas
from tests.scheduler.promises.seen import HOUR_S, at, nodes
from tests.scheduler.promises.stories import BATCH_S, LONG_S, NEVER_MS, ask, left, look, waits

CELLS = [600] * 60
PATIENCE_S, GRACE_S = 1800, 30


def test_whom_the_projects_own_guarantee_covers_has_others_give_back_and_not_who_is_late() -> None:
    """Two of the lab ran cell after cell in turn, one covered at any time: the large cell waited for ever."""
    seen = look(
        quotas('[projects.dep]\nlimit = 4\n[projects.lab]\nparent = "dep"\nlimit = 3\nguaranteed = 1\n'
               '[projects.other]\nparent = "dep"\n'), nodes(1, 8),
        ask(1, 2, "other", LONG_S, name="night", qos="batch"),
        ask(2, 1, "lab", *CELLS, name="first", think_s=1), ask(3, 1, "lab", 300, *CELLS, name="second", think_s=1),
        ask(30, 1, "lab", 300, gpus=2, name="large"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "large")[0] <= PATIENCE_S + 605 + GRACE_S
    assert left(seen, "night") == 1  # for the one who is covered


def test_a_session_of_the_departments_own_users_leaves_to_who_is_late_there() -> None:
    """It went on since the department's own users are guaranteed so much; a lab inside it goes on by right."""
    seen = look(
        quotas('[projects.dep]\nlimit = 3\nguaranteed = 3\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'),
        nodes(1, 8),
        ask(300, 1, "lab", *[400] * 20, name="inside", think_s=300), ask(2, 1, "dep", *CELLS, name="first", think_s=1),
        ask(30, 1, "dep", 300, gpus=3, name="large"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "large")[0] <= PATIENCE_S + 600 + 400


def test_what_goes_for_a_higher_class_makes_nobody_wait_who_is_late_and_needs_only_hot_sessions_gone() -> None:
    """A batch cell goes for who types. The one that is late waited for its grace, and they had its place at once."""
    seen = look(
        quotas('[projects.dep]\nlimit = 5\n[projects.lab]\nparent = "dep"\n[projects.other]\nparent = "dep"\n'
               '[qos.batch]\npatience = "10 min"\n'), nodes(1, 8),
        ask(1, 2, "lab", 3000, name="types"), ask(2, 1, "lab", BATCH_S, name="night", qos="batch"),
        ask(3, 1, "other", 900, name="goes", think_s=1), ask(3, 1, "other", 1000, 3000, name="hot", think_s=1),
        ask(30, 1, "lab", 300, gpus=2, name="large", qos="batch"), ask(700, 1, "lab", 300, name="asks"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert seen.granted("large0") == 1003
    assert seen.granted("asks0") == 1003 + GRACE_S


@pytest.mark.parametrize(("minutes", "begins"), [(10, True), (30, False)])
def test_what_a_limit_keeps_is_used_by_cells_that_are_over_before_it_lets_the_late_one_through(
    minutes: int, begins: bool
) -> None:
    """Two of a lab run in turn on what it is guaranteed: the large one waits for that, and others waited for it."""
    seen = look(
        quotas('[projects.dep]\nlimit = 4\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'), nodes(1, 8),
        ask(2, 1, "lab", *CELLS, name="first", think_s=1), ask(3, 1, "lab", 300, *CELLS, name="second", think_s=1),
        ask(30, 1, "dep", 300, gpus=4, name="large"),
        ask(2700, 1, "dep", *[500] * 9, name="types", think_s=1, walltime_ms=minutes * 60_000),
        last=2 * HOUR_S, but=() if begins else (6,),
    )  # fmt: skip
    assert (waits(seen, "types")[0] <= 300) == begins


LAB = {
    "a limit": "[projects.lab]\nlimit = 2\n",
    "a limit that is guaranteed": "[projects.lab]\nlimit = 2\nguaranteed = 2\n",
    "a guarantee beyond which it never is": "[projects.lab]\nborrow = false\nguaranteed = 2\n",
}


@pytest.mark.parametrize("what", ["put-first", "boost"])
@pytest.mark.parametrize("text", LAB.values(), ids=LAB)
def test_whom_an_admin_put_first_has_the_limit_of_the_project_without_waiting_for_the_patience(
    text: str, what: str
) -> None:
    """One of two others ran at any time: it waited for half an hour and their walltime, as if nothing was done."""
    seen = look(
        quotas(text), nodes(1, 4),
        ask(2, 1, "lab", *CELLS, name="first", think_s=1), ask(3, 1, "lab", 300, *CELLS, name="second", think_s=1),
        ask(30, 1, "lab", 300, gpus=2, name="large"), at(60, hi.ByHand(SessionId("large0"), what)),  # type: ignore[arg-type]
        last=2 * HOUR_S,
    )  # fmt: skip
    assert seen.granted("large0") == 602


def test_no_other_project_of_the_department_stands_still_for_whom_an_admin_put_first() -> None:
    seen = look(
        quotas('[projects.dep]\nlimit = 2\n[projects.lab]\nparent = "dep"\nlimit = 2\n'
               '[projects.other]\nparent = "dep"\n'), nodes(1, 8),
        ask(2, 1, "other", *CELLS, name="first", think_s=1), ask(3, 1, "other", 300, *CELLS, name="second", think_s=1),
        ask(30, 1, "lab", 300, gpus=2, name="large"), at(60, hi.ByHand(SessionId("large0"), "put-first")),
        last=1800,
    )  # fmt: skip
    assert [seen.asked_to_leave(name) for name in ("first0", "second0")] == [[], []]
    assert waits(seen, "large") == [float("inf")]


@pytest.mark.parametrize("left", [1, 0])
def test_whom_an_admin_put_first_and_whom_no_budget_reaches_has_nobody_wait(left: int) -> None:
    """Of the day's two GPU-hours her own cell has used one. Others ask for five minutes each, and go on."""
    seen = look(
        quotas('[projects.lab]\nlimit = 3\nbudget = "2 GPU-hours per day"\n[qos.interactive]\nwalltime = "3 h"\n'),
        nodes(1, 8),
        ask(1, 1, "lab", 3600, name="ann", closes_ms=0, walltime_ms=3_700_000),
        *[ask(2 + n, 1, "lab", *[200] * 5, name=f"one{n}", think_s=1, walltime_ms=300_000) for n in range(2)],
        ask(30, 1, "lab", 300, name="large", walltime_ms=300_000 if left else 5_400_000),
        at(60, hi.ByHand(SessionId("large0"), "put-first")),
        last=900,
    )  # fmt: skip
    asked = [seen.asked_to_leave(f"one{n}0") for n in range(2)]
    assert bool(left) == any(asked)


def test_what_a_limit_keeps_is_not_used_by_who_would_have_been_over_before_a_cell_that_a_lost_node_took() -> None:
    """A cell of ten hours is lost: the late one may start after five. A cell of eight hours began in its place."""
    hours = {"a": 10, "b": 5, "c": 2, "d": 11}
    cells = [ask(10 + n, 1, "lab", long * HOUR_S, name=name, walltime_ms=long * HOUR_S * 1000)
             for n, (name, long) in enumerate(hours.items())]  # fmt: skip
    seen = look(
        quotas('[projects.lab]\nlimit = 4\n[qos.interactive]\nwalltime = "12 h"\n'),
        at(0, hi.Joins(AgentId("first"), hi.gpus(1))), at(11, hi.Joins(AgentId("other"), hi.gpus(7))), *cells,
        ask(30, 1, "lab", 300, gpus=3, name="late", walltime_ms=HOUR_S * 1000),
        ask(2000, 1, "lab", 8 * HOUR_S, name="fill", walltime_ms=8 * HOUR_S * 1000),
        at(3600, hi.GoesSilent(AgentId("first"))),
        last=12 * HOUR_S, ask_again_ms=NEVER_MS,
    )  # fmt: skip
    assert waits(seen, "late")[0] <= 5 * HOUR_S
