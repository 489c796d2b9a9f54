"""The shell around a session: one thread that owns the sockets to broker and agent, and one timer."""

import contextlib
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence

import zmq
from msgspec import structs
from zmq.utils.monitor import parse_monitor_message

from bulletin import __version__
from bulletin.errors import MalformedMessage, NoPool
from bulletin.ids import KernelId, LeaseId
from bulletin.kernel_names import parse_kernel_name
from bulletin.wire import channel
from bulletin.wire.frames import Blob, Unpacker, pack
from bulletin.wire.keys import Connection
from bulletin.wire.messages import (
    PROTOCOL,
    AgentToKernel,
    EnvironmentFound,
    FetchLibrary,
    FindLibrary,
    FromKernel,
    Hello,
    KernelToAgent,
    Ping,
    Run,
    ToKernel,
)
from bulletin_magic.connection import shared_memory
from bulletin_magic.connection.deliveries import CellFinished, UserNote
from bulletin_magic.connection.delivery_queue import DeliveryQueue
from bulletin_magic.connection.folder_listing import FolderLimits
from bulletin_magic.connection.folder_server import Answer, FolderServer
from bulletin_magic.connection.library_server import LibraryServer
from bulletin_magic.connection.session_client import SessionClient
from bulletin_magic.connection.session_events import (
    AgentSaid,
    AllowancesAsked,
    AnswerFolder,
    BrokerSaid,
    CellListAsked,
    CellSubmitted,
    ConnectAgent,
    Deliver,
    DropAgent,
    MessageGarbled,
    PoolStatusAsked,
    QuestionAnswered,
    ReleaseAsked,
    SendToAgent,
    SendToBroker,
    ServeFolder,
    SessionAction,
    SessionEvent,
    ShowLateOutput,
    StopPressed,
    Tick,
)

#: What starts a conversation.
ClientRequest = CellSubmitted | PoolStatusAsked | CellListAsked | AllowancesAsked | ReleaseAsked

#: How long a closed socket may go on sending.
_LINGER_MS = 400
#: Messages taken from one socket before the others have their turn.
_MOST_AT_ONCE = 64
#: How often a link that does not hear the agent looks whether what it said has been shown.
_FULL_POLL_MS = 20


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class Link:
    """A kernel's connection to a pool. Made by the main thread, which asks and tells; all else is in the thread."""

    def __init__(
        self,
        connection: Connection,
        kernel: KernelId,
        pool_description: str,
        show_late_output: Callable[[ShowLateOutput], None],
        folder_limits: Callable[[], FolderLimits] = FolderLimits,
    ) -> None:
        """Connect. `show_late_output` shows what cells print that have ended; it is called in the link's thread."""
        self._folders = FolderServer(folder_limits, self._note)
        self._libraries = LibraryServer(lambda: folder_limits().library_bytes)
        self._show_late_output = show_late_output
        self._connection = connection
        is_front = parse_kernel_name(kernel)[1] == "front"  # else nobody reads it as it comes
        hello = Hello(
            protocol=PROTOCOL,
            version=__version__,
            token=connection.token,
            kernel=kernel,
            hears_news=is_front,
            hears_moves=True,
        )
        self._session = SessionClient(hello, pool_description)
        self._inbox: queue.SimpleQueue[tuple[SessionEvent, DeliveryQueue | None]] = queue.SimpleQueue()
        self._outbox = DeliveryQueue()
        #: How a cell ended, for the outbox.
        self._finished: CellFinished | None = None
        self._is_closing = False
        self._pid = os.getpid()
        #: A byte in this pair ends the wait of the thread: an event is in the inbox.
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._from_broker: Unpacker[ToKernel] = Unpacker(ToKernel)
        self._from_agent: Unpacker[AgentToKernel] = Unpacker(AgentToKernel)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._poller = zmq.Poller()
        self._broker = channel.connect(
            self._context.socket(zmq.DEALER), connection.address, connection.public_key, channel.CONTROL_LIMIT
        )
        self._monitor = self._broker.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        self._is_broker_there = False
        #: The agent is not listened to, because its outputs come faster than they are shown.
        self._is_agent_muted = False
        self._agent: zmq.Socket[bytes] | None = None
        self._agent_address = ""
        self._thread = threading.Thread(target=self._run, name="bulletin-link", daemon=True)
        self._thread.start()

    # --- any thread -------------------------------------------------------------------------------------------------

    @property
    def is_usable(self) -> bool:
        """Whether asking makes sense: the thread lives, and this is the process that made it."""
        return self._pid == os.getpid() and self._thread.is_alive()

    @property
    def is_settled(self) -> bool:
        """Whether a session is held and the broker was there a moment ago. A hint: both may be over by now."""
        return self._session.lease is not None and self._is_broker_there

    @property
    def lease_id(self) -> LeaseId | None:
        """The id of the lease that is held. A hint: it may be over by now."""
        lease = self._session.lease
        return lease.lease_id if lease is not None else None

    @property
    def folders(self) -> dict[str, bool | None]:
        """The folders that cells of the session ran in, each with whether its node shares it, if that was found."""
        return dict(self._folders.folders)

    @property
    def environment(self) -> EnvironmentFound:
        """How the executor's environment differs from the notebook's, as far as cells have used it."""
        return self._session.environment

    def ask(self, request: ClientRequest) -> DeliveryQueue:
        """Start a conversation. Its deliveries end with a kind that `deliveries` lists last, or an exception.

        Raises NoPool in a process that was forked from the notebook's.
        """
        if self._pid != os.getpid():
            raise NoPool("A process that was forked from a notebook has no pool.", "Use %%gpu in the notebook itself.")
        deliveries = DeliveryQueue()
        self._post(request, deliveries)
        return deliveries

    def tell(self, event: StopPressed | QuestionAnswered | ReleaseAsked) -> None:
        """Pass an event to the session within a conversation. Safe in a signal handler."""
        if self._pid == os.getpid():
            self._post(event, None)

    def close(self, timeout_s: float = 1.0, *, keeps_cell: bool = False) -> None:
        """Give the session back, or leave it to the cell that runs there, and end the thread."""
        if self._pid != os.getpid() or not self._thread.is_alive():
            return
        self._is_closing = True
        self._post(ReleaseAsked(keeps_cell=keeps_cell), DeliveryQueue())
        self._thread.join(timeout_s)

    def _post(self, event: SessionEvent, outbox: DeliveryQueue | None) -> None:
        self._inbox.put((event, outbox))
        with contextlib.suppress(OSError):  # it is full, or the thread has ended
            self._wake_sender.send(b"!")

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._poller.register(self._wake_receiver.fileno(), zmq.POLLIN)
            self._poller.register(self._broker, zmq.POLLIN)
            self._poller.register(self._monitor, zmq.POLLIN)
            while not (self._is_closing and self._inbox.empty()):
                self._wait_and_handle()
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it, or would wait for ever
            self._put_finished()
            self._outbox.put(error)
        finally:
            self._folders.forget()
            self._context.destroy(linger=_LINGER_MS)
            self._wake_receiver.close()
            self._wake_sender.close()

    def _wait_and_handle(self) -> None:
        """Wait for a message, an event of another thread, or the session's deadline; handle all that is there."""
        deadline_ms = self._session.deadline_ms
        wait_ms = None if deadline_ms is None else max(0, deadline_ms - _now_ms())
        self._mute_agent(is_muted=self._outbox.is_full)
        if self._is_agent_muted:
            wait_ms = _FULL_POLL_MS if wait_ms is None else min(wait_ms, _FULL_POLL_MS)
        self._put_finished()
        ready = dict(self._poller.poll(wait_ms))
        if self._wake_receiver.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                self._wake_receiver.recv(4096)
        with contextlib.suppress(queue.Empty):
            while True:
                event, outbox = self._inbox.get_nowait()
                self._outbox = outbox or self._outbox
                self._handle(event)
        if self._monitor in ready:
            news = parse_monitor_message(self._monitor.recv_multipart())
            self._is_broker_there = news["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED
            if self._is_broker_there and self._session.lease is not None:
                self._send_to_broker(Ping())  # a broker that was restarted asks whose the session is
        if self._broker in ready:
            self._receive_from_broker()
        if self._agent is not None and self._agent in ready:
            self._receive_from_agent(self._agent)
        if deadline_ms is not None and deadline_ms <= _now_ms():
            self._handle(Tick())

    def _put_finished(self) -> None:
        """Say how a cell ended, just before this thread waits: whom that wakes needs Python's lock at once."""
        if self._finished is not None:
            finished, self._finished = self._finished, None
            self._outbox.put(finished)

    def _mute_agent(self, *, is_muted: bool) -> None:
        """Listen to the agent or, while too many of its outputs wait to be shown, not."""
        if self._agent is not None and self._is_agent_muted is not is_muted:
            self._poller.modify(self._agent, 0 if is_muted else zmq.POLLIN)
            self._is_agent_muted = is_muted

    def _receive_from_broker(self) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                frames = self._broker.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                message, _ = self._from_broker.unpack(frames)
            except MalformedMessage as error:
                self._handle(MessageGarbled("broker", error.problem))
            else:
                self._handle(BrokerSaid(message))

    def _receive_from_agent(self, agent: zmq.Socket[bytes]) -> None:
        for _ in range(_MOST_AT_ONCE):
            if self._agent is not agent or self._outbox.is_full:
                return  # dropped by what it said last, or nobody shows as fast as it speaks
            try:
                frames = agent.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            try:
                message, blobs = self._from_agent.unpack([frame.buffer for frame in frames])
            except MalformedMessage as error:
                self._handle(MessageGarbled("agent", error.problem))
            else:
                self._handle(AgentSaid(message, tuple(blobs)))

    def _handle(self, event: SessionEvent) -> None:
        """Perform what the session does about an event. Ends: only ConnectAgent has a consequence, and only one."""
        for action in self._session.step(event, _now_ms()):
            consequence = self._perform(action)
            if consequence is not None:
                self._handle(consequence)

    def _perform(self, action: SessionAction) -> SessionEvent | None:
        match action:
            case SendToBroker(message=message):
                self._send_to_broker(message)
            case SendToAgent(message=to_agent, blobs=blobs):
                if isinstance(to_agent, Run) and to_agent.folder is not None:
                    probe = self._folders.announce(to_agent.folder, to_agent.cell)
                    to_agent = structs.replace(to_agent, folder=probe)
                self._send_to_agent(to_agent, blobs)
            case AnswerFolder(message=asked, blobs=blobs):
                if isinstance(asked, FindLibrary | FetchLibrary):
                    answer: Answer | None = self._libraries.answer(asked)
                else:
                    answer = self._folders.answer(asked, blobs)
                if answer is not None:
                    self._send_to_agent(*answer)
            case ServeFolder(folder=folder):
                self._folders.serve(folder)
            case ConnectAgent(agent=agent, ticket=ticket, goes_on=goes_on):
                self._drop_agent(goes_on=goes_on)
                self._agent_address = agent.address
                self._agent = channel.connect(
                    self._context.socket(zmq.DEALER), agent.address, agent.public_key, channel.DATA_LIMIT
                )
                self._poller.register(self._agent, zmq.POLLIN)
                self._is_agent_muted = False
                return None if goes_on else shared_memory.open_rings(agent, ticket)
            case DropAgent():
                self._drop_agent()
            case ShowLateOutput():
                self._show_late_output(action)
            case Deliver(delivery=CellFinished() as finished):
                self._finished = finished
            case Deliver(delivery=delivery):
                self._outbox.put(delivery)
        return None

    def _note(self, text: str) -> None:
        if self._session.phase is not None:  # else nobody waits, and nobody would read it
            self._outbox.put(UserNote(text))

    def _send_to_broker(self, message: FromKernel) -> None:
        channel.send(self._broker, self._connection.address, pack(message))

    def _send_to_agent(self, message: KernelToAgent, blobs: Sequence[Blob]) -> None:
        if self._agent is not None:
            channel.send(self._agent, self._agent_address, pack(message, blobs), copy=not blobs)

    def _drop_agent(self, *, goes_on: bool = False) -> None:
        if not goes_on:
            self._folders.forget()
            self._libraries.forget()
        if self._agent is not None:
            if not self._is_agent_muted:
                self._poller.unregister(self._agent)
            self._is_agent_muted = False
            self._agent.close(_LINGER_MS)
            self._agent = None
