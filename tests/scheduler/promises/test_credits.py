"""Who lent comes first among borrowers: what is earned, what is spent, and how much of it counts."""

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.one_gpu import ask, line
from tests.scheduler.promises.seen import HOUR_S, at, notebook
from tests.scheduler.promises.stories import quotas

#: When everybody waits for the one GPU of two that is free then.
END_S = 12 * HOUR_S


def use(begin_h: float, hours: float, project: str, gpus: int = 1) -> list[hi.At]:
    return [ask(begin_h * HOUR_S + 1, f"{project}-{begin_h}-{n}", project, hours * HOUR_S) for n in range(gpus)]


def order(text: str, *happenings: list[hi.At] | hi.At, gpus: int = 2) -> str:
    """Play; then two wait for one GPU."""
    full = at(END_S - 10, notebook("all", "holder", 700, gpus=gpus - 1, closes_ms=0))
    return line(text, *happenings, full, gpus=gpus, begin=END_S)


def guaranteed(**projects: int) -> str:
    return "".join(f"[projects.{name}]\nguaranteed = {gpus}\n" for name, gpus in projects.items())


def anew(hour: float, text: str) -> hi.At:
    return at(hour * HOUR_S, hi.Changes(quotas(text)))


def test_who_borrows_what_others_are_guaranteed_pays_and_what_is_nobodys_is_free() -> None:
    """`c` used more than `b`, but nothing that was guaranteed to anybody."""
    used = [*use(0, 1, "b", 2), *use(2, 3, "c")]
    assert order(guaranteed(a=1), used, ask(END_S + 10, "b", "b"), ask(END_S + 20, "c", "c")) == "c b"


def test_what_was_lent_earns_and_what_nobody_used_does_not() -> None:
    happenings = [
        *use(0, 1, "b", 2),
        anew(2, guaranteed(e=2)),
        *use(3, 1, "b", 5),
        anew(5, ""),
        ask(END_S + 10, "d", "d"),
        ask(END_S + 20, "e", "e"),
    ]
    assert order(guaranteed(d=4), happenings, gpus=5) == "e d"


def test_no_more_than_four_hours_count_for_and_against() -> None:
    happenings = [
        *use(0, 3, "b", 2),
        anew(4, guaranteed(e=2)),
        *use(5, 2.5, "a"),
        anew(8, ""),
        ask(END_S + 10, "a", "a"),
        ask(END_S + 20, "e", "e"),
    ]
    assert order(guaranteed(a=2), happenings) == "e a"


def test_credits_count_for_each_unit_of_weight() -> None:
    heavy = "weight = 2\n"
    happenings = [
        *use(0, 4, "b", 2),
        anew(5, guaranteed(e=1) + "[projects.a]\n" + heavy),
        *use(5.5, 3, "b", 2),
        anew(9, "[projects.a]\n" + heavy),
        ask(END_S + 10, "e", "e"),
        ask(END_S + 20, "a", "a"),
    ]
    assert order(guaranteed(a=2) + heavy, happenings) == "a e"


def test_what_is_lent_of_class_hours_earns() -> None:
    text = (
        '[projects.a.class_hours.lecture]\ndays = ["Mon", "Tue", "Wed", "Thu", "Fri"]\nfrom = "09:00"\n'
        'until = "12:00"\nguaranteed = 2\ntime_zone = "UTC"\n'
    )
    assert order(text, use(0, 2, "b", 2), ask(END_S + 10, "c", "c"), ask(END_S + 20, "a", "a")) == "a c"
