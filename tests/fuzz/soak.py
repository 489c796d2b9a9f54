"""Throws random messages at every link of a real pool, beside a notebook that goes on, and says what it cost.

    python -m tests.fuzz.soak 1000000

Attackers are processes of their own: at the broker's two sockets, at the agent's, at executors' pipes (out of cells)
and at the door. They come in rounds. A cell of an honest notebook runs through each of them and counts it; after it,
memory is looked at. It may grow no more from the first fifth of the rounds to the last round than it did in that
fifth, and the processes of the pool are the same as before. Ends with 1 if one of that is not so.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.attacks import AgentAttack, Attack, BrokerAttack, DoorAttack, ExecutorAttack
from tests.integration.conftest import Notebook, PoolProcess

#: Who attacks, and with which part of the messages.
ATTACKS: dict[type[Attack], float] = {BrokerAttack: 0.4, AgentAttack: 0.4, ExecutorAttack: 0.19, DoorAttack: 0.01}
ROUNDS = 20
#: A round that takes so long does not end.
_ROUND_S = 1_200.0
#: What readings of memory differ by where nothing is kept: allocators give back in pieces.
_PIECE_BYTES = 8 * 2**20
#: The honest cell: it runs until the attackers of a round are through.
_CELL = """%%gpu
import pathlib, time
print("goes on")
while not pathlib.Path({file!r}).exists():
    time.sleep(0.05)
x += 1
print(x)
"""


def _attack(kind: type[Attack], folder: Path, seed: int, count: int) -> None:
    attacker = kind(folder, seed)
    try:
        attacker.throw(count)
    finally:
        attacker.close()


def _throw(folder: Path, seed: int, count: int) -> list[str]:
    """Let all attackers throw so many messages together, at once; return who of them failed."""
    spawn = multiprocessing.get_context("spawn")
    attackers = []
    for number, (kind, part) in enumerate(ATTACKS.items()):
        process = spawn.Process(
            target=_attack, args=(kind, folder, seed * 10 + number, max(1, round(part * count))), name=kind.__name__
        )
        process.start()
        attackers.append(process)
    failed = []
    for process in attackers:
        process.join(_ROUND_S)
        if process.exitcode != 0:
            process.kill()
            process.join()
            failed.append(f"{process.name} ended with {process.exitcode}")
    return failed


class Fuzz:
    """A pool that is attacked, and the notebook beside it."""

    def __init__(self, pool: PoolProcess, notebook: Notebook) -> None:
        self._pool, self._notebook = pool, notebook
        notebook.run("%%gpu\nx = 0")
        self._ends = pool.folder.parent / "round-ends"
        self._parts = {part: pool.part(part) for part in ("broker", "agent")}
        self.problems: list[str] = []
        self.bytes: dict[str, list[int]] = {part: [self._read_bytes(part)] for part in self._parts}

    def run(self, count: int, seed: int, rounds: int, say: Callable[[str], Any]) -> None:
        """Throw so many messages in rounds; note what went wrong in `problems`."""
        began_s = time.monotonic()
        say(f"before: {self._show_bytes()}")
        for number in range(1, rounds + 1):
            self._ends.unlink(missing_ok=True)
            output = self._notebook.run_until(
                _CELL.format(file=str(self._ends)),
                "goes on",
                partial(self._attack, seed * 1000 + number, count // rounds),
            )
            if output.stream() != f"goes on\n{number}\n":
                self.problems.append(f"the notebook's session did not go on in round {number}: {output.shown[-500:]}")
            for part, before in self._parts.items():
                if not before.is_running() or self._pool.part(part).pid != before.pid:
                    self.problems.append(f"the {part} ended in round {number}")
            if self.problems:
                return
            for part, readings in self.bytes.items():
                readings.append(self._read_bytes(part))
            say(f"round {number} of {rounds}, {time.monotonic() - began_s:.0f} s: {self._show_bytes()}")
        self._judge_memory(rounds)

    def _attack(self, seed: int, count: int) -> None:
        self.problems += _throw(self._pool.folder, seed, count)
        self._ends.touch()

    def _read_bytes(self, part: str) -> int:
        return int(self._parts[part].memory_info().rss)

    def _show_bytes(self) -> str:
        return ", ".join(f"{part} {readings[-1] / 2**20:.0f} MiB" for part, readings in self.bytes.items())

    def _judge_memory(self, rounds: int) -> None:
        for part, readings in self.bytes.items():
            first = readings[: max(2, rounds // 5 + 1)]
            margin = max(_PIECE_BYTES, max(first) - readings[0])
            if rounds > 1 and readings[-1] > max(first) + margin:
                told = ", ".join(f"{one / 2**20:.0f}" for one in readings)
                self.problems.append(f"the {part}'s memory grows (MiB): {told}")

    @property
    def counters(self) -> dict[str, int]:
        """What the pool has counted."""
        return self._pool.picture().counters


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    print(f"{options.count} messages, seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bulletin-fuzz-") as name:
        pool = PoolProcess(
            Path(name) / "pool", "--slots", "8", "--Pool.preload=numpy", "--Pool.keep=5", "--Pool.keep_results=2"
        )
        try:
            notebook = Notebook({"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json")}, Path(name))
            fuzz = Fuzz(pool, notebook)
            fuzz.run(options.count, options.seed, options.rounds, lambda text: print(text, flush=True))
            print(fuzz.counters)
            notebook.close()
        finally:
            pool.stop()
        log = (Path(name) / "pool.log").read_text(errors="replace")
    for line in [line for line in log.splitlines() if "event=fault" in line or "Traceback" in line][:5]:
        print(line[:3000])
    for problem in fuzz.problems:
        print(f"PROBLEM {problem}")
    return 1 if fuzz.problems else 0


if __name__ == "__main__":
    sys.exit(main())
