"""What one answer to a notebook server's page costs the broker, beside the picture of the whole pool.

    python benchmarks/own_report.py [--users 500] [--gpus 64] [--waiting 2000] [--rounds 200] [--json FILE]

The broker's parts without its sockets: all GPUs run cells, and the users' other requests wait in line. A page in
JupyterLab asks for what is its user's own (`AskOwn`), with and without the cells that ended; `Look` is what the magic
`%gpu` and the hub's page ask. Times are those of the answer alone, without encryption.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, KernelId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from bulletin.wire import messages as wire
from bulletin.wire.frames import pack
from bulletin.wire.messages.own_cells import AskOwn
from gpu_worker.broker import picture
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import CellRecord
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.projects import Project
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts

_PER_NODE = 8
_GROUPS = 20


def person(number: int) -> Person:
    return Person(user=UserName(f"user-{number}"), groups=(f"group-{number % _GROUPS}",))


def fill(broker: BrokerParts, users: int, gpus: int, waiting: int) -> None:
    """Let all GPUs run, and the rest wait."""
    for node in range(gpus // _PER_NODE):
        broker.join(f"n{node}", slots=_PER_NODE)
    for number in range(gpus + waiting):
        whose, cell = person(number % users), f"cell-{number}"
        message = wire.Submit(request=RequestId(cell))
        session = SessionId(f"s-{cell}")
        request = RequestId(f"{session}/{cell}")
        pending = PendingRequest(session, KernelId(f"k-{number}"), whose, message, broker.now_ms, "")
        asyncio.run(broker.shell.submit(request, pending))
        state = broker.shell.scheduler.state
        if request in state.granted:
            broker.step(events.CellStarted(state.granted[request], CellId(cell)))
    for number in range(users):
        broker.ledger.record_cells([ended(number, turn) for turn in range(20)], 0)


def ended(number: int, turn: int) -> CellRecord:
    return CellRecord(
        lease=LeaseId(f"l-{number}-{turn}"),
        session=SessionId("s"),
        user=person(number).user,
        project=ProjectId("group-0"),
        qos="interactive",
        node="n0",
        slots=(SlotId("gpu-0"),),
        kind="gpu",
        cell=CellId(f"ended-{number}-{turn}"),
        gpus=1,
        started_at_ms=turn,
        ended_at_ms=turn + 1,
        held_ms=1,
        ran_ms=1,
        outcome=CellOutcome.RETURNED,
    )


async def measure(
    broker: BrokerParts, ask: Callable[[Person], Awaitable[wire.Message | object]], users: int, rounds: int
) -> tuple[float, int]:
    """Return the median time of an answer in milliseconds, and the size of the last in bytes."""
    times, size = [], 0
    for number in range(rounds):
        broker.now_ms += 20  # estimates are of a moment
        began = time.perf_counter()
        answer = await ask(person(number * 7 % users))
        times.append((time.perf_counter() - began) * 1000)
        size = sum(map(len, pack(answer)))  # type: ignore[arg-type]
    return statistics.median(times), size


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("users", 500), ("gpus", 64), ("waiting", 2_000), ("rounds", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        projects = tuple(Project(id=ProjectId(f"group-{n}"), guaranteed_milli=2_000) for n in range(_GROUPS))
        broker = BrokerParts(Ledger.open(f"sqlite:///{folder}/ledger.sqlite"), projects)
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):  # the broker's log
            fill(broker, asked.users, asked.gpus, asked.waiting)

        async def look(who: Person) -> wire.Picture:
            return await picture.draw(
                who,
                broker.shell,
                broker.agents,
                broker.ledger,
                broker.clock_ms,
                started_ms=0,
                counters={},
                serves_hub=True,
            )

        cases = {
            "own cells": lambda who: broker.console.answer(who, AskOwn()),
            "own cells, and those that ended": lambda who: broker.console.answer(who, AskOwn(ended=10)),
            "picture of the pool": look,
        }
        found = {name: asyncio.run(measure(broker, ask, asked.users, asked.rounds)) for name, ask in cases.items()}
    print(f"{'asked for':36} {'ms':>8} {'bytes':>8}")
    for name, (took_ms, size) in found.items():
        print(f"{name:36} {took_ms:8.2f} {size:8}")
    if asked.json:
        asked.json.write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
