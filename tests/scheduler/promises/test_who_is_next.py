"""Among those who stand alike it is known who is next: all wait for the same GPU."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.one_gpu import ask, line
from tests.scheduler.promises.seen import DAY_S, HOUR_S, at, notebook
from tests.scheduler.promises.stories import H100, L4, look, quotas


def test_the_higher_class_is_next() -> None:
    assert line("", ask(1010, "batch", "a"), ask(1020, "typing", "b", qos="interactive")) == "typing batch"


def test_the_project_of_more_priority_is_next() -> None:
    assert line("[projects.b]\npriority = 5\n", ask(1010, "a", "a"), ask(1020, "b", "b")) == "b a"


def test_the_project_that_used_less_before_is_next() -> None:
    assert line("", ask(1, "past", "a", 300), ask(1010, "a", "a"), ask(1020, "b", "b")) == "b a"


def test_what_was_used_inside_a_project_is_its_own_past() -> None:
    text = '[projects.d]\n[projects.one]\nparent = "d"\n[projects.two]\nparent = "d"\n'
    assert line(text, ask(1, "past", "one", 300), ask(1010, "d", "two"), ask(1020, "b", "b")) == "b d"


def test_past_use_counts_for_half_after_a_week() -> None:
    later = 14 * DAY_S
    order = line(
        "",
        ask(1, "past", "a", HOUR_S),
        ask(later - HOUR_S, "recent", "b", HOUR_S / 2),
        ask(later + 10, "b", "b"),
        ask(later + 20, "a", "a"),
        begin=later,
    )
    assert order == "a b"


def test_past_use_counts_by_the_factor_of_its_class() -> None:
    text = '[qos.cheap]\nwalltime = "1 h"\nusage_factor = 0.25\n'
    before = [ask(1, "past-a", "a", 400, qos="cheap"), ask(500, "past-b", "b", 200)]
    assert line(text, before, ask(1010, "b", "b"), ask(1020, "a", "a")) == "a b"


def test_past_use_counts_by_its_price() -> None:
    seen = look(
        quotas("[prices]\nH100 = 4.0\nL4 = 1.0\n"),
        at(0, hi.Joins(AgentId("fast"), hi.gpus(1, H100))),
        at(0, hi.Joins(AgentId("slow"), hi.gpus(1, L4))),
        ask(1, "past-a", "a", 200, gpu_type="L4"),
        ask(1, "past-b", "b", 100, gpu_type="H100"),
        at(1000, notebook("holder", "holder", 100, gpu_type="L4", closes_ms=0)),
        ask(1010, "b", "b", gpu_type="L4"),
        ask(1020, "a", "a", gpu_type="L4"),
        last=1500,
    )
    assert seen.granted("a") < seen.granted("b")


@pytest.mark.parametrize(("hours", "later_s", "first"), [(2, 90, "b"), (2, 150, "a"), (23, 570, "b"), (23, 640, "a")])
@pytest.mark.parametrize("is_told_anew", [False, True])
def test_a_user_is_put_back_by_a_minute_for_each_hour_that_they_used_and_ten_at_most(
    hours: int, later_s: int, first: str, is_told_anew: bool
) -> None:
    begin = 24 * HOUR_S
    happenings = [
        ask(1, "past", "p", hours * HOUR_S, user="a"),
        ask(begin + 10, "a", "p", user="a"),
        ask(begin + 10 + later_s, "b", "p", user="b"),
    ]
    if is_told_anew:
        happenings.append(at(begin + 5, hi.Changes(quotas("[projects.new]\n"))))
    assert line("", happenings, begin=begin, hold=1200).split()[0] == first


def test_each_further_request_is_put_back_by_ten_seconds() -> None:
    many = [ask(1010, f"many{number}", "p", user="many", qos="interactive") for number in range(6)]
    assert line("", many, ask(1035, "one", "p", qos="interactive")).split()[:4] == ["many0", "many1", "many2", "one"]


def test_within_ten_seconds_the_shorter_one_is_next() -> None:
    short = ask(1013, "short", "p", walltime_ms=60_000)
    assert line("", ask(1011, "long", "p"), short) == "short long"
    assert line("", ask(1011, "long", "p"), ask(1035, "short", "p", walltime_ms=60_000)) == "long short"


def test_the_user_who_uses_less_is_next() -> None:
    runs = ask(900, "runs", "p", HOUR_S, user="a")
    assert line("", runs, ask(1010, "a", "p"), ask(1020, "b", "p"), gpus=2) == "b a"


@pytest.mark.parametrize("weight", [1, 3])
def test_the_surplus_goes_by_weight(weight: int) -> None:
    waiting = [ask(1010, f"{name}{n}", name, 400) for name in "ab" for n in range(8)]
    order = line(
        f"[projects.b]\nweight = {weight}\n",
        at(999, notebook("all", "holder", 101, gpus=7, closes_ms=0)),
        waiting,
        gpus=8,
    )
    first = order.split()[:8]
    assert sum(session.startswith("b") for session in first) == {1: 4, 3: 6}[weight]


def test_the_surplus_is_what_a_project_uses_above_its_guarantee() -> None:
    running = [ask(900 + n, f"a-runs{n}", "a", HOUR_S) for n in range(2)] + [ask(903, "b-runs", "b", HOUR_S)]
    text = "[projects.a]\nguaranteed = 2\n"
    assert line(text, running, ask(1010, "b", "b"), ask(1020, "a", "a"), gpus=4) == "a b"


INSIDE = (
    '[projects.d]\nguaranteed = {own}\n[projects.one]\nparent = "d"\nguaranteed = {one}\n[projects.two]\nparent = "d"\n'
)


def test_the_users_of_a_project_pay_for_what_they_use_alone() -> None:
    running = [ask(900 + n, f"runs{n}", name, HOUR_S) for n, name in enumerate(("one", "two", "two"))]
    text = INSIDE.format(own=0, one=0)
    assert line(text, running, ask(1010, "one", "one"), ask(1020, "own", "d"), gpus=4) == "own one"


def test_the_users_of_a_project_have_what_its_parts_leave_of_the_guarantee() -> None:
    running = [ask(900 + n, f"runs{n}", "d", HOUR_S) for n in range(2)]
    text = INSIDE.format(own=3, one=2)
    assert line(text, running, ask(1010, "own", "d"), ask(1020, "two", "two"), gpus=3).split()[0] == "two"
