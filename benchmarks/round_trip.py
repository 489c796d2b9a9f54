"""What a `%%gpu` cell costs, beside what the machine and a plain kernel do, in one run.

    python benchmarks/round_trip.py [--quick] [--no-ring] [--json FILE]
    python benchmarks/round_trip.py --against FOLDER [--quick]

Rows: an empty hot `%%gpu` cell against a plain ipykernel execute request; an array there, `y = x + 1`, and `y` back,
against raw ZeroMQ over loopback (one process to another: send x, add, send y; whole frames and 4 MB chunks into reused
memory). Medians; each row says how often. Ratios of one run are what counts: the machine is never the same twice.

With `--against`, the same cells on this code and on that of a checkout in FOLDER, one cell in turn with the other: what
else the machine does meets both alike. Quartiles of what a `%%gpu` cell costs over the plain one.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

CHUNK = 4 * 2**20


def taken_ms(action: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - began)


def median_ms(action: Callable[[], object], times: int, before: Callable[[], object] = bool) -> float:
    """Median of `times` runs, after one that does not count. `before` each, something that does not count either."""
    taken = []
    for _ in range(times + 1):
        before()
        taken.append(taken_ms(action))
    return statistics.median(taken[1:])


# --- raw ZeroMQ


def echo_plus_one(port_pipe: Any) -> None:
    """The other end: whole frames are answered with a new array, chunks are added in place and sent back."""
    context = zmq.Context()
    socket = context.socket(zmq.PAIR)
    socket.sndhwm = socket.rcvhwm = 0
    port_pipe.send(socket.bind_to_random_port("tcp://127.0.0.1"))
    room: np.ndarray | None = None
    while True:
        head = socket.recv_json()
        if head is None:
            return
        if head["chunked"]:
            if room is None or room.nbytes != head["bytes"]:
                room = np.ones(head["bytes"] // 8)
            flat = memoryview(room).cast("B")
            for at in range(0, head["bytes"], CHUNK):
                socket.recv_into(flat[at : at + CHUNK])
            answer = room + 1
            flat = memoryview(answer).cast("B")
            for at in range(0, head["bytes"], CHUNK):
                socket.send(flat[at : at + CHUNK], copy=False)
        else:
            frame = socket.recv(copy=False)
            socket.send(np.frombuffer(frame.buffer) + 1, copy=False)


class Raw:
    """Raw ZeroMQ to another process over loopback."""

    def __init__(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=echo_plus_one, args=(theirs,), daemon=True)
        self.process.start()
        self.socket = zmq.Context.instance().socket(zmq.PAIR)
        self.socket.sndhwm = self.socket.rcvhwm = 0
        self.socket.connect(f"tcp://127.0.0.1:{ours.recv()}")

    def frames(self, x: np.ndarray) -> None:
        self.socket.send_json({"bytes": x.nbytes, "chunked": False})
        self.socket.send(x, copy=False)
        np.frombuffer(self.socket.recv(copy=False).buffer)

    def chunks(self, x: np.ndarray, room: np.ndarray) -> None:
        self.socket.send_json({"bytes": x.nbytes, "chunked": True})
        flat = memoryview(x).cast("B")
        for at in range(0, x.nbytes, CHUNK):
            self.socket.send(flat[at : at + CHUNK], copy=False)
        flat = memoryview(room).cast("B")
        for at in range(0, x.nbytes, CHUNK):
            self.socket.recv_into(flat[at : at + CHUNK])

    def close(self) -> None:
        self.socket.send_json(None)
        self.socket.close()


# --- Bulletin


#: The isolation by its long name: commits before there was one pass over it.
_OPTIONS = ("--slots", "1", "--device", "cpu", "--Pool.isolation=shared")


class Bulletin:
    """A real kernel on a real pool of one CPU slot, with this code or that of the checkout in `code`."""

    def __init__(self, folder: Path, *, ring: bool, code: Path | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.log = (folder / "pool.log").open("wb")
        pool = folder / "pool"
        environ = dict(os.environ) if code is None else {**os.environ, "PYTHONPATH": str(code)}
        self.pool = subprocess.Popen(
            [sys.executable, "-m", "gpu_worker.cli", "pool", "--folder", str(pool), *_OPTIONS],
            stdout=self.log,
            stderr=self.log,
            env=environ,
            cwd=code,
        )
        while not (pool / "agent.json").exists():
            time.sleep(0.05)
        if not ring:
            (pool / "door").unlink(missing_ok=True)
        self.manager = KernelManager()
        environ["BULLETIN_CONNECTION_FILE"] = str(pool / "connection.json")
        self.manager.start_kernel(env=environ, cwd=None if code is None else str(code))
        self.client: BlockingKernelClient = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.run("%load_ext bulletin_magic")
        self.run("import numpy as np, time")

    def run(self, code: str) -> None:
        """Execute; returns at the reply, as a front end sees the cell end."""
        reply = self.client.execute_interactive(code, output_hook=lambda _: None, timeout=300)
        if reply["content"]["status"] != "ok":
            raise RuntimeError("\n".join(reply["content"]["traceback"]))

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.pool.terminate()
        self.pool.wait()
        self.log.close()


def in_turn(folder: Path, other: Path, *, quick: bool) -> None:
    """Print the quartiles of both, for an empty cell and for arrays that are new in each cell."""
    codes = {"before": other.resolve(), "now": Path(__file__).resolve().parents[1]}
    both = {name: Bulletin(folder / name, ring=True, code=code) for name, code in codes.items()}
    try:
        for size, times in ((0, 100 if quick else 300), (10**6, 50), (10**8, 10)):
            cell = "y = x + 1" if size else "pass"
            over: dict[str, list[float]] = {name: [] for name in both}
            for bulletin in both.values():
                bulletin.run(f"x = np.random.default_rng(1).random({size // 8}); y = None")
                bulletin.run(f"%%gpu\n{cell}")
            for number in range(times):
                for name, bulletin in sorted(both.items(), reverse=bool(number % 2)):
                    bulletin.run("x += 1")
                    plain = taken_ms(partial(bulletin.run, cell))
                    bulletin.run("x += 1")
                    over[name].append(taken_ms(partial(bulletin.run, f"%%gpu\n{cell}")) - plain)
            for name, values in over.items():
                said = "  ".join(f"{value:.3g}" for value in statistics.quantiles(values, n=4))
                sys.stdout.write(f"{size // 10**6:4} MB, {name:7} {said} ms over the plain cell  (n={times})\n")
    finally:
        for bulletin in both.values():
            bulletin.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="fewer runs, no 1 GB")
    options.add_argument("--no-ring", action="store_true", help="as between hosts: no shared memory")
    options.add_argument("--json", type=Path)
    options.add_argument("--against", type=Path, help="a checkout of another version, to run in turn with this one")
    given = options.parse_args()
    if given.against:
        with tempfile.TemporaryDirectory(prefix="bulletin-bench-") as folder:
            in_turn(Path(folder), given.against, quick=given.quick)
        return
    rows: list[dict[str, Any]] = []

    def row(name: str, times: int, **figures: float) -> None:
        rows.append({"row": name, "times": times, **figures})
        sys.stdout.write(
            f"{name:34} " + "  ".join(f"{key} {value:.3g}" for key, value in figures.items()) + f"  (n={times})\n"
        )

    with tempfile.TemporaryDirectory(prefix="bulletin-bench-") as folder:
        bulletin, raw = Bulletin(Path(folder), ring=not given.no_ring), Raw()
        try:
            times = 50 if given.quick else 300
            plain = median_ms(lambda: bulletin.run("pass"), times)
            remote = median_ms(lambda: bulletin.run("%%gpu\npass"), times)
            row("empty cell (ms)", times, plain=plain, gpu=remote, over=remote - plain, ratio=remote / plain)
            for size, times in ((10**6, 30), (10**8, 7), *(() if given.quick else ((10**9, 3),))):
                x = np.random.default_rng(1).random(size // 8)
                room = np.ones(size // 8)
                frames = median_ms(partial(raw.frames, x), times)
                chunks = median_ms(partial(raw.chunks, x, room), times)
                bulletin.run(f"x = np.random.default_rng(1).random({size // 8}); y = None")
                anew = partial(bulletin.run, "x += 1")
                local = median_ms(lambda: bulletin.run("y = x + 1"), times, anew)
                cell = median_ms(lambda: bulletin.run("%%gpu\ny = x + 1"), times, anew)
                row(
                    f"{size // 10**6} MB there and back (ms)",
                    times,
                    local=local,
                    gpu=cell,
                    zmq_frames=frames,
                    zmq_chunks=chunks,
                    over_frames=cell / frames,
                    over_chunks=cell / chunks,
                )
        finally:
            bulletin.close()
            raw.close()
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
