# settings and histories in one line each
"""Who has waited for their patience has what their project's limit lets through, however others use it (6).

Whom something else holds back has nobody wait meanwhile (5).
"""

import itertools

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import quotas
from tests.scheduler.promises.seen import HOUR_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, H100, L4, LONG, LONG_S, ask, left, look, running, waits

#: The patience, and one walltime.
LATEST_S = 1800 + 600
FILLED_BY = {
    "a limit": "[projects.lab]\nlimit = 2\n",
    "a limit that is guaranteed": "[projects.lab]\nlimit = 2\nguaranteed = 2\n",
    "a guarantee beyond which it never is": "[projects.lab]\nborrow = false\nguaranteed = 2\n",
    "the limit of a department": '[projects.dep]\nlimit = 2\n[projects.lab]\nparent = "dep"\n',
}
CELLS = [600] * 60


@pytest.mark.parametrize("text", FILLED_BY.values(), ids=FILLED_BY)
@pytest.mark.parametrize("think_s", [0, 1])
def test_two_people_run_cell_after_cell_and_one_cell_asks_for_all(text: str, think_s: float) -> None:
    """One of the two runs at any time: the limit was never free, and it waited for ever."""
    seen = look(
        quotas(text), nodes(1, 4),
        ask(2, 1, "lab", *CELLS, name="first", think_s=think_s),
        ask(3, 1, "lab", 300, *CELLS, name="second", think_s=think_s),
        ask(30, 1, "lab", 300, gpus=2, name="large"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "large")[0] <= LATEST_S
    assert left(seen, "first") == left(seen, "second") == 0


def test_sessions_whose_own_guarantee_covers_them_go_on() -> None:
    text = '[projects.dep]\nlimit = 3\n[projects.lab]\nparent = "dep"\n[projects.own]\nparent = "dep"\nguaranteed = 1\n'
    seen = look(
        quotas(text), nodes(1, 4),
        ask(2, 1, "lab", *CELLS, name="first"),
        ask(3, 1, "own", *[270] * 60, name="covered"),
        ask(3, 1, "lab", 300, *CELLS, name="second"),
        ask(30, 1, "lab", 300, gpus=2, name="large"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "large")[0] <= LATEST_S
    assert [at_s for at_s in seen.asked_to_leave("covered0") if at_s < seen.granted("large0")] == []


def test_who_is_late_for_a_cpu_alone_does_not_hide_who_is_late_for_the_limit() -> None:
    def play(number: int) -> Seen:
        return look(
            quotas("[projects.lab]\nlimit = 2\n"),
            at(0, hi.Joins(AgentId("n0"), hi.gpus(4) + hi.cpu_slots(1), 64, 256 * hi.GB)),
            ask(1, 1, "guests", BATCH_S, gpus=0, name="cpu", closes_ms=0, **LONG),
            *[ask(2 + 200 * n, 1, "lab", *CELLS, name=f"one{n}-", closes_ms=0, think_s=1) for n in range(4)],
            ask(20, number, "lab", 300, gpus=0, name="free"),
            ask(30, 1, "lab", 300, gpus=2, name="large"),
            last=3 * HOUR_S,
        )  # fmt: skip

    assert waits(play(1), "large") == waits(play(0), "large")


LONG_CELLS = "[qos.interactive]\nwalltime = '11 h'\n"
DEP = '[projects.dep]\nlimit = {limit}\n[projects.lab]\nparent = "dep"\n[projects.own]\nparent = "dep"\n'


def typing(seen: Seen, names: str) -> tuple[int, set[int]]:
    """How often any of these was asked to leave after the first minute, and how many ran from the second hour on."""
    asked = sum(at_s > 60 for name in names for at_s in seen.asked_to_leave(f"{name}0"))
    return asked, {running(seen, second, name) for second in range(HOUR_S, 3 * HOUR_S, 900) for name in names}


def ask_each(names: str, second: float = 2, **more: object) -> list[hi.At]:
    """One person each who runs cell after cell, with a second between two."""
    return [one for name in names for one in ask(second, 1, "lab", *[899] * 60, name=name, think_s=1, **more)]


HELD_BACK = {
    "by what one person may have": (
        "[projects.lab]\nlimit = 4\nuser_limit = 1\n" + LONG_CELLS,
        ("lab", "lab"),
    ),
    "by how many cells of a class one person may run": (
        "[qos.interactive]\nwalltime = '11 h'\nrunning_per_user = 1\n[projects.lab]\nlimit = 4\n",
        ("lab", "lab"),
    ),
    "by a limit inside": (DEP.format(limit=4) + "limit = 1\n" + LONG_CELLS, ("own", "own")),
}


@pytest.mark.parametrize(("text", "projects"), HELD_BACK.values(), ids=HELD_BACK)
def test_who_is_held_back_in_any_case_has_nobody_leave(text: str, projects: tuple[str, str]) -> None:
    """They left, the place was kept for nobody, and the same people had it back, cell after cell."""
    first, late = projects
    seen = look(
        quotas(text), nodes(1, 8),
        at(1, notebook("ann0", first, LONG_S, user="ann")), ask_each("bcd", walltime_ms=1_800_000),
        at(30, notebook("late0", late, 300, user="ann")),
        last=3 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert waits(seen, "late") == [float("inf")]
    assert typing(seen, "bcd") == (0, {1})


def test_whose_budget_is_used_up_has_nobody_leave() -> None:
    text = DEP.format(limit=3) + 'budget = "0.6 GPU-hours per day"\n[qos.interactive]\nwalltime = "30 min"\n'
    seen = look(
        quotas(text), nodes(1, 8),
        at(1, notebook("ann0", "own", 1700, closes_ms=0)),
        ask_each("bcd", 1900),
        at(1910, notebook("late0", "own", 300)),
        last=3 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert waits(seen, "late") == [float("inf")]
    assert [at_s for name in "bcd" for at_s in seen.asked_to_leave(f"{name}0")] == []


def test_whose_node_is_drained_has_nobody_leave_and_no_cell_go() -> None:
    """A session that left asked again, and took a batch cell of its project back while a place was kept."""
    seen = look(
        quotas("[projects.lab]\nlimit = 4\n"),
        at(0, hi.Joins(AgentId("fast"), hi.gpus(1, H100))), at(0, hi.Joins(AgentId("slow"), hi.gpus(8, L4))),
        at(1, notebook("out", "guests", 3 * HOUR_S, qos="batch", gpu_type="H100")),
        at(2, notebook("night", "lab", LONG_S, qos="batch", gpu_type="L4")),
        ask_each("bcd", gpu_type="L4"),
        at(10, notebook("late0", "lab", 300, gpu_type="H100")), at(20, hi.Drains(AgentId("fast"), True)),
        last=3 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert waits(seen, "late") == [float("inf")]
    assert left(seen, "night") == 0
    assert typing(seen, "bcd") == (0, {1})


def test_the_next_one_that_is_late_and_can_start_has_the_limit() -> None:
    seen = look(
        quotas("[projects.lab]\nlimit = 3\nuser_limit = 2\n" + LONG_CELLS), nodes(1, 8),
        at(1, notebook("ann0", "lab", LONG_S, user="ann")),
        ask(2, 1, "lab", *CELLS, name="first", think_s=1),
        ask(3, 1, "lab", 300, *CELLS, name="second", think_s=1),
        at(20, notebook("stuck0", "lab", 300, user="ann", gpus=2)),
        at(30, notebook("large0", "lab", 300, user="bob", gpus=2)),
        last=3 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert waits(seen, "stuck") == [float("inf")]
    assert waits(seen, "large")[0] <= LATEST_S


def test_a_session_on_a_cpu_holds_nothing_of_a_limit_and_stays() -> None:
    seen = look(
        quotas("[projects.lab]\nlimit = 2\n"),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(4) + hi.cpu_slots(4), 64, 256 * hi.GB)),
        ask(1, 2, "lab", *[60] * 200, name="cpu", gpus=0, think_s=2),
        ask(2, 1, "lab", *CELLS, name="first", think_s=1),
        ask(3, 1, "lab", 300, *CELLS, name="second", think_s=1),
        ask(30, 1, "lab", 300, gpus=2, name="large"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "large")[0] <= LATEST_S
    assert [at_s for name in ("cpu0", "cpu1") for at_s in seen.asked_to_leave(name)] == []


TWO_LIMITS = '[projects.dep]\nlimit = {}\n[projects.lab]\nparent = "dep"\nlimit = 2\n[projects.other]\nparent = "dep"\n'
HOUR_LONG = "[qos.interactive]\nwalltime = '1 h'\n"
LONG_CELLS_ALL_DAY = [3500] * 20


@pytest.mark.parametrize("limit", [2, 3, 4])
def test_who_waits_at_two_limits_waits_one_walltime_for_both(limit: int) -> None:
    """The lab's let it through after 75 min, when the department's was full again, and an hour later was so, too."""
    seen = look(
        quotas(HOUR_LONG + TWO_LIMITS.format(limit)), nodes(1, 8),
        ask(2, 1, "lab", 3500, name="first"), ask(1000, 1, "lab", *LONG_CELLS_ALL_DAY, name="second", think_s=1),
        ask(2, 1, "other", *LONG_CELLS_ALL_DAY, name="third", think_s=1),
        ask(1100, 1, "other", *LONG_CELLS_ALL_DAY, name="fourth", think_s=1),
        ask(30, 1, "lab", 300, gpus=2, name="large"),
        last=3 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert waits(seen, "large")[0] <= 1800 + HOUR_S


@pytest.mark.parametrize("between", [0, 1])
@pytest.mark.parametrize(("outer", "inner", "dep", "uni"), [(5, 4, 1, 2), (5, 3, 1, 2), (6, 4, 1, 3), (4, 3, 1, 1)])
def test_who_waits_at_more_than_two_limits_waits_one_walltime_for_all(
    outer: int, inner: int, dep: int, uni: int, between: int
) -> None:
    """The department's was kept for it meanwhile, and the university's was full again when that let it through."""
    seen = look(
        quotas(HOUR_LONG + nested(outer, *[outer] * between, inner)), nodes(1, 12),
        ask(2, 1, "lab", 3500, name="first"), ask(1000, 1, "lab", *LONG_CELLS_ALL_DAY, name="second", think_s=1),
        ask(2, dep, "inner", *LONG_CELLS_ALL_DAY, name="third", think_s=1),
        ask(1100, 1, "inner", *LONG_CELLS_ALL_DAY, name="fourth", think_s=1),
        ask(3, uni, "outer", *LONG_CELLS_ALL_DAY, name="fifth", think_s=1),
        ask(1300, uni, "outer", *LONG_CELLS_ALL_DAY, name="sixth", think_s=1),
        ask(30, 1, "lab", 300, gpus=2, name="large"),
        last=4 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert waits(seen, "large")[0] <= 1800 + HOUR_S


def nested(*limits: int) -> str:
    """Write a lab that may use 2 GPUs in so many projects, one in the other, with others in the first and the last."""
    names = [f"level{number}" for number in range(len(limits))]
    inside = [("", names[0]), *itertools.pairwise([*names, "lab"]), (names[0], "outer"), (names[-1], "inner")]
    known = dict(zip(names, limits, strict=True)) | {"lab": 2}
    return "".join(
        f"[projects.{name}]\n"
        + (f'parent = "{parent}"\n' if parent else "")
        + (f"limit = {known[name]}\n" if name in known else "")
        for parent, name in inside
    )


@pytest.mark.parametrize("minutes", [10, 30])
def test_meanwhile_the_outer_limit_is_used_by_cells_that_are_over_by_then(minutes: int) -> None:
    """Those who type go on, and begin, until one of their cells could be too long by its walltime."""
    types = {"think_s": 1, "walltime_ms": minutes * 60_000}
    seen = look(
        quotas("[qos.interactive]\nwalltime = '2 h'\n" + TWO_LIMITS.format(3)), nodes(1, 8),
        ask(2, 1, "lab", 6000, name="runs"), ask(2, 1, "lab", 2000, name="early", walltime_ms=3_600_000),
        ask(3, 1, "other", *[200] * 60, name="types", **types), ask(40, 1, "other", *[200] * 60, name="more", **types),
        ask(30, 1, "lab", 300, gpus=2, name="large"),
        last=3 * HOUR_S, but=(6,),
    )  # fmt: skip
    asked = [at_s for name in ("types0", "more0") for at_s in seen.asked_to_leave(name)]
    too_long_s = min(6002, 7202 - 60 * minutes)  #: when the cell that runs is over, at last or by its walltime
    assert [at_s for at_s in asked if 2100 < at_s < too_long_s] == []
    assert seen.granted("large0") <= 6002 + 200


def test_whose_node_is_to_be_drained_too_soon_does_not_hide_the_next_one_that_is_late() -> None:
    seen = look(
        quotas("[qos.interactive]\nwalltime = '4 h'\n[projects.lab]\nlimit = 2\n"),
        at(0, hi.Joins(AgentId("fast"), hi.gpus(2, H100))), at(0, hi.Joins(AgentId("slow"), hi.gpus(8, L4))),
        at(1, notebook("out", "guests", LONG_S, qos="batch", gpu_type="H100", gpus=2)),
        ask(2, 1, "lab", *CELLS, name="first", think_s=1, gpu_type="L4"),
        ask(3, 1, "lab", 300, *CELLS, name="second", think_s=1, gpu_type="L4"),
        at(20, notebook("late0", "lab", 300, gpu_type="H100")),
        at(30, notebook("large0", "lab", 300, gpus=2, gpu_type="L4")),
        at(40, hi.PlansDrain(AgentId("fast"), 3 * HOUR_S * 1000)),
        last=3 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert waits(seen, "late") == [float("inf")]
    assert waits(seen, "large")[0] <= LATEST_S


@pytest.mark.parametrize(("minutes", "begins"), [(10, True), (110, False)])
def test_who_asks_meanwhile_begins_where_it_is_over_before_the_inner_limit_lets_through(
    minutes: int, begins: bool
) -> None:
    """Two of four GPUs are used for longer than the lab's limit is full: a long cell would be one too many by then."""
    seen = look(
        quotas("[qos.interactive]\nwalltime = '2 h'\n" + TWO_LIMITS.format(4)), nodes(1, 8),
        ask(2, 1, "lab", 6000, name="runs"), ask(2, 1, "lab", 2000, name="early", walltime_ms=3_600_000),
        ask(30, 1, "lab", 300, gpus=2, name="large"), ask(100, 2, "other", 7000, name="stays"),
        ask(4000, 1, "other", 200, name="asks", walltime_ms=minutes * 60_000),
        last=3 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert (seen.granted("asks0") == 4000) == begins
    assert seen.granted("large0") <= 6002 + 1
