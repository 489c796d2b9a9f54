"""A hub with a broker whose nodes and notebooks are played over the real wire: any number of GPUs, in any state.

The nodes register, ping with what their GPUs do, and take leases; the notebooks have tokens of the hub, and ask for
leases. No cell is run: what the pages show of a pool is what its broker knows.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import zmq

from bulletin import __version__
from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import AgentId, CellId, KernelId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from bulletin.wire import channel, frames, keys, messages as wire
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import CellRecord, CreditRecord, Record
from tests.acceptance.hub import CONFIG, Hub
from tests.waiting import until

HOUR_MS = 3_600_000

#: Projects: ml (ada, bob, and liz, who leads it, and a group that is not there yet) with vision (vic) in it, guests
#: (eve); carol may not use the pool.
HUB = """\
import os
from pathlib import Path
import bulletin_spawner.setup as setup

test = {{"groups": ["ml", "vision", "guests"], "start_pool": False, "api_token": {token!r}, "isolation": None,
    "manage_from_servers": False}}
setup.configure = lambda c, real=setup.configure, **given: real(c, **(given | test))
load_subconfig({config!r})
c = get_config()
c.Authenticator.username_pattern = ""  # as hubs have it that say nothing of it: any name
c.JupyterHub.load_groups = {{
    "ml": {{"users": ["ada", "bob", "liz"]}}, "vision": {{"users": ["vic"]}}, "guests": {{"users": ["eve"]}},
}}
c.JupyterHub.services.append({{"name": "test", "api_token": os.environ["BULLETIN_TEST_TOKEN"]}})
c.JupyterHub.load_roles += [
    {{"name": "test", "services": ["test"], "scopes": ["admin:users", "admin:groups", "admin:servers", "tokens",
        "access:servers", "access:services", "shutdown"]}},
    {{"name": "lead-ml", "users": ["liz"], "scopes": ["custom:bulletin:lead!group=ml",
        "custom:bulletin:lead!group=later"]}},
]
Path({folder!r}, "hub_api").write_text(c.JupyterHub.hub_bind_url + "/hub/api")
"""
QUOTAS = """\
[projects.ml]
guaranteed = 3
budget = "400 GPU-hours per week"

[projects.vision]
parent = "ml"
guaranteed = 2

[projects.guests]
guaranteed = 2
"""


class PlayedNode:
    """A node with GPUs that are what a test says of them."""

    def __init__(self, pool: "PlayedPool", name: str, gpus: int, memory_bytes: int = 80 * 10**9) -> None:
        self.name, self._pool = name, pool
        self.slots = tuple(SlotId(f"{name}-gpu-{number}") for number in range(gpus))
        self._memory_bytes = memory_bytes
        #: How busy its GPUs are, in percent, what of their memory is used, for how long they did nothing.
        self.uses: dict[SlotId, tuple[int, int, int]] = {}
        self.leases: dict[LeaseId, wire.Prepare] = {}
        self._running: set[LeaseId] = set()
        #: For how long cells have run when they begin.
        self.running_ms = 0
        self.is_registered = False
        self.socket = pool.connect(pool.files.agent_address, keys.agent_keys(pool.files.agent_secret))
        self._register()

    def _register(self) -> None:
        offers = tuple(
            wire.SlotOffer(slot=slot, kind="gpu", name="NVIDIA H100 80GB", memory_bytes=self._memory_bytes)
            for slot in self.slots
        )
        register = wire.Register(
            protocol=wire.PROTOCOL,
            version=__version__,
            secret=self._pool.files.agent_secret,
            agent=AgentId(f"agent-{self.name}"),
            node=self.name,
            address=wire.AgentAddress(address=self._pool.door, public_key=keys.make_keys().public),
            slots=offers,
            held=tuple(map(self._held, self.leases.values())),
        )
        self.say(register)

    def _held(self, prepare: wire.Prepare) -> wire.HeldLease:
        """What the node still has, to be told to a broker that hears it on another connection."""
        return wire.HeldLease(
            lease=prepare.lease,
            session=prepare.session,
            kernel=prepare.kernel,
            user=prepare.user,
            project=prepare.project,
            qos=prepare.qos,
            slots=prepare.slots,
            walltime_ms=prepare.walltime_ms,
            cell=CellId(f"c-{prepare.lease}") if prepare.lease in self._running else None,
            running_ms=self.running_ms,
            label=prepare.label,
            is_exclusive=prepare.is_exclusive,
        )

    def say(self, message: wire.Message) -> None:
        self.socket.send_multipart(frames.pack(message))

    def ping(self) -> None:
        uses = tuple(
            wire.SlotUse(slot=slot, busy_percent=busy, used_bytes=used, idle_ms=idle_ms)
            for slot, (busy, used, idle_ms) in self.uses.items()
        )
        self.say(wire.Ping(slots=uses))

    def hear(self, message: wire.ToAgent) -> None:
        match message:
            case wire.Registered():
                self.is_registered = True
            case wire.Unknown():
                self._register()
            case wire.Prepare():
                self.leases[message.lease] = message
                self.say(wire.Prepared(lease=message.lease))
                if message.label != "starting":
                    self._running.add(message.lease)
                    self.say(
                        wire.CellBegan(
                            lease=message.lease, cell=CellId(f"c-{message.lease}"), running_ms=self.running_ms
                        )
                    )
            case wire.CancelCell():
                self.end_cell(message.lease, CellOutcome.INTERRUPTED)
            case wire.ListCells():
                cells = tuple(
                    wire.CellNote(
                        cell=CellId(f"c-{lease.lease}"),
                        agent=AgentId(f"agent-{self.name}"),
                        node=self.name,
                        state="running",
                        line="model.fit(train, epochs=90)",
                        label=lease.label,
                        since_ms=5 * 60_000,
                        is_attended=lease.label != "background",
                    )
                    for lease in self.leases.values()
                    if lease.user == message.user
                )
                self.say(wire.Listed(query=message.query, cells=cells))
            case wire.Evict() | wire.Reclaim():
                self.end_lease(message.lease)

    def end_cell(self, lease: LeaseId, outcome: CellOutcome = CellOutcome.RETURNED) -> None:
        """The cell of the lease ends, and its session is hot."""
        prepare = self.leases[lease]
        self._running.discard(lease)
        usage = wire.CellUsage(outcome=outcome, ran_ms=60_000, held_ms=61_000, bytes_returned=2 * 10**6)
        self.say(
            wire.CellDone(
                lease=lease,
                session=prepare.session,
                cell=CellId(f"c-{lease}"),
                user=prepare.user,
                project=prepare.project,
                qos=prepare.qos,
                slots=prepare.slots,
                usage=usage,
                label=prepare.label,
            )
        )

    def end_lease(self, lease: LeaseId) -> None:
        self._running.discard(lease)
        if self.leases.pop(lease, None) is not None:
            self.say(wire.LeaseOver(lease=lease, code=LeaseEnd.EVICTED, sentence=""))


class PlayedNotebook:
    """A kernel of a user, which asks for slots."""

    def __init__(self, pool: "PlayedPool", user: str, token: str) -> None:
        self.user = user
        self.socket = pool.connect(pool.files.kernel_address)
        self.heard: list[wire.ToKernel] = []
        self._hello = wire.Hello(
            protocol=wire.PROTOCOL, version=__version__, token=token, kernel=KernelId(f"k-{secrets.token_hex(4)}")
        )
        self.say(self._hello)

    def say(self, message: wire.Message) -> None:
        self.socket.send_multipart(frames.pack(message))

    def ask(self, label: str = "", gpus: int = 1, qos: str = "interactive") -> None:
        self.say(wire.Submit(request=RequestId(secrets.token_hex(4)), label=label, gpus=gpus, qos=qos))

    def hear(self, message: wire.ToKernel) -> None:
        self.heard.append(message)


class PlayedPool:
    """The broker, its nodes and notebooks; a thread hears and pings for all of them."""

    def __init__(self, hub: Hub, token: str) -> None:
        self.folder = hub.run / "pool"
        self._hub, self._token = hub, token
        self._context = zmq.Context()
        self._tokens: dict[str, str] = {}
        self.nodes: dict[str, PlayedNode] = {}
        self.notebooks: list[PlayedNotebook] = []
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.door = f"tcp://127.0.0.1:{self._door.getsockname()[1]}"

    def start(self, records: Sequence[Record] = ()) -> None:
        """Write what happened before into the ledger, and start the broker."""
        keys.make_folder(self.folder)
        (self.folder / "quotas.toml").write_text(QUOTAS)
        with Ledger.open(f"sqlite:///{self.folder / 'ledger.sqlite'}") as ledger:
            ledger.record(records, now_ms())
        api = (self._hub.folder / "hub_api").read_text()
        with (self._hub.folder / "broker.log").open("wb") as log:
            self._broker = subprocess.Popen(
                [sys.executable, "-m", "gpu_worker.cli", "broker", "--folder", str(self.folder),
                 f"--Pool.quota_file={self.folder / 'quotas.toml'}"],
                env={**os.environ, "JUPYTERHUB_API_URL": api, "JUPYTERHUB_API_TOKEN": self._token},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        until(lambda: (self.folder / "public.json").exists(), "the broker to be up")
        self.files = keys.read_private(self.folder / "pool.json", keys.PoolFile)
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._broker.terminate()
        self._broker.wait(timeout=60)
        self._context.destroy(linger=0)
        self._door.close()

    @contextmanager
    def silent_broker(self) -> Iterator[None]:
        """The broker says nothing for as long as the block lasts."""
        self._broker.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._broker.send_signal(signal.SIGCONT)

    def connect(self, address: str, own: keys.Keys | None = None) -> "zmq.Socket[bytes]":
        return channel.connect(
            self._context.socket(zmq.DEALER), address, self.files.keys.public, channel.CONTROL_LIMIT, own
        )

    def add_node(self, name: str, gpus: int, running_ms: int = 0) -> PlayedNode:
        with self._lock:
            node = self.nodes[name] = PlayedNode(self, name, gpus)
            node.running_ms = running_ms
        until(lambda: node.is_registered, f"{name} to be registered")
        until(lambda: (self.folder / "connection.json").exists(), "the pool to be announced")
        return node

    def ask(self, user: str, label: str = "", gpus: int = 1, qos: str = "interactive") -> PlayedNotebook:
        """A notebook of the user asks; it returns once that is granted or waits."""
        if user not in self._tokens:
            self._tokens[user] = self._hub.token_of(user)
        with self._lock:
            notebook = PlayedNotebook(self, user, self._tokens[user])
            self.notebooks.append(notebook)
        until(lambda: any(isinstance(one, wire.Welcome) for one in notebook.heard), f"{user} to be known")
        with self._lock:
            notebook.ask(label, gpus, qos)
        until(
            lambda: any(isinstance(one, wire.Granted | wire.Queued | wire.Refusal) for one in notebook.heard),
            f"{user} to hear of the request",
        )
        return notebook

    def _play(self) -> None:
        to_agent: frames.Unpacker[wire.ToAgent] = frames.Unpacker(wire.ToAgent)
        to_kernel: frames.Unpacker[wire.ToKernel] = frames.Unpacker(wire.ToKernel)
        pinged_s = 0.0
        while not self._is_over.wait(0.02):
            with self._lock:
                for node in self.nodes.values():
                    while node.socket.poll(0):
                        node.hear(to_agent.unpack(node.socket.recv_multipart())[0])
                for notebook in self.notebooks:
                    while notebook.socket.poll(0):
                        notebook.hear(to_kernel.unpack(notebook.socket.recv_multipart())[0])
                if time.monotonic() - pinged_s > 1:
                    pinged_s = time.monotonic()
                    for node in self.nodes.values():
                        node.ping()
                    for notebook in self.notebooks:
                        notebook.say(wire.Ping())


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def history() -> list[Record]:
    """Three weeks of three people's cells, and what their projects lent."""
    found: list[Record] = []
    labels = {"ada": ("resnet-50", "resnet-101", ""), "bob": ("ablation", ""), "vic": ("segmentation",), "eve": ("",)}
    projects = {"ada": "ml", "bob": "ml", "vic": "vision", "eve": "guests"}
    now = now_ms()
    for day in range(21):
        for number, (user, named) in enumerate(labels.items()):
            hours = (day * 7 + number * 5) % 6 + 1
            ended_ms = now - day * 24 * HOUR_MS - (number + 1) * HOUR_MS
            label = named[day % len(named)]
            slots = 1 + (day + number) % 2
            found.append(
                CellRecord(
                    cell=CellId(f"{user}-{day}"),
                    lease=LeaseId(f"old-{user}-{day}"),
                    session=SessionId(f"s-{user}"),
                    user=UserName(user),
                    project=ProjectId(projects[user]),
                    qos="interactive",
                    node=f"gpu0{1 + number % 2}",
                    slots=tuple(SlotId(f"g{at}") for at in range(slots)),
                    kind="gpu",
                    gpus=slots,
                    started_at_ms=ended_ms - hours * HOUR_MS,
                    ended_at_ms=ended_ms,
                    held_ms=hours * HOUR_MS,
                    ran_ms=hours * HOUR_MS - 4_000,
                    spans=None,
                    outcome=CellOutcome.RAISED if day % 9 == 4 else CellOutcome.RETURNED,
                    peak_memory_bytes=(6 + 9 * number) * 10**9,
                    mean_utilization=0.02 if day % 5 == 3 else 0.55 + 0.1 * number,
                    bytes_sent=12 * 10**6,
                    bytes_returned=(day + 1) * 3 * 10**6,
                    label=label,
                    waited_ms=None if day > 17 else (number + 1) * 180_000,
                )
            )
        for project, amount in (("guests", 3 * HOUR_MS), ("ml", 2 * HOUR_MS), ("vision", HOUR_MS // 2)):
            at_ms = now - day * 24 * HOUR_MS - 2 * HOUR_MS
            found.append(
                CreditRecord(
                    credit=f"{project}-{day}", project=ProjectId(project), gpu_ms=amount, at_ms=at_ms, cause="lent"
                )
            )
    return found


@contextmanager
def played_pool(folder: Path) -> Iterator[tuple[Hub, PlayedPool]]:
    """A hub and its broker, with history; the caller adds nodes and has people ask."""
    token = secrets.token_hex(32)
    hub = Hub(folder, HUB.format(config=str(CONFIG), token=token, folder=str(folder)))
    hub.start()
    try:
        for user in ("ada", "bob", "liz", "vic", "eve", "carol"):
            hub.make_user(user)
        pool = PlayedPool(hub, token)
        pool.start(history())
        try:
            yield hub, pool
        finally:
            pool.stop()
    finally:
        hub.stop()
