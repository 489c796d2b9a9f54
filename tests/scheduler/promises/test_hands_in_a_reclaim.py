"""What people and faults do in the middle of a reclaim: hold, withdraw, requeue, boost, a kernel that dies, a clock."""

import pytest

from bulletin.ids import AgentId, ProjectId, RequestId, SessionId, UserName
from gpu_worker.scheduler import events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, YOUNG_S, Day, Do, at, many, names, node, opens, play

HOUR_S = 3600
OWNER = "[projects.a]\nguaranteed=1\n"


def holds(second: float, session: str) -> Do:
    return second, lambda day: day.tell(ev.RequestHeld(day.request_of(session)))


def releases(second: float, session: str) -> Do:
    return second, lambda day: day.tell(ev.RequestReleased(day.request_of(session)))


@pytest.mark.parametrize("held_after", [1, 15, 29.9])
@pytest.mark.parametrize("held_for", [2, 40, 400])
def test_who_is_held_while_room_is_made_does_not_start_and_has_a_gpu_when_released(
    held_after: float, held_for: float
) -> None:
    """A request that is held does not start; when it is released, it has waited since it came (18)."""
    released = 500 + held_after + held_for
    day = play(
        "[projects.a]\nguaranteed=2\n", node("n", 2), many(2, 10, "g", "g", 90_000, qos="batch"),
        opens(500, "x", "a", 600),
        last=2000, does=[holds(500 + held_after, "x"), releases(released, "x")],
    )  # fmt: skip
    assert released <= day.grants("x")[0] <= released + YOUNG_S + GRACE_S + SOON_S


def test_who_is_held_takes_nothing_of_the_guarantee_from_others() -> None:
    """It takes nothing from anybody, whatever else this page says (18)."""
    day = play(
        OWNER, node("n", 1), opens(10, "g", "g", 3000, qos="batch"),
        opens(500, "x", "a", 600), opens(520, "y", "a", 600), last=1500, does=[holds(505, "x")],
    )  # fmt: skip
    assert day.wait("y") <= GRACE_S + SOON_S
    assert not day.grants("x")


def test_what_an_admin_put_first_is_the_next_of_its_project_and_costs_no_other_one() -> None:
    """It stands before all others of its project, and no other project loses anything by it (18)."""
    day = play(
        "[projects.a]\nguaranteed=1\n[projects.b]\nguaranteed=1\n", node("n", 2),
        many(4, 10, "a", "a", *[200] * 5, think=1), opens(300, "first", "a", 300, qos="batch"),
        many(2, 400, "b", "b", 100),
        last=2000, does=[(310, lambda day: day.tell(ev.RequestPutFirst(day.request_of("first"))))],
    )  # fmt: skip
    later = [second for name in names("a", 4) for second in day.grants(name) if second > 310]
    assert day.grants("first")[0] <= min(later)
    assert day.wait("b0") <= YOUNG_S + GRACE_S + SOON_S


@pytest.mark.parametrize("asked", [15, 100, 2000])
def test_a_cell_that_runs_again_by_hand_has_its_grace_whatever_its_class_says(asked: float) -> None:
    """It has its `grace`, whatever its `min_runtime` and `preemption` (18)."""
    day = play(
        '[qos.fix]\nwalltime="5 h"\npreemption="never"\nmin_runtime="1 h"\ngrace="20 s"\n', node("n", 1),
        opens(10, "x", "p", 3000, qos="fix"), opens(12, "y", "q", 100),
        last=HOUR_S, does=[(asked, lambda day: day.tell(ev.CellRequeued(day.lease_of("x"))))],
        delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    assert [second for second, _ in day.taken("x")] == [asked]
    assert day.spans["x"][0].end == asked + 20
    assert day.grants("x")[1] <= asked + 20 + 100 + SOON_S


@pytest.mark.parametrize(("lasts", "next_one"), [(1000, "b"), (300, "s")])
def test_a_boost_counts_until_it_ends(lasts: int, next_one: str) -> None:
    """Who is boosted stands before the other users of the project (18), until then (how-to)."""

    def boost(day: Day) -> None:
        day.tell(ev.UserBoosted(ProjectId("p"), UserName("bob"), day.now_ms + lasts * 1000))

    day = play(
        "", node("n", 1), opens(10, "z", "p", 400), many(3, 20, "s", "p", 100), many(3, 30, "b", "p", 100, user="bob"),
        last=1000, does=[(40, boost)],
    )  # fmt: skip
    begun = {day.grants(name)[0]: name for name in names("s", 3) + names("b", 3) if day.grants(name)}
    assert begun[min(begun)].startswith(next_one)


@pytest.mark.parametrize("offset_s", [-1, 0, 0.001, 0.5, 2])
def test_a_gpu_is_not_lost_to_who_withdraws_as_it_is_granted(offset_s: float) -> None:
    """Nothing idles that somebody may use (5); a request ends exactly once (15)."""

    gives_up = at(530 + offset_s, hi.GivesUp(SessionId("x")))
    late_news: Do = (530 + offset_s, lambda day: day.tell(ev.RequestWithdrawn(RequestId("x/0/0/r"))))
    day = play(
        OWNER, node("n", 1), opens(10, "g", "g", 90_000, qos="batch"), opens(500, "x", "a", 600),
        opens(505, "o", "o", 50), gives_up, last=2000, does=[late_news], delays=hi.Delays(start_ms=3000),
    )  # fmt: skip
    assert day.running(1500) == 1


def test_who_waits_behind_one_that_withdraws_has_the_room_that_was_made() -> None:
    """A covered request gets its GPUs within the reclaim time, whatever else stands before it (1)."""
    day = play(
        OWNER, node("n", 1), opens(10, "g", "g", 90_000, qos="batch"),
        opens(500, "x", "a", 600, patience_ms=10_000), opens(505, "y", "a", 600), last=1000,
    )  # fmt: skip
    assert day.grants("y")[0] <= 500 + GRACE_S + SOON_S


def test_a_kernel_that_dies_in_its_grace_leaves_its_gpu_at_once() -> None:
    """Nothing idles that somebody may use (5)."""

    def die(day: Day) -> None:
        lease = day.lease_of("g")
        next(iter(day.driver.agents.values())).held.pop(lease)
        day.tell(ev.LeaseEnded(lease))

    day = play(
        OWNER, node("n", 1), opens(10, "g", "g", 90_000, qos="batch"), opens(500, "a", "a", 60),
        last=1000, does=[(512, die)],
    )  # fmt: skip
    assert day.grants("a") == [512]


def test_a_node_that_is_lost_in_a_grace_keeps_no_owner_from_another_one() -> None:
    """A lease of a lost node is over, and told (16); no GPU has two tenants when it comes back."""
    day = play(
        OWNER, node("n", 1), node("m", 1, second=600), opens(10, "g", "g", 90_000, qos="batch"),
        opens(500, "a", "a", 60), at(510, hi.GoesSilent(AgentId("n"))), at(650, hi.Returns(AgentId("n"))),
        last=2000, delays=hi.Delays(ask_again_ms=1000),
    )  # fmt: skip
    assert day.grants("a")[0] <= 600 + SOON_S
    assert day.running(1500) == 1


def test_a_cell_in_its_grace_whose_session_went_on_elsewhere_leaves_its_node_at_once() -> None:
    """A covered request gets its GPUs within the reclaim time, and what is nobody's has no grace (1)."""
    day = play(
        OWNER + '[qos.batch]\ngrace="10 min"\n',
        node("n", 1), node("m", 1, second=520), opens(10, "g", "g", 90_000, qos="batch"),
        opens(500, "a", "a", 5, closes_ms=0), at(510, hi.GoesSilent(AgentId("n"))),
        at(540, hi.Returns(AgentId("n"))), opens(550, "b", "a", 60), last=1000, delays=hi.Delays(ask_again_ms=1000),
    )  # fmt: skip
    assert len(day.grants("g")) == 2
    assert day.grants("b")[0] <= 550 + SOON_S


@pytest.mark.parametrize("jump_s", [60, 3600, 3 * 86_400])
def test_a_clock_that_jumps_in_a_reclaim_costs_nobody_their_guarantee(jump_s: int) -> None:
    """A covered request gets its GPUs within the reclaim time (1)."""
    jump = hi.ClockJumps(jump_s * 1000)
    day = play(
        OWNER, node("n", 2), many(2, 10, "g", "g", 90_000, qos="batch"), at(495, jump), opens(500, "a", "a", 60),
        at(510, jump), last=1000,
    )  # fmt: skip
    assert day.grants("a")[0] <= 500 + 2 * jump_s + GRACE_S + SOON_S


@pytest.mark.parametrize("seed", range(6))
def test_answers_that_are_lost_cost_ten_seconds(seed: int) -> None:
    """An agent that does not answer is asked again after ten seconds (the words)."""
    day = play(
        "[projects.a]\nguaranteed=4\n", node("n", 4), many(4, 10, "g", "g", 30), many(4, 100, "a", "a", 60),
        last=500, delays=hi.Delays(lost_percent=50, evict_ms=500), seed=seed,
    )  # fmt: skip
    assert day.waits(*names("a", 4)) <= 10 + 0.5 + SOON_S


@pytest.mark.parametrize("first", [100, 250])
def test_of_two_cells_that_one_request_needs_gone_neither_goes_before_the_other_may(first: float) -> None:
    """Of several cells that one request needs gone, all are asked when the last of them may be (the words)."""
    day = play(
        '[projects.a]\nguaranteed=2\n[qos.batch]\nmin_runtime="5 min"\n', node("n", 2),
        opens(10, "g0", "g", 90_000, qos="batch"), opens(first, "g1", "g", 90_000, qos="batch"),
        opens(300, "a", "a", 60, gpus=2), last=1000,
    )  # fmt: skip
    assert [second for name in ("g0", "g1") for second, _ in day.taken(name)] == [first + 300] * 2
    assert day.grants("a")[0] <= first + 300 + GRACE_S + SOON_S


def test_who_lost_a_gpu_stands_where_it_stood_however_many_of_its_users_cells_wait() -> None:
    """It runs again when its kernel asks again, however many of its user's wait already (15)."""
    day = play(
        "[projects.a]\nguaranteed=2\n", node("n", 2), many(2, 10, "g", "g", 90_000, qos="batch", user="ann"),
        many(4, 50, "w", "g", 600, qos="batch", user="ann"), many(2, 500, "a", "a", 300),
        last=1500, delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    assert not day.refused("g0") + day.refused("g1")
    assert day.running(900, "g") == 2
