"""What it costs to tell those who wait where they stand, from a short to a long line.

    python benchmarks/telling.py [--quick] [--json FILE]

The pool of `benchmarks/scheduler.py`. *Everybody at once* explains each request of the line. *A second* is what a
broker does in one: the first 200 of the line and 200 others, in slices of 200, where something has happened before each
slice, so that places are looked up anew. *Nobody is heard* is the longest of those slices. *An estimate* is the copy of
the state, and the replay until all of the line is granted, or 5,000 events or a second have passed; a broker spends a
tenth of its time on it. Times are of the process alone. What counts is the ratio of the first two, and how they grow.
"""

import argparse
import json
import time
from itertools import islice
from pathlib import Path

from scheduler import Pool

from gpu_worker.scheduler.estimates.explain import standings, waiting
from gpu_worker.scheduler.estimates.start_estimator import StartEstimator

FRONT, OTHERS, SLICE = 200, 200, 200
MOST_STEPS, MOST_S = 5_000, 1.0


def measure(pool: Pool, length: int) -> dict[str, float]:
    """Milliseconds, and how many of the line an estimate reaches."""
    pool.of_length(length, 20)
    state, now_ms = pool.scheduler.state, pool.now_ms
    began = time.process_time()
    state.estimate_cache.forget()
    for request in state.pending:
        waiting(state, request, now_ms, {})
    everybody = time.process_time() - began
    some = [*standings(state, "gpu"), *islice(state.pending, OTHERS)]
    slices = []
    for at in range(0, len(some), SLICE):
        began = time.process_time()
        state.estimate_cache.forget()
        for request in some[at : at + SLICE]:
            waiting(state, request, now_ms, {})
        slices.append(time.process_time() - began)
    began = time.process_time()
    estimator = StartEstimator(state, now_ms)
    copied = time.process_time() - began
    while not estimator.run(50) and estimator.steps < MOST_STEPS and time.process_time() - began < MOST_S:
        pass
    return {
        "everybody at once, ms": 1000 * everybody,
        "a second, ms": 1000 * sum(slices),
        "nobody is heard, ms": 1000 * max(slices),
        "the copy for an estimate, ms": 1000 * copied,
        "an estimate, ms": 1000 * (time.process_time() - began),
        "events replayed": estimator.steps,
        "told a wait": len(estimator.starts),
    }


def main() -> None:
    """Print a table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    pool = Pool()
    found = {length: measure(pool, length) for length in ((100, 1000) if chosen.quick else (100, 1000, 10_000))}
    for title in next(iter(found.values())):
        print(f"{title:>30}: " + "".join(f"{found[length][title]:12,.1f}" for length in found))
    for length, values in found.items():
        ratio = values["everybody at once, ms"] / values["a second, ms"]
        print(f"{length:,} waiting: everybody at once costs {ratio:.1f} times what is done in a second")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
