"""What hot `%%gpu` cells cost over plain ones, in the shell of one process, with its own pool: no client, no kernel.

    python benchmarks/hot_cells.py [--quick] [--only ROW] [--json FILE]

One row for each thing that a notebook does again and again. Plain and `%%gpu` cells in turn; medians and minima, in
milliseconds. Ratios of one run are what counts: the machine is never the same twice.
"""

import argparse
import gc
import json
import os
import pickle
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path

import psutil
from IPython.core.interactiveshell import InteractiveShell

Row = dict[str, float]

DEFINITIONS = """
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def norm(self):
        return (self.x ** 2 + self.y ** 2) ** 0.5

def make_adder(k):
    def add(value):
        return value + k
    return add
"""

#: A notebook's small change: six kinds of values, each under a name of its own.
NAMES = """
import numpy as np, pandas as pd
_makers = [lambda i: i * 7, lambda i: f'a short string number {i}', lambda i: {'id': i, 'tags': ['a', 'b', str(i)]},
           lambda i: pd.DataFrame({'a': np.arange(5) + i, 'b': list('vwxyz')}), make_adder, lambda i: Point(i, i + 1)]
for _i in range(%d):
    globals()[f'value_{_i}'] = _makers[_i %% 6](_i)
del _makers, _i
"""

FRAME = """
import numpy as np, pandas as pd
random, rows = np.random.default_rng(0), %d
words = np.array([f'category_{i:03d}' for i in range(100)], dtype=object)
x = pd.DataFrame({**{f'f{n}': random.random(rows) for n in range(8)},
    's0': pd.Series(words[random.integers(0, 100, rows)], dtype=object),
    's1': pd.Series([f'user-{i:07d}' for i in range(rows)], dtype=object)})
del words, random, rows
"""


class Shell:
    """A notebook of this process, whose pool is its own."""

    def __init__(self) -> None:
        os.environ.setdefault("BULLETIN_RUNTIME_DIR", tempfile.mkdtemp(prefix="bulletin-bench-"))
        self.main = sys.modules["__main__"] = types.ModuleType("__main__")
        self.shell = InteractiveShell.instance(user_module=self.main)
        self.run("%load_ext bulletin_magic")
        self.run("%%gpu\npass")

    def run(self, code: str) -> float:
        """Run a cell; return how long it took, in milliseconds. Raises what it raised."""
        began = time.perf_counter()
        result = self.shell.run_cell(code, store_history=False)
        taken = 1000 * (time.perf_counter() - began)
        result.raise_error()
        return taken

    def forget(self) -> None:
        """Begin another notebook: no names, and a fresh executor."""
        self.shell.reset(new_session=False)
        self.run("%gpu reset")
        self.run("%%gpu\npass")
        gc.collect()


def of(taken: list[float], name: str) -> Row:
    """Return the median and the smallest of a list."""
    return {f"{name}, median": statistics.median(taken), f"{name}, least": min(taken)}


def more(less: list[float], much: list[float]) -> Row:
    """Return by how much the second of each pair takes longer; and the quickest second than the quickest first."""
    pairs = [second - first for first, second in zip(less, much, strict=True)]
    return {"over, median": statistics.median(pairs), "over, of the least": min(much) - min(less)}


def over(shell: Shell, cell: str, times: int, before: str = "") -> Row:
    """Run the cell plainly and with `%%gpu` in turn; `before` each, a cell that does not count."""
    plain, gpu = [], []
    for number in range(times + 3):
        if before:
            shell.run(before)
        taken = shell.run(cell)
        if before:
            shell.run(before)
        taken_gpu = shell.run(f"%%gpu\n{cell}")
        if number >= 3:
            plain.append(taken)
            gpu.append(taken_gpu)
    return {**of(plain, "plain"), **of(gpu, "%%gpu"), **more(plain, gpu)}


def empty(shell: Shell, *, quick: bool) -> Row:
    """Run an empty cell."""
    return over(shell, "pass", 100 if quick else 500)


def small_array(shell: Shell, *, quick: bool) -> Row:
    """Send 1 MB that is new in each cell, add 1, and bring it back."""
    shell.run("import numpy as np\nx = np.random.default_rng(1).random(125_000); y = None")
    return over(shell, "y = x + 1", 50 if quick else 200, "x += 1")


def large_array(shell: Shell, *, quick: bool) -> Row:
    """Use an array of 1 GB that nobody changes, in turn with an empty cell."""
    shell.run(f"import numpy as np\nx = np.random.default_rng(1).random({10**7 if quick else 125_000_000})")
    shell.run("%%gpu\nlen(x)")
    using, nothing = [], []
    for number in range(13 if quick else 23):
        nothing.append(shell.run("%%gpu\npass"))
        using.append(shell.run("%%gpu\nn = len(x)"))
        if number < 3:
            nothing.clear()
            using.clear()
    return {**of(nothing, "empty"), **of(using, "1 GB unchanged"), **more(nothing, using)}


def frame(shell: Shell, *, quick: bool) -> Row:
    """Send a frame of ten columns, two of them texts as objects; a copy with another column comes back."""
    rows = 100_000 if quick else 1_000_000
    twice, there = [], []
    for number in range(4):
        shell.run(FRAME % rows)
        shell.run("%%gpu\nimport numpy as np, pandas as pd")
        value = shell.main.x
        began = time.perf_counter()
        pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(value, 5)), 5))
        taken = 1000 * (time.perf_counter() - began)
        del value
        taken_gpu = shell.run("%%gpu\ny = x.copy(deep=False); y['f0'] = y['f0'] + 1")
        if number:
            twice.append(taken)
            there.append(taken_gpu)
        shell.run("del x, y")
    ratio = statistics.median(there) / statistics.median(twice)
    return {**of(twice, "pickle twice"), **of(there, "%%gpu"), "times pickle": ratio}


def names(shell: Shell, *, quick: bool) -> Row:
    """Reach 2,000 small values of six kinds: first, one changed, unchanged."""
    count = 200 if quick else 2000
    reach = "(" + ", ".join(f"value_{n}" for n in range(count)) + ")"
    first, changed, unchanged, plain = [], [], [], []
    for _ in range(3):
        shell.run(DEFINITIONS)
        shell.run(NAMES % count)
        shell.run("%%gpu\nimport numpy, pandas")
        first.append(shell.run(f"%%gpu\nn = {reach}.__len__()"))
        for number in range(5):
            shell.run(f"value_2['id'] = {number}")
            changed.append(shell.run(f"%%gpu\nn = {reach}.__len__()"))
            unchanged.append(shell.run(f"%%gpu\nn = {reach}.__len__()"))
            plain.append(shell.run(f"n = {reach}.__len__()"))
        shell.forget()
    return {**of(plain, "plain"), **of(first, "first"), **of(changed, "one changed"), **of(unchanged, "unchanged")}


def heap(shell: Shell, *, quick: bool) -> Row:
    """Run an empty cell in a notebook of 10 million objects."""
    found = {f"{key}, few objects": value for key, value in over(shell, "pass", 50).items()}
    shell.run(f"heap = [[n] for n in range({10**6 if quick else 10**7})]")
    found |= {f"{key}, many": value for key, value in over(shell, "pass", 50).items()}
    found |= {f"n = 1, {key}, many": value for key, value in over(shell, "n = 1", 50).items()}
    return found


def fork(shell: Shell, *, quick: bool) -> Row:
    """Begin a session whose zygote has torch, up to its first result."""
    taken = []
    cell = "%%gpu\nimport torch as bench_torch\nfirst = float(bench_torch.ones(4).sum())"
    shell.run(cell)
    for _ in range(5 if quick else 15):
        shell.run("%gpu reset")
        taken.append(shell.run(cell))
    return of(taken, "first result")


ROWS: dict[str, Callable[..., Row]] = {
    "empty": empty, "small_array": small_array, "large_array": large_array, "frame": frame, "names": names,
    "heap": heap, "fork": fork,
}  # fmt: skip


def main() -> None:
    """Print the rows, and write them as JSON where asked."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="fewer runs, smaller values")
    options.add_argument("--only", nargs="*", choices=list(ROWS), default=[name for name in ROWS if name != "fork"])
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    shell, found = Shell(), {}
    for name in given.only:
        found[name] = ROWS[name](shell, quick=given.quick)
        sys.stdout.write(f"{name}: {ROWS[name].__doc__}\n")
        for key, value in found[name].items():
            sys.stdout.write(f"    {key:34} {value:10.2f}\n")
        sys.stdout.flush()
        shell.forget()
    shell.run("%gpu reset")
    for child in psutil.Process().children():
        child.terminate()  # the pool, which would wait for more notebooks
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
