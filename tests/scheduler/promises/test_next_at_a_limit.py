# settings and histories in one line each
"""Of those who are late at a limit and ask for the same, whoever is next in line has it (6, 21): it never idles (5).

Who became late first may stand behind: their patience ended first, but somebody else came before, or is first (18).
"""

import pytest

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import LONG_S, ask, look, quotas, waits

LONG_CELLS = '[qos.interactive]\nwalltime = "11 h"\n'
LIMITED = {
    "a limit": LONG_CELLS + "[projects.lab]\nlimit = 2\n",
    "the limit of a department": LONG_CELLS + '[projects.dep]\nlimit = 2\n[projects.lab]\nparent = "dep"\n',
    "two limits": LONG_CELLS + '[projects.dep]\nlimit = 2\n[projects.lab]\nparent = "dep"\nlimit = 2\n',
}
SEVERAL = LIMITED["the limit of a department"] + '[projects.other]\nparent = "dep"\n'
IS_OVER_S = 3 * HOUR_S
SOON_S = IS_OVER_S - 300  #: a boost lasts for ten minutes
TWO = {"gpus": 2, "closes_ms": 0}


def play(text: str, *more: hi.At | list[hi.At], zoe: int = 100, ann: int = 110) -> Seen:
    """Somebody uses all that the limit lets through for three hours; zoe and ann ask for as much, and are late then."""
    return look(
        quotas(text), nodes(1, 8),
        at(1, notebook("old", "lab", IS_OVER_S - 1, **TWO)),
        at(zoe, notebook("zoe", "lab", 600, **TWO)), at(ann, notebook("ann", "lab", 600, **TWO)),
        *more,
        last=5 * HOUR_S,
    )  # fmt: skip


def by_hand(second: float, session: str, what: str) -> hi.At:
    return at(second, hi.ByHand(session, what))  # type: ignore[arg-type]


def begins(seen: Seen, *sessions: str) -> list[int]:
    """When each has its GPUs, in minutes since the limit was free."""
    return [round((seen.granted(one) - IS_OVER_S) // 60) for one in sessions]


@pytest.mark.parametrize("text", LIMITED.values(), ids=LIMITED)
@pytest.mark.parametrize("ann", [100, 110])
def test_one_has_it_after_the_other(text: str, ann: int) -> None:
    """Also if they asked in the same moment."""
    assert sorted(begins(play(text, ann=ann), "zoe", "ann")) == [0, 10]


@pytest.mark.parametrize("text", LIMITED.values(), ids=LIMITED)
@pytest.mark.parametrize(("second", "what"), [(200, "put-first"), (SOON_S, "put-first"), (SOON_S, "boost")])
def test_who_is_put_first_of_two_that_are_late_has_it(text: str, second: int, what: str) -> None:
    assert begins(play(text, by_hand(second, "ann", what)), "ann", "zoe") == [0, 10]


@pytest.mark.parametrize("text", LIMITED.values(), ids=LIMITED)
def test_who_was_held_meanwhile_stands_where_they_came(text: str) -> None:
    seen = play(text, by_hand(2 * HOUR_S, "zoe", "hold"), by_hand(2 * HOUR_S + 60, "zoe", "release"))
    assert begins(seen, "zoe", "ann") == [0, 10]


@pytest.mark.parametrize("text", LIMITED.values(), ids=LIMITED)
def test_a_second_cell_that_came_earlier_is_late_after_that_of_somebody_else(text: str) -> None:
    """Of one user's requests one is late at a time: hers becomes so when his is already, and stands before it."""
    seen = look(
        quotas(text), nodes(1, 8),
        at(1, notebook("old", "lab", HOUR_S, **TWO)),
        at(100, notebook("ann0", "lab", 2 * HOUR_S, user="ann", walltime_ms=10_800_000, **TWO)),
        at(110, notebook("ann1", "lab", 600, user="ann", **TWO)),
        at(120, notebook("bob", "lab", 600, **TWO)),
        last=6 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann1")[0] + waits(seen, "bob")[0] < float("inf")


@pytest.mark.parametrize("what", ["put-first", "boost"])
@pytest.mark.parametrize("text", LIMITED.values(), ids=LIMITED)
def test_what_is_kept_for_who_is_late_is_not_kept_from_who_is_put_first(text: str, what: str) -> None:
    """While an admin's first one waits, nobody else of the project has anything for having waited (18)."""
    seen = look(
        quotas(text), nodes(1, 8),
        at(1, notebook("x", "lab", IS_OVER_S - 1, closes_ms=0)),
        at(1, notebook("y", "lab", LONG_S, closes_ms=0)),
        at(100, notebook("zoe", "lab", 600, **TWO)),
        at(2 * HOUR_S, notebook("pia", "lab", 600, closes_ms=0)), by_hand(SOON_S, "pia", what),
        at(2 * HOUR_S, notebook("eve", "lab", 600, closes_ms=0)),
        last=4 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert begins(seen, "pia") == [0]
    assert waits(seen, "zoe") == waits(seen, "eve") == [float("inf")]


def test_what_is_kept_for_who_is_late_and_put_first_is_kept_from_who_is_boosted() -> None:
    """A request that was put first stands before those of a user who is boosted."""
    seen = look(
        quotas(LIMITED["a limit"]), nodes(1, 8),
        at(1, notebook("x", "lab", IS_OVER_S - 1, closes_ms=0)),
        at(1, notebook("y", "lab", IS_OVER_S + 599, closes_ms=0)),
        at(100, notebook("zoe", "lab", 600, **TWO)), by_hand(SOON_S, "zoe", "put-first"),
        at(2 * HOUR_S, notebook("pia", "lab", 600, closes_ms=0)), by_hand(SOON_S, "pia", "boost"),
        last=4 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert begins(seen, "zoe", "pia") == [10, 20]


def test_what_is_kept_for_another_project_is_kept_from_who_is_put_first_too() -> None:
    """No other project loses anything by it (18)."""
    seen = look(
        quotas(SEVERAL), nodes(1, 8),
        at(1, notebook("x", "lab", IS_OVER_S - 1, closes_ms=0)),
        at(1, notebook("y", "lab", IS_OVER_S + 599, closes_ms=0)),
        at(100, notebook("zoe", "other", 600, **TWO)),
        at(2 * HOUR_S, notebook("pia", "lab", 600, closes_ms=0)), by_hand(SOON_S, "pia", "put-first"),
        last=4 * HOUR_S, but=(6,),
    )  # fmt: skip
    assert begins(seen, "zoe", "pia") == [10, 20]


def test_several_projects_have_the_limit_of_their_department_in_turn() -> None:
    """Two alike in one of them, and one in another: whoever is late, all have it."""
    seen = look(
        quotas(SEVERAL), nodes(1, 8),
        at(1, notebook("old", "lab", IS_OVER_S - 1, **TWO)),
        ask(100, 2, "lab", 600, name="two", **TWO), ask(110, 2, "other", 600, name="others", **TWO),
        last=6 * HOUR_S,
    )  # fmt: skip
    assert sorted(begins(seen, "two0", "two1", "others0", "others1")) == [0, 10, 20, 30]
