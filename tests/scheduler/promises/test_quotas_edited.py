"""The quota file is edited while cells run: guarantees halved, projects moved and removed, limits below what runs."""

import pytest

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, changes, many, names, node, opens, play


@pytest.mark.parametrize("left", [3, 2, 1, 0])
def test_what_a_guarantee_no_longer_covers_goes_to_whom_it_is_guaranteed_now(left: int) -> None:
    """Whatever is borrowed can be taken back; nothing that a guarantee covers is (2)."""
    new = 4 - left
    day = play(
        "[projects.a]\nguaranteed=4\n[projects.b]\n", node("n", 4), many(4, 10, "a", "a", 5000, qos="batch"),
        changes(500, f"[projects.a]\nguaranteed={left}\n[projects.b]\nguaranteed={new}\n"),
        many(new, 501, "b", "b", 600), last=1000,
    )  # fmt: skip
    assert day.waits(*names("b", new)) <= GRACE_S + SOON_S
    assert len(day.losers()) == new


@pytest.mark.parametrize("is_busy", [True, False])
def test_a_limit_below_what_runs_waits_for_running_cells_and_sends_hot_sessions_away(is_busy: bool) -> None:
    """`limit` is never exceeded, hot sessions included (8); leases go on."""
    day = play(
        "[projects.a]\nlimit=4\n", node("n", 4), many(4, 10, "a", "a", 1000 if is_busy else 30),
        changes(100, "[projects.a]\nlimit=2\n"), opens(200, "x", "a", 60),
        last=1500, delays=hi.Delays(evict_ms=500),
    )  # fmt: skip
    assert not day.losers()
    if is_busy:
        assert 1010 <= day.grants("x")[0] <= 1010 + 0.5 + SOON_S
    else:
        assert day.wait("x") <= 0.5 + SOON_S
        assert sum(bool(day.evicted(name)) for name in names("a", 4)) >= 3


@pytest.mark.parametrize("rule", ['walltime="10 min"', "gpus_per_cell=1", 'qos=["batch"]'])
@pytest.mark.parametrize("is_busy", [True, False])
def test_a_rule_below_what_a_session_has_sends_it_away_when_its_cell_is_over(rule: str, is_busy: bool) -> None:
    """No cell is more than the rules of its project and its class give (8); leases go on, and nobody has to wait."""
    day = play(
        "[projects.a]\n", node("n", 4), opens(10, "x", "a", 300 if is_busy else 30, gpus=2),
        opens(20, "y", "b", 30, gpus=2), changes(100, f"[projects.a]\n{rule}\n"), last=1000,
    )  # fmt: skip
    assert not day.losers()
    [left] = day.evicted("x")
    assert left == pytest.approx(310 if is_busy else 100, abs=SOON_S)
    assert not day.evicted("y")


@pytest.mark.parametrize(
    "after",
    [
        "[projects.b]\nguaranteed=1\n",
        '[projects.d]\nguaranteed=2\n[projects.a]\nparent="d"\n[projects.b]\nparent="d"\nguaranteed=1\n',
        '[projects.b]\nguaranteed=1\n[projects.a]\nparent="b"\n',
    ],
    ids=["removed", "moved beside", "moved inside"],
)
def test_who_is_guaranteed_a_gpu_has_it_whatever_became_of_the_project_that_has_it(after: str) -> None:
    """The one definition of what is borrowed is of now; what is guaranteed comes within the reclaim time (1)."""
    day = play(
        "[projects.a]\nguaranteed=2\n[projects.b]\n", node("n", 2), many(2, 10, "a", "a", 2000),
        changes(500, after), opens(600, "b", "b", 60), last=1000,
    )  # fmt: skip
    assert day.wait("b") <= GRACE_S + SOON_S
    assert len(day.losers()) == 1


def test_a_users_hot_session_leaves_where_its_users_limit_is_full() -> None:
    """`user_limit` is never exceeded, hot sessions included (8)."""
    day = play(
        "[projects.a]\nuser_limit=1\n", node("n", 4), opens(10, "x", "a", 30, 30, think=500, user="u"),
        opens(100, "y", "a", 600, user="u"), last=1500, delays=hi.Delays(evict_ms=500),
    )  # fmt: skip
    assert day.wait("y") <= 0.5 + SOON_S
    assert day.most("x") == day.most() == 1
    assert day.spans["x"][1].begin >= 700


def test_a_users_second_long_cell_does_not_wait_for_a_hot_session() -> None:
    """`running_per_user` is never exceeded, hot sessions included, and a hot one leaves (8, 5)."""
    day = play(
        "", node("n", 4), opens(10, "x", "a", 30, user="u", qos="long"), opens(100, "y", "a", 60, user="u", qos="long"),
        last=300, delays=hi.Delays(evict_ms=500),
    )  # fmt: skip
    assert day.wait("y") <= 0.5 + SOON_S


def test_no_more_requests_of_a_user_wait_than_their_class_allows() -> None:
    """No more requests of a user wait than `queued_per_user` of their class (8); each refusal says why (15)."""
    day = play(
        "", node("n", 1), opens(1, "z", "a", 2000, user="v"), many(6, 10, "x", "a", 60, user="u", qos="batch"), last=300
    )  # fmt: skip
    refused = [day.refused(name) for name in names("x", 6)]
    assert [bool(words) for words in refused] == [False] * 4 + [True] * 2
    assert "4 of your requests wait already" in refused[5][0]


@pytest.mark.parametrize(("mine", "rest"), [(1, 1), (3, 1)])
def test_what_is_left_is_shared_by_weight(mine: int, rest: int) -> None:
    """Then the one that would have the least of the surplus for its weight (21)."""
    day = play(
        f"[projects.a]\nweight={mine}\n[projects.b]\nweight={rest}\n", node("n", 4),
        many(4, 10, "a", "a", *[100] * 15), many(4, 12, "b", "b", *[100] * 15), last=1400,
    )  # fmt: skip
    assert day.gpu_s("a", 300, 1400) / 1100 == pytest.approx(4 * mine / (mine + rest), abs=0.5)


def test_who_has_more_priority_takes_all_of_the_surplus_and_gives_none_back() -> None:
    """A project of higher `priority` takes all of the surplus (quotas, shares)."""
    cells = [node("n", 4), *many(4, 10, "a", "a", 5000, qos="batch"), *many(4, 100, "b", "b", 5000, qos="batch")]
    assert play("[projects.b]\npriority=1\n", cells, last=300).running(100 + 120 + GRACE_S + 2, "b") == 4
    assert play("[projects.a]\npriority=1\n", cells, last=2000).running(1999, "b") == 0


def test_cells_are_covered_in_the_order_in_which_they_were_granted_also_where_their_class_changes() -> None:
    """The session that was granted its GPU first begins later; then one of the two is borrowed: the other one (2)."""
    firm = "[qos.interactive]\nmust_be_in_quota=true\n[projects.lab]\nguaranteed=1\n[projects.course]\nguaranteed=1\n"
    day = play(
        "[projects.lab]\nguaranteed=2\n", node("n", 2), opens(1, "first0", "lab", 5000),
        opens(2, "second0", "lab", 5000), changes(100, firm), opens(300, "course", "course", 600, qos="batch"),
        last=900, delays=hi.Delays(start_ms=30_000),
    )  # fmt: skip
    assert day.spans["second0"][0].begin < day.spans["first0"][0].begin
    assert day.losers() == {"second0"}
