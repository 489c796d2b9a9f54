"""Exams and the days before a maintenance: reservations, nodes that are drained at a time, and both at once."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, YOUNG_S, at, many, names, node, opens, play

HOUR_S = 3600


def exam(begin: str, end: str, gpus: int, *users: str, project: str = "cs", zone: str = "UTC") -> str:
    only = f"users={list(users)}\n".replace("'", '"') if users else ""
    return (
        f'[reservations.exam]\nproject="{project}"\n{only}gpus={gpus}\nfrom="{begin}"\nuntil="{end}"\n'
        f'time_zone="{zone}"\n'
    )


@pytest.mark.parametrize("gpus", [2, 4])
def test_who_sits_the_exam_takes_gpus_back_from_the_rest_of_the_course(gpus: int) -> None:
    """For some of its users it is a guarantee of their own inside the project (quotas, reservations)."""
    users = ["ann", "bob", "eve", "dan"]
    day = play(
        "[projects.cs]\nguaranteed=4\n" + exam("2026-11-30T08:30", "2026-11-30T09:30", gpus, *users),
        node("n", 4), many(4, 10, "x", "cs", 9000, qos="batch"),
        [opens(1900, user, "cs", 600) for user in users[:gpus]],
        last=2 * HOUR_S,
    )  # fmt: skip
    assert day.waits(*users[:gpus]) <= GRACE_S + SOON_S


@pytest.mark.parametrize("come", [600, 1700, 1799])
def test_who_waits_from_before_has_a_gpu_soon_after_it_begins(come: float) -> None:
    """While it is on, what they submit counts there, whatever waits from before included; it is told before."""
    day = play(
        '[projects.cs]\n[projects.o]\nguaranteed=4\n[qos.interactive]\nshare_after="1 d"\n'
        + exam("2026-11-30T08:30", "2026-11-30T09:30", 2, "ann", "bob"),
        node("n", 6), many(6, 10, "x", "o", 9000, qos="batch"),
        [opens(come, user, "cs", 600) for user in ("ann", "bob", "eve")],
        last=2 * HOUR_S, asks=lambda second: come <= second < min(1800, come + 2),
    )  # fmt: skip
    for user in ("ann", "bob"):
        assert 1800 <= day.grants(user)[0] <= 1800 + GRACE_S + SOON_S
        assert "the reservation 'exam' begins at 08:30" in day.told[user][0][1].reason
    assert not day.grants("eve") or day.grants("eve")[0] > 1800 + GRACE_S + SOON_S
    assert "begins" not in day.told["eve"][0][1].reason


def test_what_runs_when_it_ends_goes_on_and_is_borrowed() -> None:
    """Nothing is kept after it has ended: what runs then goes on, and is borrowed where nothing else covers it."""
    day = play(
        "[projects.cs]\n[projects.o]\nguaranteed=4\n" + exam("2026-11-30T08:30", "2026-11-30T09:00", 2, "ann", "bob"),
        node("n", 4), opens(3500, "ann", "cs", 1700), opens(3500, "bob", "cs", 1700),
        many(2, 3510, "p", "o", 900), many(2, 4000, "o", "o", 600),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert day.covered["ann"][0] == (3500.0, True)
    assert (3600.0, False) in day.covered["ann"]
    assert day.waits("o0", "o1") <= GRACE_S + SOON_S
    assert day.losers() == {"ann", "bob"}


def test_a_reservation_in_the_night_in_which_clocks_go_back_is_as_long_as_it_can_be() -> None:
    """A time that clocks show twice bounds it so that it is as long as can be (quota file)."""
    day = play(
        '[projects.cs]\n[projects.o]\nguaranteed=1\n[qos.interactive]\nshare_after="1 d"\n'
        + exam("2026-10-25T02:30", "2026-10-25T03:30", 2, zone="Europe/Berlin"),
        node("n", 2), many(2, 10, "x", "o", 90_000, qos="batch"), opens(100, "a", "cs", 60), opens(8900, "b", "cs", 60),
        last=3 * HOUR_S, begin="2026-10-25T00:00",
    )  # fmt: skip
    assert 1800 <= day.grants("a")[0] <= 1800 + GRACE_S + SOON_S  # 02:30 in summer is 00:30 UTC
    assert day.wait("b") <= GRACE_S + SOON_S  # 03:30 in winter is 02:30 UTC


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("walltime", [300, 1800, 3600])
def test_a_node_that_is_to_be_drained_is_given_only_what_is_over_by_then(gpus: int, walltime: float) -> None:
    """It is given until then only what is over by then, by its walltime (19)."""
    leaves = 2400
    day = play(
        "", node("n0", 2), node("n1", 2), at(5, hi.PlansDrain(AgentId("n0"), leaves * 1000)),
        many(6, 10, "a", "a", *[walltime] * 8, think=5, time=walltime, qos="batch", gpus=gpus),
        last=2 * HOUR_S,
    )  # fmt: skip
    there = [span for spans in day.spans.values() for span in spans if span.node == "n0"]
    assert all(span.end is not None and span.end <= 5 + leaves for span in there)
    assert bool(there) == (walltime < leaves)


@pytest.mark.parametrize("come", [900, 1700])
def test_what_is_guaranteed_comes_from_other_nodes_before_a_drain(come: float) -> None:
    """Nobody who could not end there in time keeps it from others; what 1 says holds (19, 1)."""
    day = play(
        "[projects.a]\nguaranteed=4\n", node("n0", 4), node("n1", 4), at(5, hi.PlansDrain(AgentId("n0"), 2_400_000)),
        many(8, 10, "g", "g", *[200] * 12, think=1, time=300), many(4, come, "a", "a", 1700, time=1800),
        last=HOUR_S,
    )  # fmt: skip
    assert day.waits(*names("a", 4)) <= YOUNG_S + GRACE_S + SOON_S
    assert day.nodes("a") == {"n1"}


@pytest.mark.parametrize("back", [3660, 4500])
def test_a_reservation_that_begins_with_a_drain_shrinks_with_it_and_is_whole_again_after_it(back: float) -> None:
    """When nodes are down, all guarantees shrink in proportion, until they are what there is (the words)."""
    day = play(
        "[projects.e]\n[projects.lab]\nguaranteed=4\n" + exam("2026-11-30T09:00", "2026-11-30T10:00", 4, project="e"),
        node("n0", 4), node("n1", 4), at(5, hi.PlansDrain(AgentId("n0"), 3_600_000)),
        many(8, 10, "lab", "lab", 90_000, qos="batch"), many(4, 3605, "e", "e", 3000, time=3000, qos="batch"),
        at(back, hi.Drains(AgentId("n0"), is_drained=False)),
        last=3 * HOUR_S,
    )  # fmt: skip
    begun = sorted(day.grants(name)[0] for name in names("e", 4))
    assert begun[1] <= 3605 + GRACE_S + SOON_S
    assert begun[3] <= max(back, 3605) + GRACE_S + SOON_S
