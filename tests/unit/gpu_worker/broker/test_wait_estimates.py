"""Estimates are worked out a slice at a time, and are kept until something changes."""

from itertools import count

from bulletin.ids import RequestId
from gpu_worker.broker.wait_estimates import WaitEstimates
from tests.scheduler.bench import MINUTE, Bench, slots


def long_line() -> Bench:
    bench = Bench()
    bench.join("a", slots(2))
    for number in range(20):
        bench.ask(f"s{number}", project=f"p{number}")
    bench.start("s0:1")
    bench.start("s1:1")
    return bench


def test_in_a_small_pool_the_answer_is_there_at_once_and_kept() -> None:
    bench = long_line()
    estimates = WaitEstimates(lambda: bench.scheduler.state, lambda: 0.0)
    found = estimates.update(bench.now_ms)
    assert found[RequestId("s19/1")] == (9 * 30 * MINUTE, None)
    assert estimates.update(bench.now_ms + 1_000) is found
    bench.withdraw("s2/1")
    estimates.note_change()
    assert estimates.update(bench.now_ms)[RequestId("s19/1")][0] == 9 * 30 * MINUTE
    assert RequestId("s2/1") not in estimates.starts


def test_where_it_takes_long_it_is_done_in_slices() -> None:
    bench = long_line()
    clock = count()
    estimates = WaitEstimates(lambda: bench.scheduler.state, lambda: next(clock) / 1000)
    assert estimates.update(bench.now_ms) == {}, "not yet"
    slices = 1
    while not estimates.work():
        slices += 1
    assert slices > 3
    assert estimates.starts[RequestId("s19/1")] == (9 * 30 * MINUTE, None)


def test_when_nobody_waits_nothing_is_foreseen() -> None:
    bench = Bench()
    bench.join("a", slots(1))
    estimates = WaitEstimates(lambda: bench.scheduler.state, lambda: 0.0)
    assert estimates.update(0) == {}
