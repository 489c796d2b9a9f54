"""A node that was thought lost comes back with cells whose notebooks have asked anew, and wait."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, at, node, opens, play


def test_a_cell_of_a_lost_node_does_not_keep_its_own_notebook_waiting() -> None:
    """A lease of a lost node is over, and told (16): who asked again since then is who waits for the GPU."""
    day = play(
        "", node("n", 1), node("m", 1), *[opens(1, one, "a", 80_000, qos="batch") for one in ("x", "y")],
        at(100, hi.GoesSilent(AgentId("n"))), at(400, hi.Returns(AgentId("n"))),
        last=2000, delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    assert day.running(400 + SOON_S) == 2
    assert sorted(len(day.grants(one)) for one in ("x", "y")) == [1, 2]


def test_a_place_that_is_kept_has_its_time_though_the_clock_has_jumped_before_its_node_is_heard_again() -> None:
    """Who is over before a larger request can start passes it (5): the place is there for as long as its agent says."""
    jump_s = 86_400
    day = play(
        '[projects.a]\nguaranteed=1\n[qos.reserved]\nwalltime="30 min"\n', node("n", 4),
        opens(10, "kept", "a", 1500, qos="reserved", keep_ms=20_000), opens(20, "large", "b", 600, gpus=4, time=600),
        at(600, hi.ClockJumps(jump_s * 1000)), at(700, hi.Returns(AgentId("n"))),
        opens(800, "short", "c", 200, time=600), last=1700,
    )  # fmt: skip
    assert day.wait("short") <= SOON_S
    assert day.grants("large")[0] <= 10 + 1800 + jump_s + SOON_S


def test_an_exam_and_a_lab_have_all_that_is_theirs_when_the_node_is_back() -> None:
    """A covered request gets its GPUs within the reclaim time (1), also who was on the node that died."""
    exam = [f"e{n}" for n in range(2)]
    file = (
        '[projects.lab]\nguaranteed=2\n[projects.cs]\n[reservations.exam]\nproject="cs"\nusers=["e0","e1"]\ngpus=2\n'
        'from="2026-11-30T10:00"\nuntil="2026-11-30T12:00"\ntime_zone="UTC"\n'
    )
    lost, back = 2 * 3600 + 900, 2 * 3600 + 1800
    day = play(
        file, node("n", 2), node("m", 2),
        *[opens(5 + n, f"l{n}", "lab", 80_000, qos="batch") for n in range(2)],
        *[opens(7260, one, "cs", 1500, 1500, think=10) for one in exam],
        at(lost, hi.GoesSilent(AgentId("n"))), at(back, hi.Returns(AgentId("n"))),
        last=4 * 3600, delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    half, whole = lost + 60 + GRACE_S + SOON_S, back + 60 + GRACE_S + SOON_S
    assert (day.running(half, "e"), day.running(half, "l")) == (1, 1)
    assert (day.running(whole, "e"), day.running(whole, "l")) == (2, 2)
