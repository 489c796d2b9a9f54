"""What somebody asked for and was granted (`%gpu request`): until when it holds, for whom, and what bounds it (8)."""

import pytest

from bulletin.ids import ProjectId, SessionId, UserName
from bulletin.units import HOUR_MS
from gpu_worker.scheduler import actions as act
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import keeps_all
from tests.scheduler.promises.played import SOON_S, at, node, opens, quotas
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, Seen, see

COURSE = (
    '[projects.course]\nguaranteed = 1\nlimit = 3\nuser_limit = 1\ngpus_per_cell = 1\nwalltime = "20 min"\n'
    "[projects.lab]\nguaranteed = 1\n"
)


def grant(second: float, minutes: float, *, user: str = "ann", name: str = "a", **terms: int) -> hi.At:
    """Grant a user of the course something for so long."""
    for_ms = round(minutes * 60_000)
    return at(second, hi.Allows(name, ProjectId("course"), UserName(user), for_ms, **terms))


def left_at(seen: Seen, session: str) -> list[float]:
    """List when a notebook was asked to leave its GPU while it was hot."""
    found = ((second, action) for second, _, actions in seen.log for action in actions)
    return [s for s, one in found if isinstance(one, act.Evict) and seen.held[one.lease][0] == session]


def test_who_was_granted_longer_cells_runs_them_and_nobody_else_does() -> None:
    seen = see(
        quotas(COURSE), node("a", 4), grant(0, 60, walltime_ms=4 * HOUR_MS),
        opens(1, "ann", "course", 3 * HOUR_S, time=4 * HOUR_S), opens(1, "tom", "course", 60, time=4 * HOUR_S),
        opens(1, "ann2", "lab", 60, user="ann", time=4 * HOUR_S), last=4 * HOUR_S,
    )  # fmt: skip
    assert seen.wait("ann") == 0
    assert seen.gpu_seconds("course") == pytest.approx(3 * HOUR_S, abs=SOON_S), "what runs when it is over goes on"
    assert "more than" in seen.refused("tom")[0]
    assert "more than" in seen.refused("ann2")[0]
    keeps_all(seen)


def test_what_waits_and_needs_it_is_refused_in_the_moment_in_which_it_is_over() -> None:
    seen = see(
        quotas(COURSE), node("a", 1), grant(0, 10, walltime_ms=4 * HOUR_MS),
        opens(0, "lab", "lab", 20 * MINUTE_S), opens(1, "ann", "course", 60, time=HOUR_S),
        opens(1, "tom", "course", 60), last=HOUR_S,
    )  # fmt: skip
    told = [second for second, _, actions in seen.log for action in actions if isinstance(action, act.Refuse)]
    assert told == [10 * MINUTE_S]
    assert "20 min" in seen.refused("ann")[0] or "30 min" in seen.refused("ann")[0]
    assert seen.granted("tom") < 21 * MINUTE_S
    keeps_all(seen)


def test_who_withdraws_in_the_moment_in_which_it_is_over_is_not_refused_too() -> None:
    seen = see(
        quotas(COURSE), node("a", 1), grant(0, 10, walltime_ms=4 * HOUR_MS), opens(0, "lab", "lab", 20 * MINUTE_S),
        opens(1, "ann", "course", 60, time=HOUR_S), at(10 * MINUTE_S, hi.GivesUp(SessionId("ann"))), last=HOUR_S,
    )  # fmt: skip
    assert seen.refused("ann") == []
    keeps_all(seen)


def test_who_is_granted_it_again_in_the_moment_in_which_it_is_over_waits_on() -> None:
    seen = see(
        quotas(COURSE), node("a", 1), grant(0, 10, walltime_ms=4 * HOUR_MS), opens(0, "lab", "lab", 20 * MINUTE_S),
        opens(1, "ann", "course", 60, time=HOUR_S), grant(10 * MINUTE_S, 60, name="again", walltime_ms=4 * HOUR_MS),
        last=HOUR_S,
    )  # fmt: skip
    assert seen.refused("ann") == []
    assert seen.granted("ann") < 21 * MINUTE_S
    keeps_all(seen)


@pytest.mark.parametrize("first", [0, 30])
def test_what_waits_for_a_limit_of_its_user_starts_when_more_is_granted(first: float) -> None:
    seen = see(
        quotas(COURSE), node("a", 4), grant(first, 60, gpus=2), opens(1, "ann", "course", 600),
        opens(2, "more", "course", 60, user="ann"), opens(3, "third", "course", 60, user="ann"), last=HOUR_S,
    )  # fmt: skip
    assert seen.granted("more") == pytest.approx(max(2, first), abs=SOON_S)
    assert seen.granted("third") == pytest.approx(max(2, first) + 60, abs=6 + SOON_S), "two at once, and no more"
    keeps_all(seen)


def test_nothing_granted_is_more_than_the_project_has() -> None:
    seen = see(
        quotas(COURSE), node("a", 8), grant(0, 60, gpus=8, name="a"), grant(0, 60, gpus=8, name="b", user="tom"),
        opens(1, "ann", "course", 600, gpus=4), opens(2, "tom", "course", 600, gpus=2),
        opens(3, "tom2", "course", 600, gpus=2, user="tom"), last=HOUR_S,
    )  # fmt: skip
    assert "3 GPUs at most" in seen.refused("ann")[0]
    assert seen.most_at_once("course") == 2
    keeps_all(seen)


def test_a_hot_session_leaves_when_it_is_over_and_where_it_is_taken_back() -> None:
    seen = see(
        quotas(COURSE.replace("limit = 3", "limit = 4")), node("a", 4), grant(0, 10, gpus=2),
        grant(0, 60, gpus=2, user="tom", name="t"),
        opens(1, "ann", "course", 60, 60, think=HOUR_S, gpus=2),
        opens(1, "tom", "course", 20, 60, think=HOUR_S, user="tom"), grant(20 * MINUTE_S, 0, user="tom", name="t"),
        opens(2, "tom2", "course", 20, 60, think=HOUR_S, user="tom"), last=HOUR_S,
    )  # fmt: skip
    assert left_at(seen, "ann") == [10 * MINUTE_S]
    assert left_at(seen, "tom") + left_at(seen, "tom2") == [20 * MINUTE_S], "one GPU is what everybody has"
    keeps_all(seen)


def test_of_several_the_most_counts_until_its_own_end() -> None:
    long = [opens(second, f"long{second}", "course", 60, user="ann", time=3 * HOUR_S) for second in (0, 720)]
    medium = [opens(second, f"medium{second}", "course", 60, user="ann", time=HOUR_S) for second in (660, 1860)]
    seen = see(
        quotas(COURSE), node("a", 4), grant(0, 10, walltime_ms=4 * HOUR_MS, name="b"),
        grant(0, 30, walltime_ms=HOUR_MS, name="a"), long, medium, last=HOUR_S,
    )  # fmt: skip
    assert [name for name in seen.opened if seen.refused(name)] == ["long720", "medium1860"]
    keeps_all(seen)


def test_who_runs_on_when_it_is_over_has_another_gpu_in_a_project_inside_whose_users_are_a_side_of_their_own() -> None:
    seen = see(
        quotas(COURSE + '[projects.seminar]\nparent = "course"\nguaranteed = 1\n'), node("a", 3), grant(0, 10, gpus=2),
        opens(1, "ann", "course", 20 * MINUTE_S, gpus=2), opens(900, "inside", "seminar", 600, user="ann"),
        opens(901, "next", "course", 60, user="ann"), last=HOUR_S,
    )  # fmt: skip
    assert seen.wait("inside") == 0
    assert seen.granted("next") >= 20 * MINUTE_S, "in the course itself two are more than one"
    keeps_all(seen)
