"""The agent as a session knows it: the lease that is held there, and the connection that shows its ticket."""

from collections.abc import Callable

import msgspec

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, LeaseId
from bulletin.wire import messages as say
from bulletin.wire.frames import Blob
from bulletin_magic.connection.cell_run import CellRun, to_output_message
from bulletin_magic.connection.deliveries import CellFinished, OutputMessage
from bulletin_magic.connection.resource_spec import LeaseInfo, ResourceSpec
from bulletin_magic.connection.session_events import (
    AgentConnected,
    AnswerFolder,
    ConnectAgent,
    DropAgent,
    SendToAgent,
    ServeFolder,
    SessionAction,
    ShowLateOutput,
)

IDLE_PING_MS = 10_000
#: An agent that was silent for so long is not pinged any more while no cell is under way.
IDLE_SILENT_MS = 60_000
SILENT_MS = 8_000
#: Pings are a second apart. Where so much went by, this process stood still itself, and heard nobody.
STOOD_STILL_MS = 4_000
#: What may have been lost on a broken connection is said again after so long.
REPEAT_MS = 5_000
#: An Unknown that comes so soon after an Attach answers what was sent before it.
ECHO_MS = 1_000
#: So long after a cell the agent is told that all of it has arrived. A cell that comes before that says it, too.
DONE_MS = 20


class AgentSide:
    """The conversation with an agent, about one lease at most. Without one, what it is asked to send is not sent."""

    def __init__(self, act: Callable[[SessionAction], None]) -> None:
        """Take what adds an action to those of this step."""
        self._act = act
        self._lease: say.Granted | None = None
        self._resources = ResourceSpec()
        #: The shared memory between this kernel and the executor, where they are on one host.
        self.rings = AgentConnected()
        self._is_connected = False
        #: The agent has accepted the ticket on the connection of now.
        self.is_attached = False
        self._heard_ms = 0
        self._attach_ms = 0
        self._ping_ms = 0
        self._idle_ping_ms: int | None = None
        #: What the agent is still to be told of the last cell, and when.
        self._done: say.Seen | None = None
        self._done_due_ms: int | None = None
        #: The cell that ended last: what is told between two cells stands below it.
        self._last_cell: CellId | None = None
        #: The last output that arrived of those of cells that have ended.
        self._last_late_seq = 0
        #: The folders of the notebook of which the executor has said whether it shares them.
        self._folders: set[str] = set()
        #: What the executor has said of its environment.
        self.environment = say.EnvironmentFound()

    @property
    def has_lease(self) -> bool:
        """Whether there is an agent to talk with."""
        return self._lease is not None

    @property
    def deadline_ms(self) -> int | None:
        """When `tick` has something to do. For a session without a cell."""
        return self._idle_ping_ms

    @property
    def done_due_ms(self) -> int | None:
        """When `tell_done` is to be called, whether a cell is under way or not."""
        return self._done_due_ms

    def holds(self, lease: LeaseId) -> bool:
        """Tell whether this is the lease that is held."""
        return self._lease is not None and self._lease.lease == lease

    def lease_info(self, slot_word: str) -> LeaseInfo | None:
        """Return the lease for people; `slot_word` is what the pool calls a slot."""
        lease = self._lease
        if lease is None:
            return None
        return LeaseInfo(
            lease_id=lease.lease,
            node=lease.node,
            slots=lease.slots,
            slot_word=slot_word,
            is_in_quota=lease.in_quota,
            price_percent=lease.price_percent,
            is_exclusive=self._resources.is_exclusive,
            memory_bytes=lease.memory_bytes,
            sizes=lease.sizes,
        )

    def fits(self, resources: ResourceSpec) -> bool:
        """Tell whether the lease is one that a request for these resources would get."""
        # A walltime too: the lease's holds for each of its cells, and would stop one too early or too late.
        return self._lease is not None and resources.is_like(self._resources)

    # --- the life of the lease

    def note_change(self, news: say.LeaseCost | say.NodeMoved, run: CellRun | None, now_ms: int) -> None:
        """Remember what the lease that is held counts for from now on; or go where its agent is reached now.

        Who listens there has the agent's key: the ticket is for nobody else.
        """
        assert self._lease is not None
        if isinstance(news, say.LeaseCost):
            self._lease = msgspec.structs.replace(self._lease, in_quota=news.in_quota, price_percent=news.price_percent)
        elif news.agent.public_key == self._lease.agent.public_key and news.agent != self._lease.agent:
            self._lease, self._heard_ms = msgspec.structs.replace(self._lease, agent=news.agent), now_ms
            self._act(ConnectAgent(news.agent, self._lease.ticket, goes_on=self._is_connected))
            self.attach(run, now_ms)

    def take(self, lease: say.Granted, resources: ResourceSpec, now_ms: int) -> None:
        """Hold this lease from now on, and connect to its agent."""
        self._lease, self._resources = lease, resources
        self._last_late_seq = 0
        self._folders.clear()
        self.environment = say.EnvironmentFound()
        self._is_connected = self.is_attached = False
        self._heard_ms = self._attach_ms = now_ms
        self._act(ConnectAgent(lease.agent, lease.ticket))

    def on_connected(self, connected: AgentConnected, run: CellRun | None, now_ms: int) -> None:
        """Show the ticket: there is a socket."""
        if self._lease is not None and not self._is_connected:
            self.rings, self._is_connected = connected, True
            self.attach(run, now_ms)

    def attach(self, run: CellRun | None, now_ms: int) -> None:
        """Show the ticket. After a broken link also say which cell is ours, and what of it arrived."""
        if self._lease is None or not self._is_connected:
            return
        self.is_attached, self._attach_ms = False, now_ms
        sent_run = run if run is not None and (run.is_sent or run.submitted.joins) else None
        attach = say.Attach(
            protocol=say.PROTOCOL,
            lease=self._lease.lease,
            ticket=self._lease.ticket,
            cell=sent_run.cell if sent_run else None,
            seen=sent_run.last_seq if sent_run else 0,
            has_rings=self.rings.ring_in is not None,
            is_joining=sent_run is not None and sent_run.submitted.joins is not None,
        )
        self.send(attach)
        if attach.is_joining and sent_run is not None and sent_run.submitted.folder is not None:
            self._act(ServeFolder(sent_run.submitted.folder))

    def on_attached(self, lease: LeaseId, now_ms: int) -> bool:
        """Take in that the ticket was accepted. False: that is no news."""
        if not self.holds(lease) or self.is_attached:
            return False
        self.is_attached = True
        self.schedule_idle_ping(now_ms)
        return True

    def on_late_output(self, output: say.Output, blobs: tuple[Blob, ...]) -> None:
        """Show what a cell prints that has ended, once, and acknowledge it."""
        if self._lease is not None and output.seq > self._last_late_seq:
            self._last_late_seq = output.seq
            self._act(ShowLateOutput(output.cell, to_output_message(output, blobs)))
        self.send(say.Seen(cell=output.cell, seq=self._last_late_seq, late=True))

    def on_late_notice(self, cell: CellId, sentence: str) -> None:
        """Show what the node says of a lease that is kept, below the cell that has ended last."""
        content = msgspec.json.encode({"data": {"text/plain": sentence}, "metadata": {}, "transient": {}})
        self._act(ShowLateOutput(cell, OutputMessage("display_data", content)))

    def probe_folder(self, run: CellRun) -> say.FolderProbe | None:
        """Return what the executor is to find in the cell's folder; None where it has said of it, or one around it."""
        folder = run.submitted.folder
        if folder is None or any(f"{folder}/".startswith(f"{known}/") for known in self._folders):
            return None
        return say.FolderProbe(path=folder, token=f".bulletin-{run.cell[:16]}")

    def on_folder_message(self, message: say.FromFolder, blobs: tuple[Blob, ...]) -> None:
        """Answer what is asked of a folder or library of the notebook; remember what was found."""
        if isinstance(message, say.EnvironmentFound):
            said = (*self.environment.sentences, *message.sentences)
            self.environment = msgspec.structs.replace(message, sentences=tuple(dict.fromkeys(said)))
            return
        if isinstance(message, say.FolderFound):
            self._folders.add(message.root)
        self._act(AnswerFolder(message, blobs))

    def with_environment(self, finished: CellFinished) -> CellFinished:
        """Return what a cell came to with how the environment differs in which it ran."""
        return msgspec.structs.replace(finished, environment=self.environment)

    def on_forgotten(self, run: CellRun | None, now_ms: int) -> None:
        """Show the ticket again: the connection broke and came back, and the agent does not know it."""
        if self.is_attached or now_ms - self._attach_ms >= ECHO_MS:
            self.attach(run, now_ms)

    def tell_done_soon(self, seen: say.Seen, now_ms: int) -> None:
        """Tell the agent, when `done_due_ms` is there or with the next cell, that all of a cell has arrived."""
        self._done, self._done_due_ms, self._last_cell = seen, now_ms + DONE_MS, seen.cell

    def tell_done(self, by_ms: int | None = None) -> None:
        """Tell it now, if it was not told; with a time only where it is due by then."""
        if by_ms is None or (self._done_due_ms is not None and self._done_due_ms <= by_ms):
            seen, self._done, self._done_due_ms = self._done, None, None
            if seen is not None:
                self.send(seen)

    def release(self, *, keeps_cell: bool = False) -> None:
        """Give the lease back, if there is one, or leave it to the cell that runs there."""
        self.tell_done()  # before it leaves
        self.send(say.Leave(keeps_cell=keeps_cell))
        self.drop()

    def drop(self) -> None:
        """Forget the lease and close the socket to its agent, without a word of that to it."""
        if self._lease is not None:
            self.tell_done()
            self._lease, self._is_connected, self.is_attached = None, False, False
            self.rings, self._idle_ping_ms = AgentConnected(), None
            self._act(DropAgent())

    def lose(self, sentence: str, outcome: CellOutcome | None, *, is_idle: bool) -> str:
        """Drop the lease, which the pool took, and say so below the last cell if no cell runs and its place was kept.

        Return what is said of it to who has a cell there.
        """
        if self._resources.keep_ms:
            sentence = f"{sentence} This notebook keeps no place any more; the next cell asks for one."
            # The node has told of that itself, and why.
            if is_idle and self._last_cell is not None and outcome is not CellOutcome.KEEP_OVER:
                self.on_late_notice(self._last_cell, sentence)
        self.drop()
        return sentence

    def send(self, message: say.KernelToAgent, blobs: tuple[Blob, ...] = ()) -> None:
        """Send a message, where there is a connection."""
        if isinstance(message, say.Run):  # the agent takes from it that the kernel has all of the cell before
            self._done = self._done_due_ms = None
        if self._is_connected:
            self._act(SendToAgent(message, blobs))

    # --- time

    def on_heard(self, now_ms: int) -> None:
        """Count its silence from now on: it said something, or it is early to expect that."""
        self._heard_ms = now_ms

    def schedule_idle_ping(self, now_ms: int) -> None:
        """Ping the agent now and then from now on: no cell keeps the connection busy."""
        self._idle_ping_ms = now_ms + IDLE_PING_MS

    def tick(self, now_ms: int) -> None:
        """Find out whether the connection holds before the next cell needs it. For a session without a cell."""
        if self._idle_ping_ms is None or now_ms < self._idle_ping_ms:
            return
        if now_ms - self._heard_ms >= IDLE_SILENT_MS:
            self._idle_ping_ms = None
        else:
            self.schedule_idle_ping(now_ms)
            self.send(say.Ping())

    def ping(self, run: CellRun, now_ms: int) -> None:
        """Ask whether it is there; show the ticket again if need be. Once a second while a cell is under way."""
        if now_ms - self._ping_ms > STOOD_STILL_MS:
            self._heard_ms = now_ms
        self._ping_ms = now_ms
        self.send(say.Ping())
        if not self.is_attached and now_ms - self._attach_ms >= REPEAT_MS:
            self.attach(run, now_ms)

    def is_silent(self, now_ms: int) -> bool:
        """Tell whether an agent that should have answered has not."""
        return self._is_connected and now_ms - self._heard_ms >= SILENT_MS
