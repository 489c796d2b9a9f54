"""The agent's process: it registers with the broker, obeys it, lets kernels in by ticket, reports what cells cost."""

import asyncio
import hashlib
import os
import pwd
import secrets
import socket
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import structlog
import zmq
import zmq.asyncio

from bulletin import __version__
from bulletin.codes import LeaseEnd, RefusalCode
from bulletin.errors import BadConfig, MalformedMessage, VersionMismatch
from bulletin.ids import AgentId, CellId, LeaseId
from bulletin.wire import channel, frames, keys, messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent import host
from gpu_worker.agent.cells import now_ms
from gpu_worker.agent.ends import End
from gpu_worker.agent.executor_process import MARK, ExecutorProcess, kill_marked
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.ring_server import RingServer
from gpu_worker.agent.sessions import Session
from gpu_worker.agent.zygote_process import UnixUser, ZygoteProcess
from gpu_worker.config import PoolSettings

_PING_S = 1.0
#: A broker that is silent for so long may have been started again at another address.
_BROKER_SILENCE_MS = 5_000
#: The environment of cells that name none: the pool's own interpreter, unless the admin says otherwise.
_DEFAULT = "default"
#: How many sessions at most are remembered whose executor is gone.
_KEPT = 256


class Agent:
    """One node's agent. `run()` serves until cancelled."""

    def __init__(self, settings: PoolSettings, files: keys.PoolFile) -> None:
        self.settings, self.files = settings, files
        self.node = socket.gethostname()
        place = hashlib.sha256(str(settings.folder).encode()).hexdigest()[:8]
        self.id = AgentId(f"{self.node}-{place}")
        self.log = structlog.get_logger("agent")
        self.inventory = Inventory(settings.slots, use_gpus=settings.use_gpus)
        self._cpus, self._memory_bytes = host.cpus(), host.memory_bytes()
        self.sessions: dict[LeaseId, Session] = {}
        #: Sessions whose executor is gone while their kernel may still come for what their last cell has left.
        self.kept: dict[LeaseId, tuple[Session, int]] = {}
        self.routes: dict[bytes, Session] = {}
        #: Runs of cells that are over, and when they ended; said again until the ledger has them.
        self.unrecorded: dict[tuple[LeaseId, CellId], tuple[wire.CellDone, int]] = {}
        self._is_known = False
        self._unsaid: list[wire.Message] = []  #: for a broker that does not know this agent yet, in order
        self.malformed = 0
        self._broker_heard_ms = now_ms()
        self._file = settings.folder / "agent.json"
        self._kept = self._open_file()
        self._keys = self._kept.keys
        self._context = zmq.asyncio.Context()
        self._broker: zmq.asyncio.Socket = channel.connect(
            self._context.socket(zmq.DEALER), files.agent_address, files.keys.public, channel.CONTROL_LIMIT
        )
        self._kernels = channel.serve(self._context.socket(zmq.ROUTER), self._keys, channel.DATA_LIMIT)
        self._monitor = channel.HandshakeCounter(self._context, self._kernels)
        self._zygotes: dict[str, ZygoteProcess] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._address = wire.AgentAddress(address="", public_key="")

    # --- the process

    async def run(self) -> None:
        """Serve until cancelled."""
        left = kill_marked(self.id)
        if left:
            self.log.warning("processes of an earlier life were ended", count=left)
        bound = self._bind()
        door = RingServer(self.settings.folder, self._rings)
        self._address = wire.AgentAddress(
            address=self.settings.advertise or bound,
            public_key=self._keys.public,
            door=str(door.path),
            boot=_boot_id(),
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self._zygote(_DEFAULT)
                tasks.create_task(self._serve_kernels())
                tasks.create_task(self._serve_broker())
                tasks.create_task(self._monitor.run())
                tasks.create_task(door.run())
                tasks.create_task(self._tick())
        finally:
            for session in self.sessions.values():
                if session.executor is not None:
                    session.executor.kill_group()
            door.close()
            self._monitor.close()
            self._context.destroy(linger=200)

    def _open_file(self) -> keys.AgentFile:
        try:
            return keys.read_private(self._file, keys.AgentFile)
        except FileNotFoundError:
            return keys.AgentFile(keys=keys.make_keys(), address="")

    def _bind(self) -> str:
        """Bind to the address of last time if it is free, so that waiting kernels hear at once what became of them."""
        try:
            if not self._kept.address.startswith(f"tcp://{self.settings.host}:"):
                raise zmq.ZMQError(zmq.EADDRNOTAVAIL)
            bound = channel.bind(self._kernels, self._kept.address)
        except zmq.ZMQError:
            bound = channel.bind(self._kernels, f"tcp://{self.settings.host}:0")
        keys.write_private(self._file, keys.AgentFile(keys=self._keys, address=bound))
        return bound

    async def _tick(self) -> None:
        while True:
            counters = {"malformed": self.malformed, "failed handshakes": self._monitor.failed}
            await self._tell_broker(wire.Ping(counters=counters))
            if now_ms() - self._broker_heard_ms > _BROKER_SILENCE_MS:
                self._look_for_broker()
            for session in list(self.sessions.values()):
                if now_ms() - session.heard_ms > self.settings.keep_ms:
                    session.finish_soon(End.KERNEL_GONE)
                session.look()
            for lease, (session, since_ms) in list(self.kept.items()):
                if session.last is None or now_ms() - since_ms > self.settings.keep_results_ms:
                    self._forget(lease)
            await asyncio.sleep(_PING_S)

    # --- the broker

    def _look_for_broker(self) -> None:
        self._broker_heard_ms = now_ms()
        try:
            files = keys.read_private(self.settings.pool_file, keys.PoolFile)
        except (OSError, BadConfig) as error:
            self.log.warning("the broker is silent, and its file cannot be read", problem=str(error))
            return
        if files.agent_address != self.files.agent_address:
            self._broker.disconnect(self.files.agent_address)
            self._broker.connect(files.agent_address)
            self.log.info("the broker has moved", address=files.agent_address)
        self.files = files

    async def _serve_broker(self) -> None:
        unpacker: frames.Unpacker[wire.ToAgent] = frames.Unpacker(wire.ToAgent)
        await self._register()
        while True:
            parts = await self._broker.recv_multipart()
            self._broker_heard_ms = now_ms()
            try:
                message, _ = unpacker.unpack(parts)
            except MalformedMessage as error:
                self.malformed += 1
                self.log.warning("the broker sent junk", problem=error.problem)
                continue
            await self._from_broker(message)

    async def _from_broker(self, message: wire.ToAgent) -> None:
        match message:
            case wire.Unknown():
                await self._register()
            case wire.Registered():
                await self._say_unsaid()
            case wire.Prepare():
                await self._prepare(message)
            case wire.Evict():
                await self._evict(message)
            case wire.Reclaim():
                await self._reclaim(message)
            case wire.Pause():
                await self._pause(message.lease)
            case wire.CancelCell():
                await self._cancel(message)
            case wire.ListCells():
                await self._list_cells(message)
            case wire.HandOver():
                await self._hand_over(message)
            case wire.Recorded():
                if message.lease is not None:
                    self.unrecorded.pop((message.lease, message.cell), None)
            case wire.Refusal():
                raise SystemExit(f"bulletin agent: the broker refused this agent. {message.sentence}")
            case wire.Pong() | wire.Malformed():
                pass

    async def _register(self) -> None:
        """Introduce this agent. What happens from now on the broker hears after it has heard what it has missed."""
        if self._is_known or not self._unsaid:
            self._is_known, self._unsaid = False, [done for done, _ in self.unrecorded.values()]
        await self._send_broker(
            wire.Register(
                protocol=wire.PROTOCOL,
                version=__version__,
                secret=self.files.agent_secret,
                agent=self.id,
                node=self.node,
                address=self._address,
                slots=self.inventory.offers,
                held=tuple(session.held() for session in self.sessions.values()),
                cpus=self._cpus,
                memory_bytes=self._memory_bytes,
            )
        )

    async def _tell_broker(self, message: wire.Message) -> None:
        if isinstance(message, wire.CellDone):
            self.unrecorded[message.lease, message.cell] = (message, now_ms())
        if self._is_known or isinstance(message, wire.Ping):
            await self._send_broker(message)
        else:
            self._unsaid.append(message)

    async def _say_unsaid(self) -> None:
        """The broker knows this agent: all that it could not be told, in order, then what comes meanwhile."""
        while self._unsaid:
            message = self._unsaid.pop(0)
            if isinstance(message, wire.CellDone):
                done, ended_ms = self.unrecorded.get((message.lease, message.cell), (None, 0))
                if done is not None:
                    await self._send_broker(_aged(done, ended_ms))
            else:
                await self._send_broker(message)
        self._is_known = True

    async def _send_broker(self, message: wire.Message) -> None:
        await self._broker.send_multipart(frames.pack(message))

    async def _prepare(self, message: wire.Prepare) -> None:
        session = self.sessions.get(message.lease)
        if session is not None:  # asked again: the answer was lost
            if session.is_ready:
                await self._tell_broker(wire.Prepared(lease=message.lease))
            return
        try:
            session = Session(message, self.settings, self.inventory, self._to_kernel, self._tell_broker)
        except OSError as error:
            await self._cannot_start(message.lease, error)
            return
        self.sessions[message.lease] = session
        assert self._tasks is not None
        self._tasks.create_task(self._keep(session))

    async def _cannot_start(self, lease: LeaseId, error: Exception) -> None:
        sentence = f"The pool could not start a process for your cell: {error}."
        await self._tell_broker(wire.LeaseOver(lease=lease, code=LeaseEnd.CANNOT_START, sentence=sentence))

    async def _keep(self, session: Session) -> None:
        """A session from its start to its end. Whatever happens to it happens to it alone."""
        lease = session.prepare.lease
        problem: Exception | None = None
        sentence = ""
        try:
            if session.end is None:
                await self._fork(session)
                sentence = await session.run()
            if session.executor is None and session.end is None:
                problem = ChildProcessError("its zygote ended")
        except Exception as error:  # noqa: BLE001  an error of one session must not end the others
            problem = error
            session.log.warning("a session failed", problem=repr(error))
            if session.executor is not None:
                session.executor.kill_group()
        session.discard()
        self.sessions.pop(lease, None)
        self.kept[lease] = session, now_ms()
        if session.last is None or session.end is End.LEFT:
            self._forget(lease)
        elif len(self.kept) > _KEPT:
            self._forget(next(iter(self.kept)))
        session.log.info("lease over", code=LeaseEnd.CANNOT_START if problem else session.lease_end)
        if problem is not None:
            await self._cannot_start(lease, problem)
        else:
            await self._tell_broker(wire.LeaseOver(lease=lease, code=session.lease_end, sentence=sentence))

    def _forget(self, lease: LeaseId) -> None:
        session, _ = self.kept.pop(lease)
        session.forget()
        for route in [route for route, known in self.routes.items() if known is session]:
            del self.routes[route]

    async def _evict(self, message: wire.Evict) -> None:
        session = self.sessions.get(message.lease)
        if session is None:
            await self._tell_broker(wire.LeaseOver(lease=message.lease, code=LeaseEnd.NO_SUCH_LEASE, sentence=""))
        elif session.cell is not None and not message.force:
            session.is_wanted = True
            await self._tell_broker(session.began(session.cell))
        elif not session.may_go and not message.force:
            session.is_wanted = True  # it goes as soon as the kernel, or this agent, has the results
        else:
            session.finish_soon(End.EVICTED)

    async def _reclaim(self, message: wire.Reclaim) -> None:
        session = self.sessions.get(message.lease)
        if session is None:
            await self._tell_broker(wire.LeaseOver(lease=message.lease, code=LeaseEnd.NO_SUCH_LEASE, sentence=""))
        else:
            await session.give_back(message.grace_ms, is_for_share=message.is_for_share)

    async def _pause(self, lease: LeaseId) -> None:
        """A session whose cell runs cannot be moved with its state yet; one that is hot simply goes."""
        session = self.sessions.get(lease)
        if session is None:
            await self._tell_broker(wire.LeaseOver(lease=lease, code=LeaseEnd.NO_SUCH_LEASE, sentence=""))
        elif session.cell is not None:
            await self._tell_broker(wire.PauseDeclined(lease=lease))
        elif not session.may_go:
            session.is_wanted = True
        else:
            session.finish_soon(End.EVICTED)

    async def _cancel(self, message: wire.CancelCell) -> None:
        session = self.sessions.get(message.lease)
        if session is None:
            await self._tell_broker(wire.LeaseOver(lease=message.lease, code=LeaseEnd.NO_SUCH_LEASE, sentence=""))
        else:
            await session.cancel(message.sentence, hard=message.hard)

    # --- cells whose kernel is gone

    def _all_sessions(self) -> list[Session]:
        return [*(session for session, _ in self.kept.values()), *self.sessions.values()]

    async def _list_cells(self, message: wire.ListCells) -> None:
        notes = [session.note() for session in self._all_sessions() if session.prepare.user == message.user]
        cells = tuple(
            msgspec.structs.replace(note, agent=self.id, node=self.node) for note in notes if note is not None
        )
        await self._send_broker(wire.Listed(query=message.query, cells=cells))

    async def _hand_over(self, message: wire.HandOver) -> None:
        sentence = "There is no such cell of yours any more."
        for session in self._all_sessions():
            note = session.note()
            if note is None or note.cell != message.cell:
                continue
            sentence = session.hand_over(message)
            if not sentence:
                self.routes = {route: known for route, known in self.routes.items() if known is not session}
                prepare = session.prepare
                session.log.info("cell handed over", cell=message.cell, to=message.session)
                await self._send_broker(
                    wire.HandedOver(
                        query=message.query, lease=prepare.lease, slots=prepare.slots, walltime_ms=prepare.walltime_ms
                    )
                )
                return
        await self._send_broker(wire.HandedOver(query=message.query, sentence=sentence))

    # --- executors

    def _zygote(self, environment: str) -> ZygoteProcess:
        zygote = self._zygotes.get(environment)
        if zygote is None:
            python = self.settings.environments.get(environment, sys.executable if environment == _DEFAULT else "")
            if not python:
                known = ", ".join([_DEFAULT, *self.settings.environments])
                raise LookupError(f"there is no environment {environment!r} here; --environment takes one of: {known}")
            zygote = self._zygotes[environment] = ZygoteProcess(
                python, self.id, self.settings.preload, self._from_zygote, partial(self._orphaned, environment)
            )
            assert self._tasks is not None
            self._tasks.create_task(zygote.run())
        return zygote

    async def _fork(self, session: Session) -> None:
        prepare = session.prepare
        zygote = self._zygote(prepare.environment or _DEFAULT)
        environ = {
            MARK: f"{self.id}/{prepare.lease}",
            "CUDA_VISIBLE_DEVICES": self.inventory.visible(prepare.slots),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }
        with session.theirs as theirs:
            await zygote.fork(prepare.lease, environ, self._who(prepare), [theirs.fileno(), *session.rings])

    def _who(self, prepare: wire.Prepare) -> UnixUser:
        if not self.settings.run_as_user:
            return UnixUser()
        try:
            entry = pwd.getpwnam(prepare.user)
        except KeyError:
            raise LookupError(f"there is no Unix user {prepare.user!r} on the node {self.node}") from None
        if entry.pw_uid == 0:
            raise LookupError(
                f"{prepare.user!r} is an administrator of the node {self.node}, and cells never run as one"
            )
        groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
        return UnixUser(uid=entry.pw_uid, gid=entry.pw_gid, groups=groups, folder=entry.pw_dir)

    def _from_zygote(self, message: wire.FromZygote) -> None:
        match message:
            case wire.Warm():
                self.log.info("zygote warm", imported=message.imported, failed=message.failed)
            case wire.Forked():
                session = self.sessions.get(message.lease)
                if session is not None:
                    session.executor = ExecutorProcess(message.pid)
                if session is None or session.end is not None:  # it was given up meanwhile
                    ExecutorProcess(message.pid).kill_group()
            case wire.Exited():
                for session in self.sessions.values():
                    if session.executor is not None and session.executor.pid == message.pid:
                        session.exited(message.status)

    def _orphaned(self, environment: str) -> None:
        """A zygote is gone, and its executors with it: nobody will tell their status."""
        for session in self.sessions.values():
            is_its = (session.prepare.environment or _DEFAULT) == environment
            if is_its and session.executor is not None and not session.gone.is_set():
                session.executor.kill_group()
                session.exited(-9)

    # --- kernels

    async def _serve_kernels(self) -> None:
        unpacker: frames.Unpacker[wire.KernelToAgent] = frames.Unpacker(wire.KernelToAgent)
        while True:
            received = await self._kernels.recv_multipart(copy=False)
            route = received[0].bytes
            try:
                message, blobs = unpacker.unpack([frame.buffer for frame in received[1:]])
            except MalformedMessage as error:
                self.malformed += 1
                await self._to_kernel(route, wire.Malformed(problem=error.problem), ())
                continue
            await self._from_kernel(route, message, blobs)

    async def _from_kernel(self, route: bytes, message: wire.KernelToAgent, blobs: Sequence[Blob]) -> None:
        if isinstance(message, wire.Attach):
            await self._attach(route, message)
            return
        session = self.routes.get(route)
        if session is not None:
            await session.from_kernel(message, blobs)
        elif isinstance(message, wire.Run | wire.Ping):  # a connection that broke and came back: it must attach again
            await self._to_kernel(route, wire.Unknown(), ())

    async def _attach(self, route: bytes, message: wire.Attach) -> None:
        if message.protocol != wire.PROTOCOL:
            sentence = str(VersionMismatch(message.protocol, wire.PROTOCOL, "the notebook's side"))
            await self._to_kernel(route, wire.Refusal(code=RefusalCode.VERSION_MISMATCH, sentence=sentence), ())
            return
        kept = self.kept.get(message.lease)
        session = kept[0] if kept is not None else self.sessions.get(message.lease)
        if session is None or not secrets.compare_digest(message.ticket.encode(), session.prepare.ticket.encode()):
            sentence = "The session is not on this node any more: it was ended, or the node's agent was restarted."
            await self._to_kernel(route, wire.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence=sentence), ())
            return
        if session.route is not None:
            self.routes.pop(session.route, None)
        self.routes[route] = session
        await session.attach(route, message)

    def _rings(self, ticket: str) -> tuple[int, ...] | None:
        for session in self.sessions.values():
            if secrets.compare_digest(ticket.encode(), session.prepare.ticket.encode()):
                return session.rings
        return None

    async def _to_kernel(self, route: bytes, message: wire.Message, blobs: Sequence[Blob]) -> None:
        try:
            await self._kernels.send_multipart([route, *frames.pack(message, blobs)], copy=False)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            session = self.routes.pop(route, None)  # the connection is gone; the kernel attaches again by another
            if session is not None and session.route == route:
                session.route = None


def _boot_id() -> str:
    """The same for every process of one running host, whatever container it is in."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _aged(done: wire.CellDone, ended_ms: int) -> wire.CellDone:
    """The report as it must be said now: how long ago the cell ended."""
    return msgspec.structs.replace(done, ended_ago_ms=now_ms() - ended_ms)
