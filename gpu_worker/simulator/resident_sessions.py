"""Sessions whose memory stays on a GPU while another one runs there: where each is, and whom the next one displaces."""

from enum import Enum

from bulletin.ids import AgentId, SessionId


class Residence(Enum):
    """What a session finds when it begins to run."""

    THERE = "there"  #: its memory is on a GPU where nobody runs
    ROOM = "room"  #: it is loaded beside others
    DISPLACES = "displaces"  #: it is loaded once the memory of another session has been freed


class _Gpu:
    """One GPU: who runs there, and whose memory is there, least recently used first."""

    def __init__(self, agent: AgentId) -> None:
        self.agent = agent
        self.running: SessionId | None = None
        self.sessions: dict[SessionId, int] = {}  #: with the number of its last use

    def preference(self, most: int) -> tuple[bool, int, int]:
        """Compare GPUs for a session that comes: room first, then few sessions, then one that was used long ago."""
        return len(self.sessions) >= most, len(self.sessions), next(iter(self.sessions.values()), 0)


class ResidentSessions:
    """The GPUs of all nodes, each with the memory of `most` sessions at most. One session runs on a GPU at a time.

    Leases say how many sessions of a node may run at once, and never more than it has GPUs; on which GPU is decided
    here. So a cell that begins always finds one on which nobody runs. Each session uses one GPU.
    """

    def __init__(self, agents: dict[AgentId, int], most: int) -> None:
        self._gpus = {agent: [_Gpu(agent) for _ in range(size)] for agent, size in agents.items()}
        self._at: dict[SessionId, _Gpu] = {}
        self._most = most
        self._uses = 0

    def begin(self, agent: AgentId, session: SessionId) -> Residence:
        """Let a session run on a GPU of the node: where its memory is, if nobody runs there."""
        gpu = self._at.get(session)
        found = Residence.THERE
        if gpu is None or gpu.agent != agent or gpu.running is not None:
            self.forget(session)
            idle = [one for one in self._gpus[agent] if one.running is None]
            gpu = min(idle, key=lambda one: one.preference(self._most))
            found = Residence.ROOM
            if len(gpu.sessions) >= self._most:
                self.forget(next(iter(gpu.sessions)))
                found = Residence.DISPLACES
        self._uses += 1
        gpu.sessions.pop(session, None)
        gpu.sessions[session] = self._uses
        gpu.running, self._at[session] = session, gpu
        return found

    def end(self, session: SessionId) -> None:
        """Note that a session runs no more; its memory stays."""
        gpu = self._at.get(session)
        if gpu is not None and gpu.running == session:
            gpu.running = None

    def forget(self, session: SessionId) -> None:
        """Free a session's memory."""
        self.end(session)
        gpu = self._at.pop(session, None)
        if gpu is not None:
            del gpu.sessions[session]

    def lose(self, agent: AgentId) -> None:
        """Note that a node is lost, with all that was on its GPUs."""
        for gpu in self._gpus[agent]:
            for session in list(gpu.sessions):
                self.forget(session)
