"""What the state of a notebook costs on its way: beside plain pickle, in one run, without sockets.

    python benchmarks/state.py [--quick] [--json FILE]

Two interpreters are joined by a pipe, as two ends of a session; their work is timed at each end, the pipe is not. Rows:
100,000 small dicts against `pickle.dumps` and `loads` of the same, an array unchanged and with one element changed,
frames and a list of a million texts, a new array in a notebook of many objects, and many names. Medians. Ratios of one
run are what counts: the machine is never the same twice.
"""

import argparse
import ast
import json
import pickle
import statistics
import struct
import subprocess
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bulletin import state

ROOT = Path(__file__).parents[1]


def clock(action: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds, and the result."""
    began = time.perf_counter()
    result = action()
    return 1000 * (time.perf_counter() - began), result


# --- the executor's end


def serve() -> None:
    """Cells come in on the standard input, as source and parts; times of restore and changes and parts go out."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    namespace, table = module.__dict__, state.Table()
    while head := requests.read(8):
        source, parts = pickle.loads(requests.read(struct.unpack("<Q", head)[0]))
        restored_ms, baseline = clock(lambda: state.restore(parts, namespace, table))  # noqa: B023
        exec(source, namespace)
        changed_ms, changed = clock(lambda: state.changes(namespace, baseline))  # noqa: B023
        body = pickle.dumps((restored_ms, changed_ms, [bytearray(part) for part in changed.parts]))
        answers.write(struct.pack("<Q", len(body)) + body)
        answers.flush()


# --- the notebook's end


class Notebook:
    """A namespace whose cells run at the other end."""

    def __init__(self) -> None:
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module
        self.table = state.Table()
        command = [sys.executable, __file__, "--serve"]
        environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def local(self, source: str) -> None:
        """Run a cell here."""
        exec(source, self.module.__dict__)

    def gpu(self, source: str) -> dict[str, float]:
        """Run a cell there: milliseconds of each step, and bytes of values each way."""
        namespace = self.module.__dict__
        captured_ms, captured = clock(
            lambda: state.capture(namespace, state.needs(source, namespace), table=self.table)
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        body = pickle.dumps((source, [bytearray(part) for part in captured.parts]))
        self._child.stdin.write(struct.pack("<Q", len(body)) + body)
        self._child.stdin.flush()
        (size,) = struct.unpack("<Q", self._child.stdout.read(8))
        restored_ms, changed_ms, parts = pickle.loads(self._child.stdout.read(size))
        applied_ms, _ = clock(lambda: state.apply(parts, namespace, sent=captured))
        return {
            "capture": captured_ms,
            "restore": restored_ms,
            "changes": changed_ms,
            "apply": applied_ms,
            "there": sum(memoryview(part).nbytes for part in captured.parts[1:]),
            "back": sum(memoryview(part).nbytes for part in parts[1:]),
        }

    def close(self) -> None:
        """End the other end."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


DICTS = "data = [{'id': n, 'name': str(n), 'score': n / 7} for n in range(%d)]"


def of_dicts(count: int, times: int) -> dict[str, Any]:
    """Small dicts: first there, unchanged, one changed there."""
    plain, first, again, changed = [], [], [], []
    for _ in range(times):
        notebook = Notebook()
        notebook.local(DICTS % count)
        dumped_ms, dumped = clock(lambda: pickle.dumps(notebook.module.data, protocol=5))  # noqa: B023
        loaded_ms, _ = clock(lambda: pickle.loads(dumped))  # noqa: B023
        plain.append(dumped_ms + loaded_ms)
        cells = [notebook.gpu(cell) for cell in ("len(data)", "len(data)", "data[7]['score'] = 1")]
        first.append(cells[0]["capture"] + cells[0]["restore"])
        again.append(cells[1]["capture"] + cells[1]["restore"] + cells[1]["changes"] + cells[1]["apply"])
        changed.append(cells[2]["apply"])
        notebook.close()
    base = statistics.median(plain)
    rows = {"first dump and load": first, "unchanged, all four steps": again, "apply of a change in place": changed}
    return {
        "pickle.dumps + loads, ms": base,
        **{f"{name}, ms": statistics.median(taken) for name, taken in rows.items()},
        **{f"{name}, times pickle": statistics.median(taken) / base for name, taken in rows.items()},
    }


def of_array(size_bytes: int, times: int) -> dict[str, Any]:
    """A large array: unchanged, and with one element changed at either end."""
    notebook = Notebook()
    notebook.local(f"import numpy as np\nbig = np.zeros({size_bytes // 8})")
    first = notebook.gpu("len(big)")
    cells = {
        "unchanged": [notebook.gpu("len(big)") for _ in range(times)],
        "one element changed there": [notebook.gpu(f"big[{1000 * n}] += 1") for n in range(times)],
    }
    here = []
    for n in range(times):
        notebook.local(f"big[{5000 * n}] += 1")
        here.append(notebook.gpu("len(big)"))
    cells["one element changed here"] = here
    notebook.close()
    found: dict[str, Any] = {"size, bytes": size_bytes, "first, bytes there": first["there"]}
    for name, rows in cells.items():
        for field in ("there", "back"):
            found[f"{name}, bytes {field}"] = max(row[field] for row in rows)
        steps = [sum(row[step] for step in ("capture", "restore", "changes", "apply")) for row in rows]
        found[f"{name}, ms"] = statistics.median(steps)
    return found


FRAME = """
import numpy as np, pandas as pd
rows, random = %d, np.random.default_rng(0)
words = np.array([f"category_{n:03d}" for n in range(100)], dtype=object)
texts = pd.StringDtype(%r, na_value=np.nan)
x = pd.DataFrame({**{f"f{n}": random.random(rows) for n in range(3)}, "i": random.integers(0, 1 << 40, rows),
    "t": pd.date_range("2020-01-01", periods=rows, freq="s"),
    "few": pd.array(words[random.integers(0, 100, rows)], dtype=texts),
    "many": pd.array([f"user-{n:07d}" for n in range(rows)], dtype=texts)})
del words, texts, random
"""


def of_frame(count: int, storage: str, times: int) -> dict[str, Any]:
    """A frame with two columns of texts: a new one there, and a copy back with one column changed; then unchanged."""
    first, added, again, plain = [], [], [], []
    notebook = Notebook()
    notebook.gpu("import numpy as np, pandas as pd")
    for _ in range(times):
        notebook.local(FRAME % (count, storage))
        twice_ms, _ = clock(lambda: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(notebook.module.x, 5)), 5)))
        plain.append(twice_ms)
        rows = [notebook.gpu(cell) for cell in ("y = x.copy(deep=False); y['f0'] = y['f0'] + 1", "len(x), len(y)")]
        again.append(_sum(notebook.gpu("len(x), len(y)")))
        first.append(_sum(rows[0]))
        added.append(_sum(notebook.gpu("z = y.copy(deep=False); z['f1'] = z['f1'] + 1")))
        notebook.local("del x, y, z")
    notebook.close()
    return _against(plain, {"there and a copy back": first, "another copy back": added, "unchanged, both": again})


def of_list(count: int, times: int) -> dict[str, Any]:
    """A list of texts: there for the first time, unchanged, and with one more after the cell."""
    plain, first, again, more = [], [], [], []
    notebook = Notebook()
    for _ in range(times):
        notebook.local(f"data = [str(n) for n in range({count})]")
        once_ms, _ = clock(lambda: pickle.loads(pickle.dumps(notebook.module.data, 5)))
        plain.append(once_ms)
        for rows, cell in ((first, "len(data)"), (again, "len(data)"), (more, "data.append('x')")):
            rows.append(_sum(notebook.gpu(cell)))
    notebook.close()
    return _against(plain, {"first time": first, "unchanged": again, "one more": more}, "pickle, once")


def of_heap(counts: Sequence[int], times: int) -> dict[str, Any]:
    """A cell that makes a new array, in notebooks of so many other objects."""
    found = {}
    for count in counts:
        notebook = Notebook()
        notebook.local(f"import numpy as np\nheap = [[n] for n in range({count})]\nx = np.zeros(4)")
        rows = [_sum(notebook.gpu("x = x + 1")) for _ in range(5 * times)]
        found[f"{count:,} lists, ms"] = statistics.median(rows[2:])
        notebook.close()
    return found


def _sum(row: dict[str, float]) -> float:
    return sum(row[step] for step in ("capture", "restore", "changes", "apply"))


def _against(
    plain: list[float], rows: dict[str, list[float]], called: str = "pickle.dumps + loads, twice"
) -> dict[str, Any]:
    base = statistics.median(plain)
    return {
        f"{called}, ms": base,
        **{f"{name}, ms": statistics.median(taken) for name, taken in rows.items()},
        **{f"{name}, times pickle": statistics.median(taken) / base for name, taken in rows.items()},
    }


def of_names(count: int, times: int) -> dict[str, Any]:
    """Many small values, one of which changes: what a notebook of a day's work costs each cell."""
    notebook = Notebook()
    notebook.local("\n".join(f"def f{n}(x=[{n}]): return x\nv{n} = {{'n': {n}, 'kids': [f{n}]}}" for n in range(count)))
    cell = "v0['n'] += 1; " + "; ".join(f"v{n}" for n in range(count))
    ast.parse(cell)
    notebook.gpu(cell)
    rows = [notebook.gpu(cell) for _ in range(times)]
    notebook.close()
    steps = ("capture", "restore", "changes", "apply")
    return {f"{step}, ms": statistics.median(row[step] for row in rows) for step in steps}


def main() -> None:
    """Print a table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve()
        return
    count, size, times = (10_000, 1 << 26, 3) if chosen.quick else (100_000, 1 << 30, 5)
    found = {
        f"{count:,} small dicts": of_dicts(count, times),
        f"array of {size >> 20} MiB": of_array(size, times),
        f"frame of {10 * count:,} rows, texts in Python": of_frame(10 * count, "python", times),
        f"frame of {10 * count:,} rows, texts of pyarrow": of_frame(10 * count, "pyarrow", times),
        f"list of {10 * count:,} texts": of_list(10 * count, times),
        "a new array, in a notebook of": of_heap((0, 100 * count), times),
        "100 functions and 100 dicts": of_names(100, 4 * times),
    }
    for title, rows in found.items():
        print(title)
        for name, value in rows.items():
            print(f"  {name:45} {value:>15,.2f}" if isinstance(value, float) else f"  {name:45} {value:>15,}")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
