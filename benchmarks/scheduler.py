"""What a step of the scheduler costs, from a short to a long line of requests.

    python benchmarks/scheduler.py [--quick] [--json FILE]

A pool of 1,000 GPUs on 125 nodes, 50 projects of 20 users each, half of them with a guarantee, all GPUs busy. In each
round a cell ends, its session makes room, the next one is granted and starts, and somebody asks anew, so the line keeps
its length. Times are means over all steps, of the process alone. What counts is the growth from one length to the next.
"""

import argparse
import json
import time
from itertools import count
from pathlib import Path

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Evict, Grant
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.projects import Project, SchedulerSettings

PROJECTS, USERS, NODES, GPUS = 50, 20, 125, 8
#: What people give with `--time` in a line of mixed walltimes, in minutes.
MINUTES = (1, 2, 3, 4, 5, 8, 10, 12, 15, 20, 25, 30)


class Pool:
    """A scheduler, an honest agent, and the numbers of those who ask."""

    def __init__(self, minutes: tuple[int | None, ...] = (None,)) -> None:
        self.minutes = minutes
        projects = [
            Project(id=ProjectId(f"p{n}"), guaranteed_milli=20_000 * (n % 2), weight=1 + n % 3) for n in range(PROJECTS)
        ]
        self.scheduler = Scheduler(SchedulerSettings(projects=tuple(projects)))
        self.numbers = count()
        self.steps, self.spent_s, self.now_ms = 0, 0.0, 0
        self.busy: list[tuple[LeaseId, CellId]] = []
        for number in range(NODES):
            slots = tuple(ev.Slot(SlotId(f"gpu-{n}"), "gpu", "GPU", 80 * 10**9) for n in range(GPUS))
            self.say(ev.AgentJoined(AgentId(f"a{number}"), f"n{number}", slots))

    def say(self, event: ev.Event) -> None:
        self.now_ms += 7
        began = time.process_time()
        actions = self.scheduler.step(event, self.now_ms)
        self.spent_s += time.process_time() - began
        self.steps += 1
        for action in actions:
            if isinstance(action, Grant):
                cell = CellId(f"c-{action.lease}")
                self.busy.append((action.lease, cell))
                self.say(ev.CellStarted(action.lease, cell))
            elif isinstance(action, Evict):
                self.say(ev.LeaseEnded(action.lease))

    def ask(self) -> None:
        number = next(self.numbers)
        user = number % (PROJECTS * USERS)
        minutes = self.minutes[number * 7 // 8 % len(self.minutes)]
        self.say(
            ev.RequestSubmitted(
                RequestId(f"r{number}"), LeaseId(f"l{number}"), SessionId(f"s{number}"), UserName(f"u{user}"),
                ProjectId(f"p{user % PROJECTS}"), "interactive", (1, 1, 1, 1, 1, 1, 2, 4)[number % 8],
                None if minutes is None else 60_000 * minutes,
            )
        )  # fmt: skip

    def of_length(self, length: int, rounds: int) -> float:
        """Milliseconds a step with a line of that length."""
        while len(self.scheduler.state.pending) < length:
            self.ask()
        self.steps, self.spent_s = 0, 0.0
        for _ in range(rounds):
            lease, cell = self.busy.pop(0)
            self.say(ev.CellEnded(lease, cell))
            while len(self.scheduler.state.pending) < length:
                self.ask()
        return 1000 * self.spent_s / self.steps


def main() -> None:
    """Print a table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    lengths, rounds = ((100, 1000), 100) if chosen.quick else ((100, 1000, 10_000), 500)
    pool = Pool()
    found = {f"{length:,} waiting": pool.of_length(length, rounds) for length in lengths}
    first, *_, last = found.values()
    found[f"{lengths[-1]:,} of {len(MINUTES)} walltimes"] = Pool(MINUTES).of_length(lengths[-1], rounds)
    for title, value in found.items():
        print(f"{title:>24}: {value:8.3f} ms a step")
    print(f"{lengths[-1] // lengths[0]} times the line: {last / first:.1f} times the cost")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
