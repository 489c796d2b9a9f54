"""How long the simulated course is told to wait, usually and at most, beside how long it waits.

    python benchmarks/told_waits.py [--gpus 51] [--seed 1] [--at-most N]

Each request that is not granted at once is told what a broker tells it first. `--at-most N` also makes the longest wait
for each N-th of them, which takes minutes where N is small. The same figures on every machine.
"""

import argparse
from collections.abc import Callable, Mapping
from statistics import median

import msgspec

from bulletin.ids import RequestId
from gpu_worker.scheduler.estimate_cache import Start
from gpu_worker.scheduler.estimates.explain import waiting
from gpu_worker.scheduler.estimates.start_estimator import StartEstimator
from gpu_worker.scheduler.estimates.wait_history import WaitHistory, WaitKind, wait_kind
from gpu_worker.scheduler.events import Event
from gpu_worker.simulator.simulated_pool import START_MS, SimulatedPool, divide_gpus
from gpu_worker.simulator.traces import Trace
from gpu_worker.simulator.workloads import generate

MOST_STEPS = 5_000


class ToldWait(msgspec.Struct):
    """One wait: what it was like, what was told, and what came, in milliseconds."""

    kind: WaitKind
    since_ms: int
    usual_ms: int | None
    most_ms: int | None
    came_ms: int = 0


class ToldPool(SimulatedPool):
    """A pool whose people are told how long they will wait."""

    def __init__(self, trace: Trace, gpus: int, each: int) -> None:
        super().__init__(trace, divide_gpus(gpus, -(-gpus // 8)))
        self.history, self.told, self._every = WaitHistory(), list[ToldWait](), each
        self._unanswered: dict[RequestId, ToldWait] = {}
        self._explained = 0

    def tell(self, event: Event) -> None:
        """Note who was granted in this step, and tell who has come."""
        super().tell(event)
        pending = self.scheduler.state.pending
        for request in [one for one in self._unanswered if one not in pending]:
            told = self._unanswered.pop(request)
            told.came_ms = self.now_ms - told.since_ms
            self.history.note(told.kind, told.came_ms)
            self.told.append(told)
        last = next(reversed(pending), None)
        if last is not None and last not in self._unanswered and pending[last].since_ms == START_MS + self.now_ms:
            self._unanswered[last] = self._explain(last)

    def _explain(self, request: RequestId) -> ToldWait:
        state, now_ms, starts = self.scheduler.state, START_MS + self.now_ms, dict[RequestId, Start]()
        said = waiting(state, request, now_ms, starts)
        assert said is not None, "it waits"
        kind = wait_kind(state.pending[request].qos, now_ms, said)
        most_ms = None
        if not said.is_room_made:
            self._explained += 1
            if self._every and self._explained % self._every == 0:
                estimator = StartEstimator(state, now_ms)
                estimator.run(MOST_STEPS)
                found: Mapping[RequestId, Start] = estimator.starts
                most_ms = found[request][0] - now_ms if request in found else None
        return ToldWait(kind, self.now_ms, self.history.usual_ms(kind), most_ms)


def show(title: str, told: list[ToldWait], of: Callable[[ToldWait], int | None]) -> None:
    """Print the medians of what was told and what came, and how many came within a factor of two."""
    both = [(said, one.came_ms) for one in told if (said := of(one)) is not None]
    if not both:
        return
    within = sum(said <= 2 * came and came <= 2 * said for said, came in both) / len(both)
    later = sum(came > said for said, came in both) / len(both)
    print(
        f"{title:>34}: {len(both):6,} told {median(said for said, _ in both) / 1000:8.1f} s, came "
        f"{median(came for _, came in both) / 1000:6.1f} s; within twice {within:4.0%}, later than told {later:4.0%}"
    )


def main() -> None:
    """Play one week and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=51)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-most", type=int, default=0)
    chosen = parser.parse_args()
    pool = ToldPool(generate("course", chosen.seed), chosen.gpus, chosen.at_most)
    pool.run()
    behind = [one for one in pool.told if one.kind.place]
    show("usually, a GPU is being freed", [one for one in pool.told if not one.kind.place], lambda one: one.usual_ms)
    show("usually, waits for others", behind, lambda one: one.usual_ms)
    for place in sorted({one.kind.place for one in behind}):
        show(
            f"of these up to place {place}",
            [one for one in behind if one.kind.place == place],
            lambda one: one.usual_ms,
        )
    show("at most, waits for others", behind, lambda one: one.most_ms)


if __name__ == "__main__":
    main()
