"""Estimates are worked out a slice at a time, and kept until something changes. The pool survives one that fails."""

from itertools import count

from structlog.testing import capture_logs

from bulletin.ids import AgentId, LeaseId, RequestId
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


def test_an_estimate_that_cannot_begin_is_logged_and_nothing_is_told() -> None:
    bench = long_line()
    estimates = WaitEstimates(lambda: bench.scheduler.state, lambda: 0.0)
    lease = bench.scheduler.state.leases[LeaseId("s0:1")]
    cell, lease.cell = lease.cell, None
    with capture_logs() as logs:
        assert estimates.update(bench.now_ms) == {}
    assert [one["log_level"] for one in logs] == ["error"]
    assert logs[0]["exc_info"]
    lease.cell = cell


def test_an_estimate_that_fails_later_takes_back_what_was_known_and_rests() -> None:
    bench = long_line()
    seconds = [0.0]
    estimates = WaitEstimates(lambda: bench.scheduler.state, lambda: seconds[0])
    assert estimates.update(bench.now_ms)
    lease = bench.scheduler.state.leases[LeaseId("s0:1")]
    agent, lease.agent = lease.agent, AgentId("nowhere")
    estimates.note_change()
    with capture_logs() as logs:
        assert estimates.update(bench.now_ms) == {}
        estimates.note_change()
        assert estimates.update(bench.now_ms) == {}
    assert len(logs) == 1, "the second one was not tried"
    lease.agent = agent
    seconds[0] = 61.0
    assert RequestId("s19/1") in estimates.update(bench.now_ms)
