"""What a hot `%%gpu` cell, and the first of a session, cost with this code and with that of another folder, in turn.

    python benchmarks/hot_against.py ../before [--rounds N] [--json FILE]

Two notebooks in a shell, each with its own pool, one of each code, take turns of some cells: so both have the same load
beside them. Wall time of a cell in milliseconds, and the processor's time that it took in each process: the notebook
with its link, agent, executor and broker. That is steadier where the machine does other work as well; and of the wall
time there is the median of that quarter of the turns in which others had the least of the processors.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from hot_cells import Shell

ROOT = Path(__file__).parents[1]
#: What runs: the cell, what runs before each and does not count, and how many in a turn.
ROWS = {
    "empty hot cell": ("%%gpu\npass", "", 60),
    "1 MB there, + 1, back": ("%%gpu\ny = x + 1", "x += 1", 30),
    "first result of a session, pandas": (
        "%%gpu\nimport pandas as library\nfirst = float(library.Series([1.0]).sum())",
        "%gpu reset",
        1,
    ),
}
SETUP = "import numpy as np\nx = np.random.default_rng(1).random(125_000); y = None"
ROLES = ("notebook", "agent", "executor", "broker")


# --- one notebook


def processor_ns(root: psutil.Process) -> dict[str, int]:
    """Return what the processes of a notebook and its pool have taken of the processor, by what they are."""
    found = dict.fromkeys(ROLES, 0)
    for process in (root, *root.children(recursive=True)):
        try:
            words = process.cmdline()
            role = next((role for role in ("broker", "agent") if role in words), "executor")
            role = "notebook" if process == root else role
            for schedule in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
                found[role] += int(schedule.read_text().split()[0])
        except (OSError, psutil.Error):
            continue  # it has ended
    return found


def serve() -> None:
    """Run what comes in on the standard input, a line each; say how long each cell took, and the processor's time."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    shell, root = Shell(), psutil.Process()
    shell.run(SETUP)
    for line in sys.stdin:
        cell, before, times = json.loads(line)
        taken_ms = []
        for number in range(times):
            if before:
                shell.run(before)
            if number == 0:  # to ask for it takes longer than a cell
                at_first = processor_ns(root)
            taken_ms.append(shell.run(cell))
        taken_ns = {role: max(0, now_ns - at_first[role]) for role, now_ns in processor_ns(root).items()}
        answers.write(json.dumps({"wall": taken_ms, **taken_ns}) + "\n")
        answers.flush()
    shell.run("%gpu reset")
    for child in root.children():
        child.terminate()


# --- both


def busy_s() -> float:
    """Return for how long the processors of this machine have worked, for whomever, since it was started."""
    user, nice, system, _, _, *other = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + sum(other[:3])) / os.sysconf("SC_CLK_TCK")


class Side:
    """The notebook of one of the two codes."""

    def __init__(self, folder: Path) -> None:
        """Start it. The benchmark itself is the one of this folder."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def turn(self, cell: str, before: str, times: int) -> dict[str, Any]:
        """Run some cells; add to what it says how many processors others had meanwhile."""
        busy_before_s, began_s = busy_s(), time.monotonic()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps((cell, before, times)) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        own_s = sum(answer[role] for role in ROLES) / 1e9
        return {**answer, "others": (busy_s() - busy_before_s - own_s) / (time.monotonic() - began_s)}

    def close(self) -> None:
        """End it with its pool."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def summary(turns: Sequence[dict[str, Any]], times: int) -> dict[str, float]:
    """Sum turns up: wall times, and the medians over the turns of what a cell took of the processor, in ms."""
    wall = [one for turn in turns for one in turn["wall"]]
    processor = {role: [turn[role] / times / 1e6 for turn in turns] for role in ROLES}
    every = [sum(turn[role] for role in ROLES) / times / 1e6 for turn in turns]
    found = {"wall, least": min(wall), "wall, quarter": statistics.quantiles(wall, n=4)[0]}
    quiet = sorted(turns, key=lambda turn: float(turn["others"]))[: max(1, len(turns) // 4)]
    found |= {
        "wall, median": statistics.median(wall),
        "wall, median of the quietest": statistics.median(one for turn in quiet for one in turn["wall"]),
        "processors that others had then": statistics.median(turn["others"] for turn in quiet),
    }
    found |= {"processor, all": statistics.median(every)}
    return found | {f"processor, {role}": statistics.median(taken) for role, taken in processor.items()}


def main() -> None:
    """Print a table for each row, and write all as JSON where asked."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("before", type=Path, nargs="?", help="a folder with the code of before")
    options.add_argument("--rounds", type=int, default=20, help="turns of each side")
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    if given.serve:
        serve()
        return
    sides = [Side(given.before.resolve()), Side(ROOT)]
    found: dict[str, Any] = {}
    for name, (cell, before, times) in ROWS.items():
        turns: list[list[dict[str, Any]]] = [[], []]
        for number in range(given.rounds + 1):
            for side in (0, 1) if number % 2 else (1, 0):
                answer = sides[side].turn(cell, before, times)
                if number:
                    turns[side].append(answer)
        found[name] = [summary(one, times) for one in turns]
        sys.stdout.write(f"{name}, ms: {'before':>16} {'now':>10}\n")
        for key in found[name][0]:
            sys.stdout.write(f"    {key:34} {found[name][0][key]:10.2f} {found[name][1][key]:10.2f}\n")
        sys.stdout.flush()
    for one in sides:
        one.close()
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
