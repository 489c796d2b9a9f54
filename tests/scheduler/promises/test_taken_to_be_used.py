"""Whoever has a cell taken back has its GPU then, and what is owed comes. Each of these once failed."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas

#: Processes start and end, and who asks again is heard.
SOON_S = 3
RUNS = {"qos": "batch", "closes_ms": 0}
WIDE = {"cpus": 30, "closes_ms": 0}


def wide_node(gpus: int = 2) -> hi.At:
    return at(0, hi.Joins(AgentId("n0"), hi.gpus(gpus), cpus=32, memory_bytes=256 << 30))


def test_no_lender_loses_what_its_lending_limit_would_keep_then() -> None:
    """What the lender gave back would be its own again; so batch of the own project makes room."""
    seen = look(
        quotas("[projects.lender]\nguaranteed = 1\nlending_limit = 0\n[projects.lab]\nguaranteed = 2\n"),
        nodes(1, 2),
        at(1, notebook("typing", "lender", HOUR_S)),
        at(100, notebook("batch", "lab", HOUR_S, **RUNS)),
        at(120, notebook("firm", "lab", 600, qos="reserved")),
        last=900,
    )
    assert seen.asked_to_leave("typing") == []
    assert seen.granted("firm") <= 190 + SOON_S


def test_no_cell_goes_for_its_own_project_where_somebody_larger_is_to_have_it_before_that_is_over() -> None:
    text = '[projects.lab]\nguaranteed = 2\n[qos.interactive]\nmin_runtime = "5 min"\n'
    seen = look(
        quotas(text + '[qos.batch]\nwalltime = "1 d"\ngrace = "0 s"\n'),
        nodes(1, 2),
        at(1, notebook("other", "other", HOUR_S)),
        at(2, notebook("batch", "guests", HOUR_S, **RUNS)),
        at(10, notebook("large", "lab", 600, gpus=2)),
        at(20, notebook("typing", "guests", 600, closes_ms=0)),
        last=900,
    )  # fmt: skip
    assert [second for second in seen.asked_to_leave("batch") if second < 290] == []
    assert seen.granted("large") <= 331 + SOON_S


def test_who_waits_for_a_hot_session_of_its_department_leaves_free_what_is_kept_and_takes_nothing_for_that() -> None:
    text = '[projects.dep]\nlimit = 2\n[projects.a]\nparent = "dep"\nguaranteed = 3\n'
    seen = look(
        quotas(text + '[projects.b]\nparent = "dep"\nguaranteed = 4\nlending_limit = 0\n[projects.guest]\n'),
        nodes(1, 6),
        at(1, notebook("one", "dep", HOUR_S, **RUNS)),
        at(2, notebook("short", "a", 200, closes_ms=0)),
        at(100, notebook("waits", "dep", HOUR_S, **RUNS)),
        at(110, notebook("guest", "guest", HOUR_S, **RUNS)),
        last=600,
        evict_ms=5000,
    )
    assert seen.granted("waits") <= 202 + 5 + SOON_S
    assert seen.asked_to_leave("guest") == []


def test_a_department_does_not_stand_behind_others_for_what_a_project_inside_it_took() -> None:
    text = '[projects.dep]\npriority = 5\n[projects.inner]\nparent = "dep"\npriority = 5\n[projects.guest]\n'
    seen = look(
        quotas(text + '[qos.batch]\nwalltime = "1 d"\ngrace = "0 s"\n'),
        nodes(1, 1),
        at(1, notebook("own", "dep", HOUR_S, **RUNS)),
        at(10, notebook("inner", "inner", HOUR_S, **RUNS)),
        at(20, notebook("guest", "guest", HOUR_S, **RUNS)),
        last=600,
    )
    assert seen.asked_to_leave("own") == [130]
    assert seen.granted("inner") <= 130 + SOON_S
    assert seen.granted("guest") > 600


def test_who_has_a_cell_of_its_project_go_is_covered_although_somebody_larger_waits_before_it() -> None:
    """What goes for `types` is nobody else's: so `wide` is promised nothing of it, and `plain` has what is free."""
    text = '[projects.lab]\nguaranteed = 1\n[projects.mine]\nguaranteed = 1\n[qos.interactive]\npatience = "5 min"\n'
    seen = look(
        quotas(text),
        wide_node(),
        at(1, notebook("batch", "lab", HOUR_S, **RUNS | WIDE)),
        at(2, notebook("busy", "mine", 598, closes_ms=0)),
        at(10, notebook("large", "lab", HOUR_S, gpus=2, closes_ms=0)),
        at(20, notebook("guest", "guest", HOUR_S, closes_ms=0)),
        at(400, notebook("wide", "mine", HOUR_S, **WIDE)),
        at(410, notebook("plain", "mine", HOUR_S, **RUNS)),
        at(590, notebook("types", "lab", HOUR_S, **WIDE)),
        last=900,
    )
    assert seen.granted("types") <= 620 + SOON_S
    assert seen.granted("plain") <= 600 + SOON_S


def test_no_cell_goes_for_one_whose_own_project_has_a_late_request_that_would_keep_the_node() -> None:
    text = '[projects.lab]\nguaranteed = 1\n[projects.mine]\nguaranteed = 1\n[qos.interactive]\npatience = "1 min"\n'
    seen = look(
        quotas(text + 'walltime = "2 h"\n[qos.batch]\nwalltime = "1 d"\npatience = "1 min"\nshare_after = "1 d"\n'),
        wide_node(),
        at(1, notebook("batch", "lab", HOUR_S, **RUNS)),
        at(2, notebook("busy", "mine", HOUR_S, cpus=16, closes_ms=0, walltime_ms=1_800_000)),
        at(5, notebook("large", "guest", HOUR_S, gpus=2, **RUNS | {"cpus": 16})),
        at(10, notebook("wide", "lab", HOUR_S, user="ann", **WIDE)),
        at(100, notebook("types", "lab", HOUR_S, user="ann", cpus=16, closes_ms=0)),
        last=600,
    )
    assert seen.asked_to_leave("batch") == []


def test_who_leaves_a_place_to_a_higher_class_of_its_project_has_another_one_made_free() -> None:
    text = "[projects.lab]\nguaranteed = 3\n[projects.mine]\nguaranteed = 1\n"
    seen = look(
        quotas(text),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(1))),
        [at(0.1 * n, hi.Joins(AgentId(f"n{n}"), hi.gpus(2))) for n in (1, 2)],
        at(1, notebook("first", "others", HOUR_S)),
        at(2, notebook("batch", "lab", HOUR_S, **RUNS)),
        at(3.9, notebook("second", "elsewhere", HOUR_S)),
        at(4, notebook("young", "others", HOUR_S, **RUNS)),
        at(61.2, notebook("runs", "lab", HOUR_S)),
        at(62.3, notebook("yields", "lab", HOUR_S, **RUNS)),
        at(62.4, notebook("mine", "mine", HOUR_S)),
        at(63.2, notebook("types", "lab", HOUR_S)),
        last=300,
    )
    assert seen.granted("mine") <= 64 + 30 + SOON_S


def test_who_never_borrows_has_what_class_hours_guarantee_its_project_whatever_the_department_uses() -> None:
    text = '[projects.dep]\n[projects.other]\nparent = "dep"\n[projects.cs]\nparent = "dep"\n'
    text += '[projects.cs.class_hours.lecture]\ndays = ["Thu"]\nfrom = "08:00"\nuntil = "12:00"\nguaranteed = 1\n'
    seen = look(
        quotas(text + 'time_zone = "UTC"\n'),
        nodes(1, 2),
        at(1, notebook("other", "other", HOUR_S, gpus=2, **RUNS)),
        at(100, notebook("firm", "cs", 600, qos="reserved")),
        last=600,
    )
    assert seen.granted("firm") <= 130 + SOON_S


def test_who_has_waited_for_its_part_does_not_wait_for_one_who_lost_a_cell_lately() -> None:
    seen = look(
        quotas(""),
        nodes(1, 2),
        at(1, notebook("a", "lab", 590, user="bob", walltime_ms=600_000, **RUNS)),
        at(2, notebook("back", "lab", HOUR_S, user="ann", **RUNS)),
        at(115, notebook("waits", "lab", HOUR_S, user="cid", **RUNS)),
        at(200, notebook("typing", "lab", HOUR_S, user="bob", closes_ms=0)),
        last=600,
    )
    assert seen.asked_to_leave("back") == [200]
    assert seen.asked_to_leave("a")[0] <= 235 + SOON_S
    assert seen.granted("waits") <= 265 + 2 * SOON_S


def test_a_user_has_their_part_back_where_who_took_it_has_had_another_one_since() -> None:
    seen = look(
        quotas(""),
        nodes(1, 2),
        at(1, notebook("ends", "lab", 300, user="ann", **RUNS)),
        at(2, notebook("stays", "lab", HOUR_S, user="ann", **RUNS)),
        at(100, notebook("took", "lab", HOUR_S, user="bob", **RUNS)),
        at(400, notebook("typing", "lab", HOUR_S, user="bob", closes_ms=0)),
        last=900,
    )
    assert seen.asked_to_leave("stays")[1:] == [400]
    assert 540 <= seen.asked_to_leave("took")[0] <= 560


def test_what_lenders_let_through_once_a_cell_has_gone_is_for_no_lower_class_of_the_project_on_another_node() -> None:
    text = '[projects.dep]\n[projects.lender]\nparent = "dep"\nguaranteed = 2\nlending_limit = 1\n'
    seen = look(
        quotas(
            text + "[projects.one]\nguaranteed = 1\n[projects.two]\nguaranteed = 1\n"
            '[qos.firm]\nwalltime = "10 h"\nmust_be_in_quota = true\nqueued_per_user = 9\n'
        ),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(1))),
        at(0, hi.Joins(AgentId("n1"), hi.gpus(2))),
        at(1, notebook("firm", "dep", HOUR_S, qos="firm", closes_ms=0)),
        at(2, notebook("next", "dep", HOUR_S, qos="firm", closes_ms=0)),
        at(10, notebook("large", "dep", 600, gpus=2, closes_ms=0)),
        last=900,
    )
    assert seen.asked_to_leave("firm") == [61]
    assert seen.granted("large") <= 91 + SOON_S


def test_no_cell_goes_where_a_late_request_of_its_user_whom_it_kept_waiting_is_to_have_the_node_then() -> None:
    few = '[qos.few]\npriority = 100\nwalltime = "10 min"\nrunning_per_user = 1\npatience = "5 min"\n'
    seen = look(
        quotas("[projects.lab]\n[projects.guests]\n" + few),
        nodes(1, 2),
        at(1, notebook("other", "guests", 1790, closes_ms=0)),
        at(2, notebook("large", "lab", 60, user="ann", qos="few", gpus=2, closes_ms=0)),
        at(3, notebook("small", "lab", 590, user="ann", qos="few", closes_ms=0)),
        at(400, notebook("typing", "lab", 60, user="bob", closes_ms=0)),
        last=HOUR_S,
    )
    assert seen.asked_to_leave("small") == [593], "hot, once its cell is over"
    assert seen.granted("large") <= 1791 + SOON_S
    assert seen.granted("typing") <= 1851 + 2 * SOON_S


def test_who_is_late_and_may_start_nowhere_keeps_what_lenders_let_through_from_nobody() -> None:
    lender = "[projects.lender]\nguaranteed = 2\nlending_limit = 1\n"
    seen = look(
        quotas(lender + "[projects.dep]\nguaranteed = 1\n[projects.others]\nguaranteed = 3\n"),
        [at(0, hi.Joins(AgentId(f"n{n}"), hi.gpus(2), cpus=32)) for n in range(3)],
        [at(1 + n, notebook(f"other{n}", "others", 8 * HOUR_S, qos="batch", cpus=30, closes_ms=0)) for n in range(3)],
        at(10, notebook("large", "dep", 600, gpus=2, closes_ms=0)),
        at(1900, notebook("one", "dep", 600, **RUNS)),
        last=4 * HOUR_S,
    )
    assert seen.granted("one") <= 1900 + SOON_S
