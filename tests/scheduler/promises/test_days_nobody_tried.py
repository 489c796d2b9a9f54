"""Days that people have with a pool and nobody wrote down: games, halves of a GPU, slices, groups, class hours."""

import pytest

from bulletin.ids import AgentId, SessionId
from gpu_worker.scheduler import events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, YOUNG_S, Day, at, changes, many, names, node, opens, play

RECLAIM_S = YOUNG_S + GRACE_S + SOON_S


def hours(project: str, begin: str, end: str, gpus: int) -> str:
    return (
        f'[projects.{project}.class_hours.x]\ndays=["Mon"]\nfrom="{begin}"\nuntil="{end}"\n'
        f'time_zone="UTC"\nguaranteed={gpus}\n'
    )


@pytest.mark.parametrize(("is_by_admin", "first"), [(False, "waits"), (True, "held")])
def test_who_keeps_a_request_held_does_not_pass_who_waits_by_releasing_it(is_by_admin: bool, first: str) -> None:
    """Four people run cell after cell. Whom an admin had wait has waited (18)."""

    def hold(day: Day) -> None:
        day.tell(ev.RequestHeld(day.request_of("held"), "later", is_by_admin=is_by_admin))

    day = play(
        "", node("n", 1), many(4, 1, "x", "p", *[1700] * 10, think=1), opens(5, "held", "p", 300),
        opens(6000, "waits", "p", 300), at(7000, hi.ByHand(SessionId("held"), "release")),
        does=[(6, hold)], last=20_000,
    )  # fmt: skip
    assert min(("held", "waits"), key=lambda name: day.grants(name)[0]) == first


def test_who_waits_for_a_gpu_reads_that_slices_are_free_and_how_to_ask_for_one() -> None:
    day = play(
        "", at(0, hi.Joins(AgentId("n"), hi.gpus(1) + hi.slices(2))), opens(1, "ann", "p", 900),
        opens(2, "bob", "p", 60), many(2, 60, "small", "p", 300, gpu_type="MIG"),
        opens(80, "eve", "p", 60, gpu_memory_bytes=40 * hi.GB), last=900, asks=lambda second: second < 300,
    )  # fmt: skip
    said = [(second, answer.reason) for second, answer in day.told["bob"]]
    assert next(words for second, words in said if second < 60).startswith(
        "the only GPU is busy (2 slices are free: --gpu-type MIG)"
    )
    assert not any("slice" in words for second, words in said if second > 70)
    assert not any("slice" in answer.reason for _, answer in day.told["eve"])


def test_two_classes_that_overlap_by_ten_minutes_have_half_each_and_then_all() -> None:
    file = hours("a", "08:00", "09:30", 8) + hours("b", "09:20", "11:00", 8)
    begins, ends = 4800, 5400
    day = play(
        file, node("n0", 4), node("n1", 4), many(8, 60, "a", "a", *[120] * 60), many(8, begins, "b", "b", *[120] * 40),
        last=8000,
    )  # fmt: skip
    assert day.running(begins + RECLAIM_S, "a") == day.running(begins + RECLAIM_S, "b") == 4
    assert day.running(ends + RECLAIM_S, "b") == 8


@pytest.mark.parametrize("lab", ["", 'parent="lab"\n'])
def test_two_who_are_guaranteed_half_a_gpu_each_have_it_in_turn(lab: str) -> None:
    """No half is ever one GPU: they take turns, cell by cell, and have half of the time each."""
    file = "[projects.lab]\nguaranteed=1\n" * bool(lab)
    file += f"[projects.a]\n{lab}guaranteed=0.5\n[projects.b]\n{lab}guaranteed=0.5\n"
    day = play(
        file, node("n", 1), opens(1, "ann", "a", *[300] * 40, think=2), opens(30, "bob", "b", *[300] * 40, think=2),
        last=7200,
    )  # fmt: skip
    assert day.wait("bob") <= 300
    assert day.gpu_s("ann") == pytest.approx(day.gpu_s("bob"), rel=0.1)
    assert not day.losers()


def test_who_cancels_and_asks_again_has_nobody_lose_more_than_one_cell() -> None:
    """She stops each cell before its GPU is there. What comes free meanwhile runs somebody else's."""
    again = [opens(100 + 30 * n, f"ann{n}", "own", 60, user="ann", patience_ms=25_000) for n in range(20)]
    day = play(
        "[projects.own]\nguaranteed=1\n", node("n", 4), many(8, 1, "b", "lab", 5000, qos="batch"), again, last=900
    )
    assert sum(len(day.taken(name)) for name in names("b", 8)) <= 2
    assert day.gpu_s("", 100, 700) >= 0.95 * 4 * 600


def test_thirty_cells_in_the_background_keep_neither_their_own_user_nor_others_from_typing() -> None:
    background = many(30, 1, "bg", "p", 600, qos="batch", user="ann", apart=0.1, closes_ms=0)
    day = play(
        "", node("n", 4), background, opens(100, "typed", "p", 60, user="ann"), opens(110, "bob", "p", 60), last=900
    )
    assert day.waits("typed", "bob") <= GRACE_S + SOON_S
    refused = [day.refused(name) for name in names("bg", 30) if day.refused(name)]
    assert len(refused) == 30 - 8
    assert all("4 of your requests wait already" in words[0] for words in refused)


def test_who_always_asks_for_the_longest_time_has_no_more_than_others() -> None:
    file = '[qos.interactive]\nwalltime="4 h"\n'
    short = many(3, 2, "x", "p", *[100] * 60, think=5, time=600, closes_ms=0)
    greedy = opens(1, "greedy", "p", *[100] * 60, think=5, time=4 * 3600, closes_ms=0)
    day = play(file, node("n", 2), greedy, short, last=5000)
    had = [day.gpu_s(name) for name in ("greedy", *names("x", 3))]
    assert max(had) <= 1.1 * min(had)


def test_a_user_in_two_groups_has_no_more_of_either_by_that() -> None:
    file = "[projects.a]\nguaranteed=2\n[projects.b]\nguaranteed=2\n"
    day = play(
        file, node("n", 4), many(2, 1, "x", "a", 1700, user="ann"), many(2, 2, "y", "b", 1700, user="ann"),
        opens(100, "bob", "a", 300), opens(100, "cid", "b", 300), last=1800,
    )  # fmt: skip
    assert day.waits("bob", "cid") <= 120 + RECLAIM_S  # for their part of the project


def test_a_boost_until_a_time_that_is_past_changes_nothing() -> None:
    def boost(day: Day) -> None:
        day.tell(ev.UserBoosted(day.opened("c").project, day.opened("c").user, day.now_ms - 1000))

    people = [opens(n, name, "p", 300) for n, name in enumerate("abc", 1)]
    day = play("", node("n", 1), *people, does=[(10, boost)], last=1200)
    assert day.grants("b") < day.grants("c")


def test_whom_class_hours_alone_cover_reads_when_they_begin_though_the_last_ones_cells_run() -> None:
    day = play(
        hours("c", "08:00", "09:00", 2), node("n", 2), many(2, 3000, "r", "c", 1700, qos="reserved"),
        opens(3700, "late", "c", 60, qos="reserved"), last=3800, asks=lambda second: second > 3700,
    )  # fmt: skip
    assert "begin on Mon at 08:00" in day.told["late"][0][1].reason


def test_patience_that_is_cut_in_the_middle_of_the_day_passes_nobody_twice() -> None:
    """All of them are late at once: they go on in turn, as before."""
    file = '[qos.interactive]\npatience="{}"\n'
    people = many(6, 1, "a", "p", *[400] * 20, think=1)
    day = play(file.format("4 h"), node("n", 1), people, changes(3000, file.format("1 min")), last=9000)
    waits = [given - asked for n in names("a", 6) for asked, given in zip(day.asked(n), day.grants(n), strict=False)]
    assert max(waits) <= 5 * 401


def test_a_four_gpu_cell_of_three_hours_is_told_of_the_drain_and_starts_after_it() -> None:
    """The node is to be empty at 17:00, and back at 18:00; small ones use it until then."""
    drain_s, back_s = 9000, 12_600
    day = play(
        "", node("n", 4), node("m", 2), opens(10, "big", "b", 3 * 3600, gpus=4, time=4 * 3600, qos="batch"),
        many(8, 60, "x", "c", *[600] * 40, think=2, time=900), at(5, hi.PlansDrain(AgentId("n"), (drain_s - 5) * 1000)),
        at(back_s, hi.Drains(AgentId("n"), is_drained=False)), last=9 * 3600, asks=lambda second: 10 <= second < 12,
    )  # fmt: skip
    assert "node n is drained in 2 h, before yours could end" in day.told["big"][0][1].reason
    assert day.gpu_s("x", 100, 8000) >= 0.95 * 6 * 7900
    assert day.grants("big")[0] <= max(back_s, 10 + 4 * 3600) + 900 + SOON_S
