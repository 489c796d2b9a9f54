"""How many leases a broker grants in a second, beside bare round trips through a ROUTER with as many clients.

    python benchmarks/grants.py [--clients 200] [--seconds 10] [--slots 16] [--profile FILE] [--json FILE]

The broker is the real one, in a process of its own, with its ledger in SQLite; clients are real connections, each of a
user of its own, all in one process: each asks, waits for its grant, and asks again. **The agent is a stand-in**, a
process of its own that answers at once: no executor is started, and each cell is over as soon as it was granted, with
all that an agent says of it. So what is measured is the broker: a grant is a request, a decision, an executor asked for
and reported up, the grant, a finished cell for the ledger, and the slot given back.

With as many slots as clients nobody waits; with fewer, all the others are in line, and are told where they stand.
"""

import argparse
import cProfile
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import zmq

from bulletin.ids import AgentId, CellId, KernelId, ProjectId, RequestId, SlotId
from bulletin.wire import channel, frames, keys, messages as wire

SCOPE = "access:services!service=bulletin"
USERS_A_GROUP = 10
SLOTS_A_NODE = 8


# --- the hub: who a token belongs to


class Answer(BaseHTTPRequestHandler):
    """The two answers of a hub's API that a broker asks for: a token is its user's name."""

    def do_GET(self) -> None:
        name = self.headers["Authorization"].removeprefix("token ")
        name = self.path.rpartition("/")[2] if name == "service" else name
        group = f"group-{int(name.rpartition('-')[2]) // USERS_A_GROUP}"
        body = json.dumps({"name": name, "kind": "user", "scopes": [SCOPE], "groups": [group]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


# --- the agent's stand-in


def play_agents(folder: str, slots: int) -> None:
    """Nodes of eight slots that register, and answer whatever they are asked for at once."""
    files = keys.read_private(Path(folder) / "pool.json", keys.PoolFile)
    context = zmq.Context()
    poller, sockets = zmq.Poller(), list[zmq.Socket[bytes]]()
    unpacker: frames.Unpacker[wire.ToAgent] = frames.Unpacker(wire.ToAgent)
    for node in range(-(-slots // SLOTS_A_NODE)):
        socket = channel.connect(
            context.socket(zmq.DEALER),
            files.agent_address,
            files.keys.public,
            channel.CONTROL_LIMIT,
            keys.agent_keys(files.agent_secret),
        )
        sockets.append(socket)
        poller.register(socket, zmq.POLLIN)
        offers = min(SLOTS_A_NODE, slots - node * SLOTS_A_NODE)
        register = wire.Register(
            protocol=wire.PROTOCOL,
            version="benchmark",
            secret=files.agent_secret,
            agent=AgentId(f"stand-in-{node}"),
            node=f"stand-in-{node}",
            address=wire.AgentAddress(address="tcp://127.0.0.1:1", public_key="-"),
            slots=tuple(wire.SlotOffer(slot=SlotId(f"gpu-{i}"), kind="gpu", name="GPU") for i in range(offers)),
        )
        socket.send_multipart(frames.pack(register))
    pinged_s = time.monotonic()
    while True:
        if time.monotonic() - pinged_s > 1:
            pinged_s = time.monotonic()
            for socket in sockets:
                socket.send_multipart(frames.pack(wire.Ping()))
        for socket, _ in poller.poll(1000):
            _answer(socket, unpacker)


def _answer(socket: zmq.Socket[bytes], unpacker: frames.Unpacker[wire.ToAgent]) -> None:
    def say(message: wire.Message) -> None:
        socket.send_multipart(frames.pack(message))

    while socket.poll(0):
        match unpacker.unpack(socket.recv_multipart())[0]:
            case wire.Prepare() as asked:
                say(wire.Prepared(lease=asked.lease))
                say(
                    wire.CellDone(
                        lease=asked.lease,
                        session=asked.session,
                        cell=CellId(asked.lease),
                        user=asked.user,
                        project=asked.project,
                        qos=asked.qos,
                        slots=asked.slots,
                        usage=wire.CellUsage(outcome="returned", ran_ms=0, held_ms=0),
                    )
                )
                say(wire.LeaseOver(lease=asked.lease, code="left", sentence=""))
            case wire.Evict(lease=lease) | wire.Reclaim(lease=lease):
                say(wire.LeaseOver(lease=lease, code="left", sentence=""))
            case _:
                pass


# --- the clients


class Clients:
    """As many connections, one user each."""

    def __init__(self, number: int, connection: keys.Connection) -> None:
        self._context = zmq.Context()
        self._poller = zmq.Poller()
        self.sockets: list[zmq.Socket[bytes]] = []
        self._unpacker: frames.Unpacker[wire.ToKernel] = frames.Unpacker(wire.ToKernel)
        self._numbers: dict[zmq.Socket[bytes], int] = {}
        for number_of_it in range(number):
            socket = channel.connect(
                self._context.socket(zmq.DEALER), connection.address, connection.public_key, channel.CONTROL_LIMIT
            )
            self.sockets.append(socket)
            self._numbers[socket] = number_of_it
            self._poller.register(socket, zmq.POLLIN)

    def greet(self) -> None:
        """Each says who it is and is welcome."""
        for number, socket in enumerate(self.sockets):
            hello = wire.Hello(
                protocol=wire.PROTOCOL, version="benchmark", token=f"user-{number}", kernel=KernelId(f"kernel-{number}")
            )
            socket.send_multipart(frames.pack(hello))
        for socket in self.sockets:
            while not isinstance(answer := self._unpacker.unpack(socket.recv_multipart())[0], wire.Welcome):
                raise SystemExit(f"a client is not welcome: {answer}")

    def grants(self, seconds: float, broker: psutil.Process) -> dict[str, float]:
        """Ask, wait for the grant, ask again. The first third warms up.

        Grants and news of the queue in a second, and the milliseconds of its processor that a grant costs the broker.
        """
        asked = [0] * len(self.sockets)
        granted = news = 0

        def ask(number: int) -> None:
            asked[number] += 1
            project = ProjectId(f"group-{number // USERS_A_GROUP}")
            submit = wire.Submit(request=RequestId(str(asked[number])), project=project)
            self.sockets[number].send_multipart(frames.pack(submit))

        began, is_warm, spent = time.perf_counter(), False, _spent(broker)
        for number in range(len(self.sockets)):
            ask(number)
        while (now := time.perf_counter()) - began < seconds:
            if not is_warm and now - began > seconds / 3:
                began, seconds, is_warm, granted, news = now, seconds * 2 / 3, True, 0, 0
                spent = _spent(broker)
            for socket, _ in self._poller.poll(100):
                number = self._numbers[socket]
                message = self._unpacker.unpack(socket.recv_multipart())[0]
                match message:
                    case wire.Granted():
                        granted += 1
                        ask(number)
                    case wire.Queued():
                        news += 1
                    case wire.Welcome() | wire.Pong():
                        pass
                    case _:
                        raise SystemExit(f"a client was told: {message}")
        took = time.perf_counter() - began
        cost_ms = 1000 * (_spent(broker) - spent) / max(1, granted)
        return {"grants": granted / took, "news": news / took, "cost_ms": cost_ms}

    def echoes(self, seconds: float, server: psutil.Process) -> dict[str, float]:
        """Bare round trips: the same message there and back, one under way for each client; each costs the server."""
        ping = frames.pack(wire.Submit(request=RequestId("1"), project=ProjectId("group-1")))
        count, began, spent = 0, time.perf_counter(), _spent(server)
        for socket in self.sockets:
            socket.send_multipart(ping)
        while time.perf_counter() - began < seconds:
            for socket, _ in self._poller.poll(100):
                socket.recv_multipart()
                count += 1
                socket.send_multipart(ping)
        trips = count / (time.perf_counter() - began)
        return {"trips": trips, "cost_ms": 1000 * (_spent(server) - spent) / count}

    def close(self) -> None:
        self._context.destroy(linger=0)


def _spent(process: psutil.Process) -> float:
    """Seconds of a processor that it has used."""
    times = process.cpu_times()
    return times.user + times.system


def echo(made: Any, pipe: Any) -> None:
    """The other end of the bare round trips: a ROUTER with the broker's own settings."""
    context = zmq.Context()
    socket = channel.serve(context.socket(zmq.ROUTER), made, channel.CONTROL_LIMIT, 0)
    pipe.send(channel.bind(socket, "tcp://127.0.0.1:0"))
    while True:
        socket.send_multipart(socket.recv_multipart())


# --- the run


def serve(folder: str, profile: str) -> None:
    """The broker's process."""
    from gpu_worker import cli

    words = ["broker", "--folder", folder, "--exit-with-stdin"]
    if not profile:
        cli.main(words)
    profiler = cProfile.Profile()
    try:
        profiler.runcall(cli.main, words)
    finally:
        profiler.dump_stats(profile)


def measure(clients: int, slots: int, seconds: float, profile: str = "") -> dict[str, float]:
    """Grants and news of the queue in a second, through a broker of its own."""
    spawn = multiprocessing.get_context("spawn")
    hub = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="bulletin-grants-") as folder:
        environ = {
            **os.environ,
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{hub.server_address[1]}/hub/api",
            "JUPYTERHUB_API_TOKEN": "service",
        }
        command = f"from benchmarks.grants import serve; serve({folder!r}, {profile!r})"
        log = (Path(folder) / "broker.log").open("wb")
        broker = subprocess.Popen(
            [sys.executable, "-c", command],
            env=environ,
            stdin=subprocess.PIPE,
            stderr=log,
            cwd=Path(__file__).parents[1],
        )
        agent = None
        try:
            _wait(lambda: (Path(folder) / "pool.json").exists() and _has_address(folder))
            agent = spawn.Process(target=play_agents, args=(folder, slots), daemon=True)
            agent.start()
            _wait((Path(folder) / "connection.json").exists)
            many = Clients(clients, keys.read_private(Path(folder) / "connection.json", keys.Connection))
            many.greet()
            found = many.grants(seconds, psutil.Process(broker.pid))
            many.close()
        finally:
            if agent is not None:
                agent.terminate()
                agent.join()
            assert broker.stdin is not None
            broker.stdin.close()
            try:
                broker.wait(30)
            except subprocess.TimeoutExpired:  # it is busier than it can be
                broker.kill()
                broker.wait()
            log.close()
            hub.shutdown()
    return found


def _has_address(folder: str) -> bool:
    return bool(keys.read_private(Path(folder) / "pool.json", keys.PoolFile).agent_address)


def _wait(condition: Any) -> None:
    until = time.monotonic() + 60
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("the broker does not start")
        time.sleep(0.05)


def bare(clients: int, seconds: float) -> dict[str, float]:
    """Round trips through a bare ROUTER."""
    spawn = multiprocessing.get_context("spawn")
    made, (ours, theirs) = keys.make_keys(), spawn.Pipe()
    process = spawn.Process(target=echo, args=(made, theirs), daemon=True)
    process.start()
    many = Clients(clients, keys.Connection(address=ours.recv(), public_key=made.public))
    server = psutil.Process(process.pid)
    many.echoes(min(1.0, seconds), server)
    try:
        return many.echoes(seconds, server)
    finally:
        process.terminate()
        process.join()
        many.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--clients", type=int, default=200)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--slots", type=int, default=16, help="of the second row: all other clients wait")
    options.add_argument("--profile", default="", help="a file for the profile of the second row's broker")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    trip = bare(given.clients, min(5.0, given.seconds))
    sys.stdout.write(
        f"bare round trips, {given.clients} clients: {trip['trips']:,.0f} a second, {trip['cost_ms']:.3f} ms each\n"
    )
    rows = [trip]
    for slots, profile in ((given.clients, ""), (given.slots, given.profile)):
        row = measure(given.clients, slots, given.seconds, profile)
        rows.append({"slots": slots, **row})
        sys.stdout.write(
            f"{slots:4} slots: {row['grants']:,.0f} grants a second, {row['cost_ms']:.2f} ms of the broker's processor "
            f"each, as {row['cost_ms'] / trip['cost_ms']:.0f} bare round trips; {row['news']:,.0f} news a second\n"
        )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
