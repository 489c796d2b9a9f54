# settings and histories in one line each
"""Who has waited for their patience has what their project's limit lets through, however others use it (6)."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, Seen, at, nodes
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, left, look, quotas, waits

#: The patience, and one walltime.
LATEST_S = 1800 + 600
FILLED_BY = {
    "a limit": "[projects.lab]\nlimit = 2\n",
    "a limit that is guaranteed": "[projects.lab]\nlimit = 2\nguaranteed = 2\n",
    "a guarantee beyond which it never is": "[projects.lab]\nborrow = false\nguaranteed = 2\n",
    "the limit of a department": '[projects.dep]\nlimit = 2\n[projects.lab]\nparent = "dep"\n',
}
CELLS = [600] * 60


@pytest.mark.parametrize("text", FILLED_BY.values(), ids=FILLED_BY)
@pytest.mark.parametrize("think_s", [0, 1])
def test_two_people_run_cell_after_cell_and_one_cell_asks_for_all(text: str, think_s: float) -> None:
    """One of the two runs at any time: the limit was never free, and it waited for ever."""
    seen = look(
        quotas(text), nodes(1, 4),
        ask(2, 1, "lab", *CELLS, name="first", think_s=think_s),
        ask(3, 1, "lab", 300, *CELLS, name="second", think_s=think_s),
        ask(30, 1, "lab", 300, gpus=2, name="large"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "large")[0] <= LATEST_S
    assert left(seen, "first") == left(seen, "second") == 0


def test_sessions_whose_own_guarantee_covers_them_go_on() -> None:
    text = '[projects.dep]\nlimit = 3\n[projects.lab]\nparent = "dep"\n[projects.own]\nparent = "dep"\nguaranteed = 1\n'
    seen = look(
        quotas(text), nodes(1, 4),
        ask(2, 1, "lab", *CELLS, name="first"),
        ask(3, 1, "own", *[270] * 60, name="covered"),
        ask(3, 1, "lab", 300, *CELLS, name="second"),
        ask(30, 1, "lab", 300, gpus=2, name="large"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "large")[0] <= LATEST_S
    assert [at_s for at_s in seen.asked_to_leave("covered0") if at_s < seen.granted("large0")] == []


def test_who_is_late_for_a_cpu_alone_does_not_hide_who_is_late_for_the_limit() -> None:
    def play(number: int) -> Seen:
        return look(
            quotas("[projects.lab]\nlimit = 2\n"),
            at(0, hi.Joins(AgentId("n0"), hi.gpus(4) + hi.cpu_slots(1), 64, 256 * hi.GB)),
            ask(1, 1, "guests", BATCH_S, gpus=0, name="cpu", closes_ms=0, **LONG),
            *[ask(2 + 200 * n, 1, "lab", *CELLS, name=f"one{n}-", closes_ms=0, think_s=1) for n in range(4)],
            ask(20, number, "lab", 300, gpus=0, name="free"),
            ask(30, 1, "lab", 300, gpus=2, name="large"),
            last=3 * HOUR_S,
        )  # fmt: skip

    assert waits(play(1), "large") == waits(play(0), "large")
