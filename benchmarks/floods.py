"""How long an honest user waits for a grant while others flood the broker, beside how long it takes otherwise.

    python benchmarks/floods.py [--grants 15] [--json FILE]

A real pool with a stand-in for the hub. An honest user asks for a slot, again and again, each time as another kernel,
and waits until an executor is up. Meanwhile somebody floods the broker from a process of their own and reads none of
its answers: with pings or guessed tokens on one connection, or on fifty, without any token; or as a user of the pool
with searches for cells and questions for pictures of the pool. As a flood takes processors from everybody on the
same machine, whatever the broker does, there is also a case in which that process only computes.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import ThreadingHTTPServer
from itertools import count
from pathlib import Path

import psutil
import zmq

from benchmarks.grants import Answer
from bulletin.ids import KernelId, RequestId
from bulletin.wire import channel, frames, keys, messages as wire

FLOODS = ("nothing", "a process that computes", "pings", "pings, 50", "guesses", "guesses, 50", "finds", "looks")
_numbers = count()


class Hub(Answer):
    """A hub that knows the tokens that are not guessed."""

    def do_GET(self) -> None:  # noqa: N802
        """Answer."""
        if "guess" in self.headers["Authorization"]:
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_GET()


def connect(connection: keys.Connection) -> zmq.Socket[bytes]:
    """Connect to the broker."""
    socket = zmq.Context.instance().socket(zmq.DEALER)
    return channel.connect(socket, connection.address, connection.public_key, channel.CONTROL_LIMIT)


def hello(token: str) -> wire.Hello:
    """Say hello as a new kernel."""
    kernel = KernelId(f"kernel-{os.getpid()}-{next(_numbers)}")
    return wire.Hello(protocol=wire.PROTOCOL, version="benchmark", token=token, kernel=kernel)


def flood(what: str, connection: keys.Connection) -> None:
    """Flood until killed."""
    kind, _, many = what.partition(", ")
    while what == FLOODS[1]:
        pass
    sockets = [connect(connection) for _ in range(int(many or 1))]
    for socket in sockets:
        socket.sndhwm = 1000
    if kind in ("finds", "looks"):
        sockets[0].send_multipart(frames.pack(hello("user-20")))
        sockets[0].recv_multipart()
    words = {"pings": wire.Ping(), "finds": wire.Find(), "looks": wire.Look()}
    while True:
        for socket in sockets:
            message = words[kind] if kind in words else hello(f"guess-{next(_numbers)}")
            try:
                socket.send_multipart(frames.pack(message), zmq.DONTWAIT)
            except zmq.Again:
                time.sleep(0.0001)


def grant_ms(socket: zmq.Socket[bytes], unpacker: frames.Unpacker[wire.ToKernel]) -> float:
    """Ask for a slot as a new kernel, and wait for the grant."""
    began_s = time.perf_counter()
    socket.send_multipart(frames.pack(hello("user-1")))
    request = RequestId(f"request-{next(_numbers)}")
    while socket.poll(120_000):
        message, _ = unpacker.unpack(socket.recv_multipart())
        if isinstance(message, wire.Welcome):
            socket.send_multipart(frames.pack(wire.Submit(request=request)))
        elif isinstance(message, wire.Granted) and message.request == request:
            passed_ms = 1000 * (time.perf_counter() - began_s)
            leave(message)
            return passed_ms
        elif isinstance(message, wire.Refusal):
            raise SystemExit(f"the honest user was refused: {message.sentence}")
    raise SystemExit("the honest user was not granted a slot in two minutes")


def leave(granted: wire.Granted) -> None:
    """Give a lease back."""
    agent = zmq.Context.instance().socket(zmq.DEALER)
    channel.connect(agent, granted.agent.address, granted.agent.public_key, channel.DATA_LIMIT)
    attach = wire.Attach(protocol=wire.PROTOCOL, lease=granted.lease, ticket=granted.ticket)
    agent.send_multipart(frames.pack(attach))
    agent.recv_multipart()
    agent.send_multipart(frames.pack(wire.Leave()))
    agent.close(1000)


def measure(grants: int, connection: keys.Connection, broker: psutil.Process) -> list[dict[str, object]]:
    """Measure grants under each flood."""
    socket = connect(connection)
    unpacker: frames.Unpacker[wire.ToKernel] = frames.Unpacker(wire.ToKernel)
    for _ in range(3):
        grant_ms(socket, unpacker)
    spawn = multiprocessing.get_context("spawn")
    rows: list[dict[str, object]] = []
    for what in FLOODS:
        flooder = spawn.Process(target=flood, args=(what, connection), daemon=True)
        if what != FLOODS[0]:
            flooder.start()
            time.sleep(2)
        times = []
        for _ in range(grants):
            times.append(grant_ms(socket, unpacker))
            time.sleep(0.6)  # as a person would; of one connection the broker hears two hellos a second
        rss_mb = broker.memory_info().rss / 1e6
        if what != FLOODS[0]:
            flooder.kill()
            flooder.join()
        row = {"flood": what, "median_ms": statistics.median(times), "longest_ms": max(times), "broker_mb": rss_mb}
        print(f"{what:24} median {row['median_ms']:6.0f} ms, longest {max(times):6.0f} ms, broker {rss_mb:4.0f} MB")
        rows.append(row)
    return rows


def main() -> None:
    """Start a pool, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grants", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    hub = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="bulletin-floods-") as folder:
        environ = {
            **os.environ,
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{hub.server_address[1]}/hub/api",
            "JUPYTERHUB_API_TOKEN": "service",
        }
        command = [sys.executable, "-m", "gpu_worker.cli", "pool", "--folder", f"{folder}/pool", "--device", "cpu"]
        command += ["--slots", "2", "--isolation", "shared", "--exit-with-stdin"]
        log = (Path(folder) / "log").open("wb")
        pool = subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stderr=log)
        file = Path(folder) / "pool" / "connection.json"
        while not file.exists():
            time.sleep(0.05)
        children = psutil.Process(pool.pid).children(recursive=True)
        broker = next(child for child in children if "broker" in child.cmdline())
        try:
            rows = measure(options.grants, keys.read_private(file, keys.Connection), broker)
        finally:
            assert pool.stdin is not None
            pool.stdin.close()
            pool.wait(30)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
