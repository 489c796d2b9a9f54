"""Cells whose notebook is gone: which nodes have some of a user's, and another kernel of the same user let in.

The broker asks its agents each time and keeps nothing. Who asks is who the hub says; the agent of the cell compares.
"""

from collections.abc import Awaitable, Callable
from itertools import chain, islice, zip_longest

import msgspec

from bulletin.codes import RefusalCode
from bulletin.ids import AgentId, KernelId, RequestId, SessionId, UserName
from bulletin.wire import keys, messages as wire
from gpu_worker.broker.node_claims import limit_note
from gpu_worker.broker.own_node_claims import is_open_to
from gpu_worker.broker.scheduler_shell import SchedulerShell

#: An agent that does not answer for so long is named, and not waited for.
_PATIENCE_MS = 2_000
#: An answer is given again for so long: the kernel may not have heard it.
_REMEMBER_MS = 60_000
_LIST_LIMIT = 100

SendKernel = Callable[[bytes, wire.Message], Awaitable[None]]
TellAgent = Callable[[AgentId, wire.Message], Awaitable[None]]


class Asker(msgspec.Struct, frozen=True):
    """The kernel that asks, as the broker knows it."""

    route: bytes
    user: UserName
    session: SessionId
    kernel: KernelId


class _Search(msgspec.Struct):
    route: bytes
    due_ms: int
    waiting: dict[AgentId, str]  # and the names of their nodes
    cells: list[list[wire.CellNote]]  # of each node, the newest first


class _Handover(msgspec.Struct):
    asker: Asker
    request: RequestId
    agent: AgentId
    ticket: str
    since_ms: int
    answer: wire.Granted | wire.Refusal | None = None


class Joins:
    """Owns the questions that are open."""

    def __init__(self, send: SendKernel, tell: TellAgent, shell: SchedulerShell, now_ms: Callable[[], int]) -> None:
        self._send, self._tell, self._shell, self._now_ms = send, tell, shell, now_ms
        self._searches: dict[str, _Search] = {}
        self._handovers: dict[str, _Handover] = {}

    async def start_search(self, asker: Asker) -> None:
        """Ask every node for this user's cells. Who asks while it is asked gets one answer."""
        if any(search.route == asker.route for search in self._searches.values()):
            return
        state, all_nodes = self._shell.scheduler.state, self._shell.nodes.items()
        nodes = {agent: node.node for agent, node in all_nodes if is_open_to(state, agent, asker.user)}
        search = _Search(asker.route, self._now_ms() + _PATIENCE_MS, nodes, [])
        query = keys.make_id()
        self._searches[query] = search
        for agent in list(nodes):
            await self._tell(agent, wire.ListCells(query=query, user=asker.user))
        await self._answer_search(query, search)

    async def take_listed(self, agent: AgentId, message: wire.Listed) -> None:
        """Take in what one node has; answer the kernel when all have said."""
        search = self._searches.get(message.query)
        if search is not None and search.waiting.pop(agent, None) is not None:
            node = self._shell.nodes.get(agent)
            newest = sorted(message.cells, key=_age_ms)[:_LIST_LIMIT]
            search.cells.append([limit_note(note, agent, "" if node is None else node.node) for note in newest])
            await self._answer_search(message.query, search)

    async def _answer_search(self, query: str, search: _Search) -> None:
        if search.waiting and self._now_ms() < search.due_ms:
            return
        self._searches.pop(query, None)
        in_turns = chain.from_iterable(zip_longest(*search.cells))  # no node hides what others have
        cells = sorted(islice((note for note in in_turns if note is not None), _LIST_LIMIT), key=_age_ms, reverse=True)
        missing = tuple(sorted(search.waiting.values()))
        await self._send(search.route, wire.Found(cells=tuple(cells), missing=missing))

    async def join(self, asker: Asker, message: wire.Join) -> None:
        """Let this kernel have the cell, if its node agrees. Said again, it is answered again."""
        for query, known in self._handovers.items():
            if known.asker.session == asker.session and known.request == message.request:
                known.asker = asker
                if known.answer is not None:
                    await self._send(asker.route, known.answer)
                else:
                    await self._hand_over(query, known, message)
                return
        state = self._shell.scheduler.state
        if message.agent not in self._shell.nodes or not is_open_to(state, message.agent, asker.user):
            sentence = "The node that had the cell is not there (any more)."
            await self._send(
                asker.route, wire.Refusal(code=RefusalCode.NO_SUCH_CELL, sentence=sentence, request=message.request)
            )
            return
        handover = _Handover(asker, message.request, message.agent, keys.make_secret(), self._now_ms())
        query = keys.make_id()
        self._handovers[query] = handover
        await self._hand_over(query, handover, message)

    async def _hand_over(self, query: str, handover: _Handover, message: wire.Join) -> None:
        asker = handover.asker
        await self._tell(
            handover.agent,
            wire.HandOver(
                query=query,
                cell=message.cell,
                user=asker.user,
                session=asker.session,
                kernel=asker.kernel,
                ticket=handover.ticket,
            ),
        )

    async def take_handed_over(self, agent: AgentId, message: wire.HandedOver) -> None:
        """Tell the kernel that the node has let it in, or not."""
        handover, node = self._handovers.get(message.query), self._shell.nodes.get(agent)
        if handover is None or handover.agent != agent or node is None or handover.answer is not None:
            return
        asker = handover.asker
        active = None if message.lease is None else self._shell.active_leases.get(message.lease)
        is_of_another = active is not None and active.agent != agent
        if message.lease is None or is_of_another:
            sentence = "The node that was asked for the cell names one of another node." if is_of_another else ""
            handover.answer = wire.Refusal(
                code=RefusalCode.NO_SUCH_CELL, sentence=sentence or message.sentence, request=handover.request
            )
        else:
            if active is not None:
                active.session, active.kernel = asker.session, asker.kernel
            names = {slot.slot: slot.name for slot in node.slots}
            handover.answer = wire.Granted(
                request=handover.request,
                lease=message.lease,
                session=asker.session,
                agent=node.address,
                ticket=handover.ticket,
                node=node.node,
                slots=tuple(names.get(slot, slot) for slot in message.slots),
                walltime_ms=message.walltime_ms,
            )
        await self._send(asker.route, handover.answer)

    async def tidy(self) -> None:
        """Answer without the nodes that say nothing; forget what was answered long ago."""
        for query, search in list(self._searches.items()):
            await self._answer_search(query, search)
        late_ms = self._now_ms() - _REMEMBER_MS
        self._handovers = {query: one for query, one in self._handovers.items() if one.since_ms > late_ms}


def _age_ms(note: wire.CellNote) -> int:
    return note.since_ms
