"""What counts in a reservation, and what stays where it is."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.one_gpu import LONG, ask
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import POOL, ask as crowd, join, left, look, quotas, reserve

#: Histories begin at nine; the exam is from twenty past nine to twenty to eleven.
BEGIN_S, END_S = 1200, 6000
EXAM = "[projects.cs]\n" + reserve("exam", "cs", 1, "09:20", "10:40", "zoe")


def test_what_waits_counts_in_a_reservation_from_its_beginning() -> None:
    seen = look(
        quotas(EXAM),
        nodes(1, 1),
        ask(1, "far", "far", 10 * HOUR_S),
        ask(1150, "zoe", "cs", 100, user="zoe"),
        last=2000,
    )
    assert seen.granted("zoe") == BEGIN_S + 30


def test_what_runs_stays_where_it_is_and_uses_nothing_of_it() -> None:
    seen = look(
        quotas(EXAM),
        nodes(1, 2),
        ask(1, "far", "far", 10 * HOUR_S),
        ask(2, "runs", "cs", 10 * HOUR_S, user="zoe"),
        at(BEGIN_S + 100, notebook("zoe", "cs", 100, user="zoe")),
        last=2000,
    )
    assert seen.wait("zoe") <= 30


def test_what_was_used_in_it_is_past_use_of_the_user_in_the_project() -> None:
    seen = look(
        quotas("[projects.cs]\n" + reserve("exam", "cs", 2, "09:20", "10:40", "zoe")),
        nodes(1, 2),
        ask(BEGIN_S + 1, "past", "cs", 4000, user="zoe", gpus=2),
        at(END_S + 1000, notebook("holder", "far", 600, gpus=2, closes_ms=0)),
        ask(END_S + 1010, "zoe", "cs", user="zoe", gpus=2),
        ask(END_S + 1060, "bob", "cs", gpus=2),
        last=END_S + 2000,
    )
    assert seen.granted("bob") < seen.granted("zoe")


def test_no_more_is_taken_back_in_a_node_pool_than_is_guaranteed_there() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 1 }\n[projects.course]\nguaranteed = 4\n"),
        join(),
        crowd(1, 4, "course", 10 * HOUR_S, gpu_type="H100", **LONG),
        crowd(2, 4, "far", 10 * HOUR_S, gpu_type="L4", **LONG),
        crowd(700, 3, "lab", 1000, gpu_type="H100"),
        last=800,
    )
    assert left(seen, "course") == 1


def test_nodes_that_are_gone_cost_those_alone_that_are_guaranteed_their_pool() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\n"),
        join(),
        crowd(1, 4, "far", 10 * HOUR_S, gpu_type="L4", **LONG),
        at(100, hi.GoesSilent(AgentId("fast"))),
        crowd(700, 4, "course", 1000),
        last=800,
    )
    assert left(seen, "far") == 4


def test_who_waits_comes_before_others_of_the_project_where_a_reservation_for_them_begins() -> None:
    seen = look(
        quotas(EXAM),
        nodes(1, 1),
        ask(1, "far", "far", 10 * HOUR_S),
        ask(1100, "bob", "cs", 300),
        ask(1150, "zoe", "cs", 100, user="zoe"),
        last=2000,
    )
    assert seen.granted("zoe") == BEGIN_S + 30
    assert seen.granted("bob") > BEGIN_S + 30


def test_what_runs_when_a_reservation_begins_leaves_all_of_it_to_those_who_have_it() -> None:
    seen = look(
        quotas("[projects.cs]\n" + reserve("exam", "cs", 2, "09:20", "10:40", "zoe", "yan")),
        nodes(1, 3),
        ask(1, "runs", "cs", 10 * HOUR_S, user="zoe"),
        crowd(2, 2, "far", 10 * HOUR_S, **LONG),
        ask(BEGIN_S + 100, "zoe", "cs", 1000, user="zoe"),
        ask(BEGIN_S + 101, "yan", "cs", 1000, user="yan"),
        last=2000,
    )
    assert max(seen.wait("zoe"), seen.wait("yan")) <= 30
