"""Who has waited for their patience is next, in their turn: all wait for the same GPU."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.one_gpu import ask, line
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG, ask as asks, look, quotas, waits

#: Nobody takes a share, so that only the line decides.
SLOW = '[qos.slow]\nwalltime = "1 h"\npriority = 50\npatience = "5 min"\nshare_after = "1 d"\n'
TYPING = SLOW + '[qos.typing]\nwalltime = "30 min"\npriority = 150\npatience = "1 h"\nshare_after = "1 d"\n'


def slow(second: float, session: str, project: str, *runs: float, **more: object) -> hi.At:
    return ask(second, session, project, *runs, **({"qos": "slow"} | more))


def typing(second: float, session: str, project: str, *runs: float, **more: object) -> hi.At:
    return ask(second, session, project, *runs, **({"qos": "typing"} | more))


def test_who_has_waited_for_their_patience_stands_before_a_higher_class() -> None:
    late = line(TYPING, slow(1000, "slow", "a"), typing(1100, "typing", "b"), hold=400)
    early = line(TYPING, slow(1150, "slow", "a"), typing(1160, "typing", "b"), hold=400)
    assert (late, early) == ("slow typing", "typing slow")


def test_they_do_inside_a_project_too() -> None:
    assert line(TYPING, slow(1000, "slow", "p"), typing(1100, "typing", "p"), hold=400) == "slow typing"


def test_what_begins_for_having_waited_goes_for_a_higher_class_of_its_project_once_in_each_patience() -> None:
    """Both who type have waited for their patience, too; the slow cell has a minute and its grace between them."""
    seen = look(
        quotas(TYPING.replace('patience = "1 h"', 'patience = "10 min"')),
        nodes(1, 1),
        typing(1, "runs", "p", 1500),
        slow(10, "slow", "p", HOUR_S, walltime_ms=3_600_000),
        typing(100, "types0", "p", 100),
        typing(101, "types1", "p", 100),
        last=2000,
    )
    assert seen.asked_to_leave("slow") == [1501 + 60]
    assert seen.granted("types0") == 1501 + 60 + 30
    assert seen.granted("types1") == seen.granted("types0") + 100


def test_patience_is_noticed_by_the_timer_alone() -> None:
    """A GPU is free for whoever is over before a larger request starts; who is late stands before that one."""
    seen = look(
        quotas(TYPING),
        nodes(1, 2),
        slow(1, "runs", "c", HOUR_S),
        typing(10, "large", "a", 100, gpus=2),
        slow(20, "small", "b", HOUR_S),
        last=1000,
    )
    assert seen.granted("small") == 320


def test_what_a_limit_has_left_is_kept_for_who_is_late() -> None:
    seen = look(
        quotas(TYPING + "[projects.p]\nlimit = 2\n"),
        nodes(1, 3),
        slow(1, "runs", "p", 600),
        slow(2, "more", "p", 2000),
        slow(10, "large", "p", 100, gpus=2),
        *(slow(20 + 10 * n, f"small{n}", "p", 600) for n in range(3)),
        last=3000,
    )
    assert seen.granted("large") == 2002


def test_who_has_waited_longest_is_first_of_those() -> None:
    order = line(TYPING, slow(1000, "first", "a"), slow(1020, "second", "b"), hold=400)
    used = ask(1, "past", "a", 300)
    again = line(TYPING, used, slow(1000, "first", "a"), slow(1020, "second", "b"), hold=400)
    assert (order, again) == ("first second", "first second")


def test_of_several_requests_of_a_user_and_several_users_of_a_project_one_passes_others_in_each_patience() -> None:
    for user in ("ann", "bob"):
        order = line(
            TYPING,
            slow(1000, "one", "a", user="ann"),
            slow(1001, "two", "a", user=user),
            [typing(1100 + n, f"b{n}", "b", 50) for n in range(10)],
            hold=400,
        )
        waited = order.split()
        assert waited[0] == "one"
        assert waited[6:8] == ["b5", "two"] or waited[7:9] == ["b6", "two"], order


def test_new_settings_make_nobody_late_again() -> None:
    order = line(
        TYPING,
        slow(1000, "one", "a", 50, user="ann"),
        slow(1001, "two", "a", user="ann"),
        typing(1100, "typing", "a", user="bob"),
        at(1420, hi.Changes(quotas(TYPING + "[projects.new]\n"))),
        hold=400,
    )
    assert order == "one typing two"


def test_a_request_that_was_withdrawn_took_nobodys_place() -> None:
    order = line(
        TYPING,
        slow(1000, "one", "a", user="ann", patience_ms=350_000),
        slow(1001, "two", "a", user="ann"),
        typing(1100, "typing", "a", user="bob"),
        hold=400,
    )
    assert order == "two typing"


def test_a_request_on_hold_has_nothing_kept_for_it() -> None:
    text = TYPING + "[projects.p]\nlimit = 2\n"
    seen = look(
        quotas(text),
        nodes(1, 3),
        slow(1, "runs", "p", HOUR_S),
        slow(10, "large", "p", 100, gpus=2),
        slow(400, "small", "p", 100),
        at(500, hi.ByHand("large", "hold")),  # type: ignore[arg-type]
        last=1000,
    )
    assert seen.granted("small") == 500


def test_who_holds_requests_is_put_back_by_them() -> None:
    many = [ask(1010, f"many{number}", "p", user="ann", qos="interactive") for number in range(6)]
    held = [at(1011, hi.ByHand(f"many{number}", "hold")) for number in range(6)]  # type: ignore[arg-type]
    last = ask(1012, "last", "p", user="ann", qos="interactive")
    assert line("", many, held, last, ask(1040, "bob", "p", qos="interactive")) == "bob last"


def test_who_was_put_first_later_stands_before_who_was_before() -> None:
    first = [at(1020 + n, hi.ByHand(name, "put-first")) for n, name in enumerate(("b", "c"))]  # type: ignore[arg-type]
    asks = [ask(1010 + 0.1 * n, name, "p") for n, name in enumerate("abc")]
    assert line("", *asks, *first) == "c b a"


def test_who_is_boosted_stands_before_the_other_users() -> None:
    boost = at(1030, hi.ByHand("b", "boost"))  # type: ignore[arg-type]
    assert line("", ask(1010, "a", "p"), ask(1025, "b", "p"), boost) == "b a"


def test_who_has_not_waited_for_a_longer_patience_that_is_set_keeps_no_limit_from_others() -> None:
    text = '[projects.lab]\nlimit = 2\n[qos.batch]\nwalltime = "1 d"\nshare_after = "1 d"\npatience = "{}"\n'
    seen = look(
        quotas(text.format("1 min")),
        nodes(1, 3),
        at(1, notebook("guest", "guests", 20 * HOUR_S, gpus=2, qos="batch")),
        at(10, notebook("large", "lab", HOUR_S, gpus=2, qos="batch")),
        at(100, notebook("small", "lab", HOUR_S, qos="batch", walltime_ms=HOUR_S * 1000)),
        at(200, hi.Changes(quotas(text.format("1 h")))),
        last=300,
    )
    assert 200 <= seen.granted("small") <= 201


def test_a_higher_class_has_none_of_the_limit_that_is_kept_but_what_a_lower_one_gives_back() -> None:
    """The large one needs two of the department's three GPUs, and waits for those of the guests' node."""
    seen = look(
        quotas('[projects.dep]\nlimit = 3\n[projects.lab]\nparent = "dep"\n'),
        [*nodes(1, 2), *(at(0.1, hi.Joins(AgentId(f"small{n}"), hi.gpus(1))) for n in range(2))],
        asks(1, 1, "guests", 3999, name="guest", gpus=2, closes_ms=0, **LONG),
        asks(2, 1, "dep", BATCH_S, name="batch", **LONG),
        asks(3, 1, "guests", 2997, name="other", closes_ms=0, **LONG),
        asks(100, 1, "lab", 900, name="large", gpus=2),
        asks(3100, 1, "dep", 1700, name="typed"),
        last=2 * HOUR_S,
    )
    assert waits(seen, "typed") == [30]
    assert seen.granted("large0") == 4000
