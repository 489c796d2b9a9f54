"""What the hub's pages cost: the broker's answer for all who look, and the service's for each of them.

    python benchmarks/pages.py [USERS [WAITING]]

In one process, without sockets: 64 GPUs in eight nodes, all busy, and so many requests in line of so many users.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bulletin.ids import UserName
from bulletin.wire import frames, page_requests
from bulletin_spawner.service.me_view import view_me
from bulletin_spawner.service.now_view import view_now
from bulletin_spawner.service.viewer import Sight, Viewer
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.page_answers import PageAnswers
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts

NODES, GPUS, PROJECTS, TIMES = 8, 8, 20, 15


def median_ms(work: Callable[[], object]) -> float:
    """Measure how long it takes, in the middle of many times."""
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def main(users: int, waiting: int) -> None:
    with tempfile.TemporaryDirectory() as folder, Ledger.open(f"sqlite:///{Path(folder) / 'ledger'}") as ledger:
        broker = BrokerParts(ledger)
        for number in range(NODES):
            broker.join(f"n{number}", GPUS)
        people = [Person(user=UserName(f"u{n}"), groups=(f"p{n % PROJECTS}",)) for n in range(users)]
        for number in range(NODES * GPUS):
            broker.run(people[number % users], f"runs-{number}")
        for number in range(waiting):
            broker.submit(people[number % users], f"waits-{number}")
        for _ in range(waiting // 100):  # as the broker tells them, some each second
            asyncio.run(broker.shell.tell_queue())
        answers = PageAnswers(
            broker.shell, broker.agents, ledger, broker.clock_ms, broker.console.answer, started_ms=0, serves_hub=True
        )
        page = Person(user=UserName("bulletin"), is_admin=True, is_page=True)

        def ask() -> page_requests.PoolReport:
            report = asyncio.run(answers.answer(page, page_requests.AskPool()))
            assert isinstance(report, page_requests.PoolReport)
            return report

        report = ask()
        sent = frames.pack(report)[1]
        viewer = Viewer(user=UserName("u1"), groups=("p1",))
        now = msgspec.json.encode(view_now(report, Sight(viewer, report)))
        print(f"{users} users, {NODES * GPUS} GPUs, {len(report.waiting)} of {report.waiting_count} in line told")
        print(f"the broker draws the pool      {median_ms(ask):7.1f} ms, {len(sent) / 1000:.0f} kB, once for all")
        decoder = msgspec.msgpack.Decoder(page_requests.PoolReport)
        print(f"the service reads it           {median_ms(lambda: decoder.decode(sent)):7.1f} ms, once for all")
        each = median_ms(lambda: msgspec.json.encode(view_now(report, Sight(viewer, report))))
        print(f"it answers Now for one reader  {each:7.1f} ms, {len(now) / 1000:.0f} kB")
        mine = median_ms(lambda: msgspec.json.encode(view_me(report, Sight(viewer, report))))
        print(f"it answers Me for one reader   {mine:7.1f} ms")


if __name__ == "__main__":
    main(*(int(word) for word in [*sys.argv[1:], *("500", "2000")[len(sys.argv) - 1 :]]))
