"""Nobody waits longer than they were told, if nobody new comes and every cell uses its whole walltime."""

from collections.abc import Iterator
from enum import Enum

import msgspec
import pytest

from gpu_worker.scheduler.estimates.replay_ahead import ReplayAhead
from gpu_worker.scheduler.estimates.start_estimator import StartEstimator
from gpu_worker.scheduler.estimates.state_copy import copy_state
from tests.scheduler.bench import MINUTE, Bench, slots
from tests.scheduler.frozen_pool import FrozenPool, Mix

MIXES = (
    Mix(name="flat", projects=4, users=5),
    Mix(name="of one to four GPUs", projects=4, users=5, gpus=(1, 1, 2, 4)),
    Mix(name="nested", projects=6, users=4, is_nested=True, gpus=(1, 1, 2)),
    Mix(name="one project", has_quotas=False, users=20),
    Mix(name="two notebooks each", has_quotas=False, users=12, notebooks=2),
)


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: mix.name)
def test_nobody_waits_longer_than_told(mix: Mix) -> None:
    told = [one for seed in range(15) for one in FrozenPool(mix, seed).play()]
    assert len(told) > 100, "histories in which somebody waits"
    late = [one for one in told if one.told_ms is None or one.came_ms is None or one.came_ms > one.told_ms]
    assert late == []


def test_hardly_anybody_does_if_what_happens_at_the_same_time_comes_in_any_order() -> None:
    """Who of two ends first in the same millisecond may decide more than can be tried."""
    told = [one for seed in range(20) for one in FrozenPool(MIXES[2], seed, is_shuffled=True).play()]
    late = [one for one in told if one.told_ms is None or one.came_ms is None or one.came_ms > one.told_ms]
    assert len(late) <= 0.02 * len(told)


def test_most_wait_exactly_as_long_as_told_if_every_cell_uses_its_walltime() -> None:
    told = [one for mix in MIXES for seed in range(100, 105) for one in FrozenPool(mix, seed).play()]
    assert sum(one.came_ms == one.told_ms for one in told) > 0.9 * len(told)


def busy_pool() -> Bench:
    bench = Bench()
    bench.join("a", slots(2))
    for name in ("ann", "bob", "cem", "dan", "eve"):
        bench.ask(name, project=f"of-{name}")
    bench.start("ann:1")
    bench.start("bob:1")
    bench.later(MINUTE)
    return bench


def test_a_replay_leaves_the_state_as_it_was() -> None:
    bench = busy_pool()
    before = msgspec.json.encode(dict(_facts(bench)))
    replay = ReplayAhead(bench.scheduler.state, bench.now_ms)
    assert replay.run(1_000)
    assert list(replay.starts.values()) == [(30 * MINUTE, None), (30 * MINUTE, None), (60 * MINUTE, None)]
    assert msgspec.json.encode(dict(_facts(bench))) == before
    bench.replay()


def _facts(bench: Bench) -> Iterator[tuple[str, object]]:
    state = bench.scheduler.state
    yield "leases", [(lease.id, lease.phase.value, lease.since_ms) for lease in state.leases.values()]
    yield "line", [(request.id, request.standing.value) for request in state.pending.values()]
    yield "alarms", state.alarms
    yield "accounts", [(name, one.used, one.held, one.spent) for name, one in state.accounts.by_id.items()]


def test_a_copy_of_the_state_shares_nothing_that_changes() -> None:
    state = busy_pool().scheduler.state
    mine = {id(one): one for one in _reached(state, {})}
    shared = [one for one in _reached(copy_state(state), {}) if id(one) in mine]
    assert shared == []


def _reached(value: object, known: dict[int, object]) -> list[object]:
    """All that hangs on an object and can change, each once; what is known is kept alive, so that ids stay its own."""
    if id(value) in known:
        return []
    known[id(value)] = value
    parts: list[object] = []
    changes = True
    match value:
        case dict():
            parts = [*value.keys(), *value.values()]
        case list() | set():
            parts = list(value)
        case tuple() | frozenset():
            parts, changes = list(value), False
        case msgspec.Struct() if not value.__struct_config__.frozen:
            parts = [getattr(value, name) for name in value.__struct_fields__]
        case _ if type(value).__module__.startswith("gpu_worker") and not isinstance(value, Enum | msgspec.Struct):
            parts = list(vars(value).values())
        case _:
            changes = False
    reached = [one for part in parts for one in _reached(part, known)]
    return [value, *reached] if changes else reached


def test_what_is_found_in_slices_is_what_is_found_at_once() -> None:
    pool = busy_pool()
    at_once, sliced = (StartEstimator(pool.scheduler.state, pool.now_ms) for _ in range(2))
    assert at_once.run(10_000)
    slices = 1
    while not sliced.run(3):
        slices += 1
    assert slices > 3
    assert sliced.starts == at_once.starts


def test_of_whom_is_not_reached_nothing_is_said() -> None:
    pool = busy_pool()
    estimator = StartEstimator(pool.scheduler.state, pool.now_ms)
    assert not estimator.run(8)
    assert 0 < len(estimator.starts) < 3
