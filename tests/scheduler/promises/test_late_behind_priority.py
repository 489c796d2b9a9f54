"""Who waits behind a project of higher priority that never stops asking: once they are late, their cell gets done."""

import itertools

from tests.scheduler.promises.played import GRACE_S, SOON_S, Day, many, node, opens, play

HOUR_S, PATIENCE_S, WALLTIME_S = 3600, 1800, 1800
FIRST = "[projects.first]\npriority=10\n"
#: What a broker adds to each start.
START_S = 2
HIGHER = many(6, 1, "first", "first", *[600] * 200, think=1)


def _done(day: Day, prefix: str, run_s: float) -> int:
    """Count the notebooks whose cell ran for as long as it takes."""
    runs = (spans for session, spans in day.spans.items() if session.startswith(prefix))
    return sum(any(one.end is not None and one.end - one.begin >= run_s for one in spans) for spans in runs)


def test_each_cell_of_an_hour_gets_done() -> None:
    """Nobody who may run is passed for longer than their patience, and waits then for what runs already (6)."""
    each_hour = [opens(HOUR_S * hour + 500, f"low{hour}", "low", 300, time=600) for hour in range(1, 8)]
    day = play(FIRST, node("n", 2), HIGHER, each_hour, last=10 * HOUR_S)
    assert max(day.wait(f"low{hour}") for hour in range(1, 8)) <= PATIENCE_S + WALLTIME_S + START_S
    assert _done(day, "low", 300) == 7


def test_a_cell_gets_done_that_takes_all_of_its_walltime() -> None:
    day = play(FIRST, node("n", 2), HIGHER, opens(500, "low", "low", 1790), last=3 * HOUR_S)
    assert _done(day, "low", 1790) == 1
    assert not day.taken("low")


def test_of_several_users_one_cell_in_each_patience_is_let_pass() -> None:
    """The project of higher priority has all else of the surplus (13), however many are late."""
    day = play(FIRST, node("n", 2), HIGHER, many(8, 500, "low", "low", 600, time=600), last=6 * HOUR_S)
    begun = sorted(span.begin for session, spans in day.spans.items() if session.startswith("low") for span in spans)
    assert all(later - one >= PATIENCE_S for one, later in itertools.pairwise(begun))
    assert not any(day.taken(f"low{n}") for n in range(8))


def test_whoever_is_guaranteed_the_gpu_takes_it_back() -> None:
    """Whatever is borrowed can be taken back (2)."""
    quota = FIRST + "[projects.owner]\nguaranteed=2\n"
    came = 500 + PATIENCE_S + WALLTIME_S + 120
    day = play(
        quota, node("n", 2), many(6, 1, "first", "first", *[1790] * 20, think=1), opens(500, "low", "low", 1790),
        many(2, came, "owner", "owner", 60), last=came + 600,
    )  # fmt: skip
    assert day.running(came - 1, "low") == 1
    assert day.waits("owner0", "owner1") <= GRACE_S + SOON_S
    assert day.taken("low")[0][1].right.value == "guarantee"  # type: ignore[union-attr]


def test_a_project_of_higher_priority_has_back_what_was_not_let_pass() -> None:
    """Who comes while GPUs are free has had nothing of this right, and goes for a share (13)."""
    before = many(2, 1, "low", "low", 5000, qos="batch")
    day = play(FIRST, node("n", 2), before, opens(500, "x", "first", 600), last=900)
    assert day.wait("x") <= 120 + GRACE_S + SOON_S
    assert len(day.losers()) == 1
