"""After a lecture: many hot sessions at once, and as many cells that want their GPUs."""

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import crowd, keeps_all, promised
from tests.scheduler.promises.seen import at, nodes, notebook, see

#: Until a hot session has left, in seconds.
LEAVES_S = 5


def test_hot_sessions_leave_for_sixteen_who_borrow_at_a_time() -> None:
    """Forty students went to lunch, and a lab that is guaranteed nothing sends forty cells: three rounds of them."""
    seen = see(
        promised(course=20),
        nodes(5, 8),
        [at(1, one) for one in crowd(40, "course", 100)],
        [at(600, notebook(f"lab{n}", "lab", 3000, qos="batch", user=f"u{n % 20}")) for n in range(40)],
        last=640,
        delays=hi.Delays(evict_ms=1000 * LEAVES_S, tick_ms=20),
    )
    waits = sorted(seen.wait(f"lab{n}") for n in range(40))
    assert waits[15] <= LEAVES_S + 1
    assert waits[-1] <= 3 * LEAVES_S + 1
    keeps_all(seen)
