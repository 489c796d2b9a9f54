"""What a step of the scheduler costs, from a short to a long line of requests.

    python benchmarks/scheduler.py [--quick] [--json FILE]

*flat*: 1,000 GPUs on 125 nodes, 50 projects of 20 users each, half of them with a guarantee, all GPUs busy; also with
twelve walltimes. *mixed*: 200 projects in three levels and 500 users; GPUs of two types, one node in ten with MIG
slices; requests for one to eight GPUs of either type, for slices, for CPUs and memory, with six walltimes.

In each round a cell ends, its session makes room, the next one is granted and starts, and somebody asks anew, so the
line keeps its length. What was borrowed is reclaimed for whom a guarantee covers. *reclaimed at once* are the steps in
which what runs has just become old enough for that, and nobody has waited for long enough to take for a share. Times
are means over all steps, of the process alone, and the longest. *never borrows, beside hot*: a project of 424 GPUs has
400 hot sessions, in it or in 40 projects inside it, and asks 24 times in a class that never borrows, for each of which
one of its batch cells goes. What counts is the growth from one length to the next.
"""

import argparse
import json
import random
import time
from collections import defaultdict
from itertools import count
from pathlib import Path

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, Evict, Grant, Reclaim
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings

PROJECTS, USERS, NODES, GPUS = 50, 20, 125, 8
#: What people give with `--time` in a line of mixed walltimes, in minutes.
MINUTES = (1, 2, 3, 4, 5, 8, 10, 12, 15, 20, 25, 30)
GB = 10**9


class Pool:
    """A scheduler, an honest agent, and the numbers of those who ask."""

    def __init__(self, projects: list[Project]) -> None:
        self.scheduler = Scheduler(SchedulerSettings(projects=tuple(projects)))
        self.numbers = count()
        self.times_s: list[float] = []
        self.times_of: defaultdict[type[ev.Event], list[float]] = defaultdict(list)
        self.now_ms, self.pause_ms = 0, 7
        self.busy: list[tuple[LeaseId, CellId]] = []
        for number in range(NODES):
            self.say(self.node(number))

    def node(self, number: int) -> ev.AgentJoined:
        """Describe the node of this number."""
        slots = tuple(ev.Slot(SlotId(f"gpu-{n}"), "gpu", "GPU", 80 * GB) for n in range(GPUS))
        return ev.AgentJoined(AgentId(f"a{number}"), f"n{number}", slots)

    def request(self, number: int) -> ev.RequestSubmitted:
        """Describe the request of this number."""
        raise NotImplementedError

    def say(self, event: ev.Event) -> None:
        """Take a step, and play the agent that answers it."""
        for action in self.step(event):
            if isinstance(action, Grant):
                cell = CellId(f"c-{action.lease}")
                self.busy.append((action.lease, cell))
                self.say(ev.CellStarted(action.lease, cell))
            elif isinstance(action, Evict | Reclaim):
                self.say(ev.LeaseEnded(action.lease))

    def step(self, event: ev.Event) -> list[Action]:
        """Take a step, and note how long it takes."""
        self.now_ms += self.pause_ms
        began = time.process_time()
        actions = self.scheduler.step(event, self.now_ms)
        self.times_s.append(time.process_time() - began)
        self.times_of[type(event)].append(self.times_s[-1])
        return actions

    def fill(self, length: int) -> None:
        """Ask until so many wait."""
        while len(self.scheduler.state.pending) < length:
            self.say(self.request(next(self.numbers)))

    def end_a_cell(self) -> None:
        """End the cell that began first."""
        lease, cell = self.busy.pop(0)
        while lease not in self.scheduler.state.leases:  # it was reclaimed
            lease, cell = self.busy.pop(0)
        self.say(ev.CellEnded(lease, cell))

    def of_length(self, length: int, rounds: int) -> tuple[float, float]:
        """Milliseconds a step with a line of that length: the mean, and the longest."""
        self.fill(length)
        self.now_ms += 120_000  # what runs is old enough to be reclaimed
        self.say(ev.Tick())
        self.times_s.clear()
        for _ in range(rounds):
            self.end_a_cell()
            self.fill(length)
        return 1000 * sum(self.times_s) / len(self.times_s), 1000 * max(self.times_s)

    def reclaim_at_once(self, length: int) -> tuple[float, float]:
        """Milliseconds a step in which what is borrowed is taken back from such a line: the mean, and the longest."""
        self.pause_ms = 0
        self.fill(length)
        self.times_s.clear()
        self.pause_ms, self.now_ms = 7, self.now_ms + 62_000
        self.say(ev.Tick())
        return 1000 * sum(self.times_s) / len(self.times_s), 1000 * max(self.times_s)


class Flat(Pool):
    """Projects side by side, and requests that differ in GPUs only, and perhaps in walltimes."""

    def __init__(self, minutes: tuple[int | None, ...] = (None,)) -> None:
        self.minutes = minutes
        super().__init__(
            [
                Project(id=ProjectId(f"p{n}"), guaranteed_milli=20_000 * (n % 2), weight=1 + n % 3)
                for n in range(PROJECTS)
            ]
        )

    def request(self, number: int) -> ev.RequestSubmitted:
        """Describe a request for GPUs of any type."""
        user = number % (PROJECTS * USERS)
        minutes = self.minutes[number * 7 // 8 % len(self.minutes)]
        return ev.RequestSubmitted(
            RequestId(f"r{number}"), LeaseId(f"l{number}"), SessionId(f"s{number}"), UserName(f"u{user}"),
            ProjectId(f"p{user % PROJECTS}"), "interactive", (1, 1, 1, 1, 1, 1, 2, 4)[number % 8],
            None if minutes is None else 60_000 * minutes,
        )  # fmt: skip


class Mixed(Pool):
    """Five faculties of six departments, with 165 courses inside, and requests of many kinds."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        faculties = [Project(id=ProjectId(f"f{n}"), guaranteed_milli=150_000) for n in range(5)]
        departments = [
            Project(id=ProjectId(f"d{n}"), parent=ProjectId(f"f{n % 5}"), guaranteed_milli=20_000, weight=1 + n % 3)
            for n in range(30)
        ]
        courses = [
            Project(id=ProjectId(f"c{n}"), parent=ProjectId(f"d{n % 30}"), guaranteed_milli=3_000 * (n % 2))
            for n in range(165)
        ]
        self.names = [project.id for project in (*faculties, *departments, *courses)]
        super().__init__([*faculties, *departments, *courses])

    def node(self, number: int) -> ev.AgentJoined:
        """Describe a node of one of two types, or one whose GPUs are cut into slices."""
        kind = ("A100", "L4")[number % 2]
        slots = [ev.Slot(SlotId(f"gpu-{n}"), "gpu", kind, (80, 24)[number % 2] * GB) for n in range(GPUS)]
        if number % 10 == 0:
            slots[4:] = [
                ev.Slot(SlotId(f"mig-{n}"), "mig", f"{kind} 1g.10gb", 10 * GB, 143) for n in range(7 * (GPUS - 4))
            ]
        return ev.AgentJoined(AgentId(f"a{number}"), f"n{number}", tuple(slots), cpus=128, memory_bytes=1024 * GB)

    def request(self, number: int) -> ev.RequestSubmitted:
        """Describe a request of a random kind."""
        draw = self.random
        user = draw.randrange(500)
        gpus = draw.choice((1, 1, 1, 1, 1, 1, 2, 2, 4, 8))
        qos = draw.choice(("interactive", "interactive", "interactive", "batch"))
        return ev.RequestSubmitted(
            RequestId(f"r{number}"), LeaseId(f"l{number}"), SessionId(f"s{number}"), UserName(f"u{user}"),
            self.names[user % len(self.names)], qos, gpus,
            60_000 * draw.choice((2, 5, 10, 15, 20, 30)), gpu_type=draw.choice(("", "", "A100", "L4")),
            gpu_memory_bytes=8 * GB if gpus == 1 and number % 5 == 0 else 0,
            cpus=draw.choice((0, 0, 4, 8)), memory_bytes=draw.choice((0, 0, 16, 64)) * GB,
        )  # fmt: skip


class BesideHot(Pool):
    """A project, perhaps with others inside it, whose sessions are hot on half of the nodes and run batch elsewhere."""

    def __init__(self, hot: int, running: int, inside: int) -> None:
        self.hot, self.running, self.inside = hot, running, inside
        whole = Project(id=ProjectId("lab"), guaranteed_milli=1000 * hot)
        super().__init__([whole, *(Project(id=ProjectId(f"p{n}"), parent=whole.id) for n in range(inside))])

    def node(self, number: int) -> ev.AgentJoined:
        """Describe a node of the type whose GPUs are hot, or of the other one."""
        kind, gpus = ("L4" if number < self.hot // GPUS else "H100"), GPUS
        if number >= (self.hot + self.running) // GPUS:
            gpus = 0  # all others are of no use here
        slots = tuple(ev.Slot(SlotId(f"gpu-{n}"), "gpu", kind, 80 * GB) for n in range(gpus))
        return ev.AgentJoined(AgentId(f"a{number}"), f"n{number}", slots)

    def of_class(self, number: int, qos: str, kind: str) -> ev.RequestSubmitted:
        """Describe a request of a class of service for a type."""
        project = f"p{number % self.inside}" if self.inside and kind == "L4" else "lab"
        return ev.RequestSubmitted(
            RequestId(f"r{number}"), LeaseId(f"l{number}"), SessionId(f"s{number}"), UserName(f"u{number}"),
            ProjectId(project), qos, 1, gpu_type=kind,
        )  # fmt: skip

    def ask_firmly(self) -> tuple[float, float]:
        """Milliseconds a step while for each of those requests a cell goes: the mean, and the longest."""
        for _ in range(self.hot):
            self.say(self.of_class(next(self.numbers), "batch", "L4"))
        for _ in range(self.running):
            self.say(self.of_class(next(self.numbers), "batch", "H100"))
        for lease, cell in self.busy[: self.hot]:
            self.say(ev.CellEnded(lease, cell))
        self.now_ms += 120_000
        self.times_s.clear()
        for _ in range(self.running):
            self.step(self.of_class(next(self.numbers), "reserved", "H100"))
        self.step(ev.Tick())
        return 1000 * sum(self.times_s) / len(self.times_s), 1000 * max(self.times_s)


def main() -> None:
    """Print a table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    lengths, rounds = ((100, 1000), 100) if chosen.quick else ((100, 1000, 10_000), 500)
    found: dict[str, tuple[float, float]] = {}
    for title, pool in (("flat", Flat()), ("mixed", Mixed())):
        found |= {f"{title}, {length:,} waiting": pool.of_length(length, rounds) for length in lengths}
    for length in lengths[:2]:
        found[f"mixed, {length:,}, reclaimed at once"] = Mixed().reclaim_at_once(length)
    found[f"flat, {lengths[-1]:,} of {len(MINUTES)} walltimes"] = Flat(MINUTES).of_length(lengths[-1], rounds)
    for inside in (0, 40):
        found[f"never borrows, beside hot{' in 40' if inside else ''}"] = BesideHot(400, 24, inside).ask_firmly()
    for title, (mean, worst) in found.items():
        print(f"{title:>36}: {mean:8.3f} ms a step, {worst:8.3f} at worst")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
