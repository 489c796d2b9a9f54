"""What each kind of event costs the scheduler, from a short to a long line of requests.

    python benchmarks/scheduler_events.py [--quick] [--json FILE]

The pools of `benchmarks/scheduler.py`, *uniform* (flat, GPUs only) and *mixed* (three levels, requests of many kinds),
all GPUs busy. At first nothing that runs is old enough to be reclaimed. An event is one step; a cell that ends is a
few: its session makes room, and the next one starts. Forty nodes die one after the other, with what ran there, and join
again. Then what runs is old enough, and all is taken back that guarantees are owed.
*Explain* says to each request of the line why it waits. Times are means, and the longest, of the process alone.
"""

import argparse
import json
import time
from pathlib import Path

import msgspec
from scheduler import Flat, Mixed, Pool

from bulletin.ids import AgentId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Reclaim
from gpu_worker.scheduler.estimates.explain import waiting

TIMES, DEATHS, ENDS = 20, 40, 12


def measure(pool: Pool, length: int) -> dict[str, tuple[float, float]]:
    """Milliseconds of each kind of event with a line of that length: the mean, and the longest."""
    pool.fill(length)
    pool.times_of.clear()
    asked = [pool.request(next(pool.numbers)) for _ in range(TIMES)]
    for request in asked:
        pool.say(request)
    for request in asked:
        pool.say(ev.RequestWithdrawn(request.request))
    for _ in range(TIMES):
        pool.end_a_cell()
    times = {
        "submit": pool.times_of[ev.RequestSubmitted],
        "withdraw": pool.times_of[ev.RequestWithdrawn],
        "a cell ends": [s for kind in (ev.CellEnded, ev.LeaseEnded, ev.CellStarted) for s in pool.times_of[kind]],
    }
    pool.fill(length)
    pool.times_of.clear()
    settings = pool.scheduler.settings
    for weight in (7, 8, 9):
        first, *others = settings.projects
        changed = (msgspec.structs.replace(first, weight=weight), *others)
        pool.say(ev.SettingsChanged(msgspec.structs.replace(settings, projects=changed)))
    pool.say(ev.SettingsChanged(settings))
    for number in range(DEATHS):
        pool.say(ev.AgentLost(AgentId(f"a{number}")))
    for number in range(DEATHS):
        pool.say(pool.node(number))
    pool.fill(length)
    times |= {
        "settings change": pool.times_of[ev.SettingsChanged],
        "a node dies": pool.times_of[ev.AgentLost],
        "a node joins": pool.times_of[ev.AgentJoined],
    }
    began = time.process_time()
    pool.scheduler.state.estimate_cache.forget()
    for waits in pool.scheduler.state.pending:
        waiting(pool.scheduler.state, waits, pool.now_ms, {})
    times["explain to everybody"] = [time.process_time() - began]
    return in_ms(times)


def take_back(pool: Pool, length: int) -> dict[str, tuple[float, float]]:
    """Milliseconds of the step that takes back all that guarantees are owed, and of the ends that follow, one by one.

    Each of these is a step while all the others have their grace.
    """
    pool.fill(length)
    pool.now_ms += 120_000  # what runs is old enough
    pool.times_of.clear()
    reclaimed = [action.lease for action in pool.step(ev.Tick()) if isinstance(action, Reclaim)]
    for lease in reclaimed[:ENDS]:
        pool.step(ev.LeaseEnded(lease))
    return in_ms({"all is taken back": pool.times_of[ev.Tick], "one of those ends": pool.times_of[ev.LeaseEnded]})


def in_ms(times: dict[str, list[float]]) -> dict[str, tuple[float, float]]:
    """Mean and longest of each kind, from seconds."""
    return {name: (1000 * sum(some) / len(some), 1000 * max(some)) for name, some in times.items() if some}


def main() -> None:
    """Print a table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    lengths = (100, 1000) if chosen.quick else (100, 1000, 10_000)
    found: dict[str, dict[str, tuple[float, float]]] = {}
    kinds: tuple[type[Flat | Mixed], ...] = (Flat, Mixed)
    for title, kind in zip(("uniform", "mixed"), kinds, strict=True):
        pool = kind()
        pool.pause_ms = 1
        for length in lengths:
            found[f"{title}, {length:,}"] = measure(pool, length) | take_back(kind(), length)
            print(f"{title}, {length:,} waiting", flush=True)
            for name, (mean, worst) in found[f"{title}, {length:,}"].items():
                print(f"{name:>24}: {mean:10.2f} ms, {worst:10.2f} at worst", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
