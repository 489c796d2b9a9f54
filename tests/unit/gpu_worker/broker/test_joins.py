"""Finding cells that were left, and handing one over: what the broker asks its agents, and whom it answers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import structs

from bulletin.ids import AgentId, CellId, KernelId, LeaseId, RequestId, SessionId, SlotId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.active_lease import ActiveLease
from gpu_worker.broker.joins import Asker, Joins
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.metering import Metering
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.writer import Writer
from gpu_worker.faults import Faults
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import SchedulerSettings

ADA = Asker(b"ada", UserName("ada"), SessionId("s2"), KernelId("k2"))
JOIN = wire.Join(request=RequestId("r1"), cell=CellId("c1"), agent=AgentId("a1"))


def node(name: str) -> wire.Register:
    return wire.Register(
        protocol=wire.PROTOCOL,
        version="1",
        secret="",
        agent=AgentId(name),
        node=f"node-{name}",
        address=wire.AgentAddress(address=f"tcp://{name}:1", public_key="key"),
        slots=(wire.SlotOffer(slot=SlotId("g0"), kind="gpu", name="GPU 0"),),
    )


def note(name: str, since_ms: int, agent: str = "a1") -> wire.CellNote:
    return wire.CellNote(
        cell=CellId(name), agent=AgentId(agent), node=f"node-{agent}", state="running", line="x", since_ms=since_ms
    )


class Pool:
    """Joins between kernels and agents that only listen."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.to_kernels: list[tuple[bytes, wire.Message]] = []
        self.to_agents: list[tuple[AgentId, Any]] = []

    async def _kernel(self, route: bytes, message: wire.Message) -> None:
        self.to_kernels.append((route, message))

    async def _agent(self, agent: AgentId, message: wire.Message) -> None:
        self.to_agents.append((agent, message))

    async def _session(self, _session: SessionId, _message: wire.Message) -> None:
        raise AssertionError("nothing is said to a session here")

    def play(self, story: Callable[[Joins], Coroutine[Any, Any, None]]) -> None:
        async def begin() -> None:
            scheduler, clock_ms = Scheduler(SchedulerSettings()), lambda: self.now_ms
            metering = Metering(scheduler.state, [], [], 0)
            with Ledger.open("sqlite:///:memory:") as ledger:
                await self._tell(
                    story,
                    SchedulerShell(
                        scheduler,
                        metering,
                        Writer(ledger, clock_ms),
                        clock_ms,
                        self._session,
                        self._agent,
                        Faults("broker"),
                    ),
                )

        asyncio.run(begin())

    async def _tell(self, story: Callable[[Joins], Coroutine[Any, Any, None]], shell: SchedulerShell) -> None:
        for name, owner in (("a1", ""), ("a2", ""), ("box", "eve")):
            await shell.add_node(node(name), UserName(owner), None)
        shell.active_leases[LeaseId("l1")] = ActiveLease(SessionId("s1"), AgentId("a1"), KernelId("k1"), "")
        self.shell = shell
        await story(Joins(self._kernel, self._agent, shell, lambda: self.now_ms))


def test_every_node_is_asked_for_this_user_and_the_answer_is_one_oldest_first() -> None:
    pool = Pool()

    async def story(joins: Joins) -> None:
        await joins.start_search(ADA)
        assert [(agent, ask.user) for agent, ask in pool.to_agents] == [("a1", "ada"), ("a2", "ada")]
        query = pool.to_agents[0][1].query
        await joins.take_listed(AgentId("a2"), wire.Listed(query=query, cells=(note("young", 1, "a2"),)))
        assert pool.to_kernels == []
        await joins.take_listed(AgentId("a2"), wire.Listed(query=query, cells=(note("again", 1),)))
        await joins.take_listed(AgentId("a1"), wire.Listed(query=query, cells=(note("old", 9),)))
        assert pool.to_kernels == [(b"ada", wire.Found(cells=(note("old", 9), note("young", 1, "a2"))))]

    pool.play(story)


def test_a_node_that_does_not_answer_is_named_and_not_waited_for() -> None:
    pool = Pool()

    async def story(joins: Joins) -> None:
        await joins.start_search(ADA)
        await joins.take_listed(AgentId("a1"), wire.Listed(query=pool.to_agents[0][1].query, cells=()))
        pool.now_ms = 1_999
        await joins.tidy()
        assert pool.to_kernels == []
        pool.now_ms = 2_000
        await joins.tidy()
        await joins.tidy()
        assert pool.to_kernels == [(b"ada", wire.Found(cells=(), missing=("node-a2",)))]

    pool.play(story)


def test_a_cell_is_handed_over_by_a_new_ticket_and_its_lease_is_the_new_session_s() -> None:
    pool = Pool()

    async def story(joins: Joins) -> None:
        await joins.join(ADA, JOIN)
        ((agent, hand_over),) = pool.to_agents
        assert agent == "a1"
        assert (hand_over.user, hand_over.session, hand_over.kernel) == ("ada", "s2", "k2")
        done = wire.HandedOver(query=hand_over.query, lease=LeaseId("l1"), slots=(SlotId("g0"),), walltime_ms=5)
        await joins.take_handed_over(AgentId("a2"), done)  # not the one that was asked
        assert pool.to_kernels == []
        await joins.take_handed_over(AgentId("a1"), done)
        ((route, granted),) = pool.to_kernels
        assert route == b"ada"
        assert isinstance(granted, wire.Granted)
        assert (granted.request, granted.lease, granted.ticket) == ("r1", "l1", hand_over.ticket)
        assert granted.slots == ("GPU 0",)
        active = pool.shell.active_leases[LeaseId("l1")]
        assert (active.session, active.kernel) == ("s2", "k2")

    pool.play(story)


def test_a_request_that_is_said_again_has_the_same_ticket_and_the_same_answer() -> None:
    pool = Pool()

    async def story(joins: Joins) -> None:
        await joins.join(ADA, JOIN)
        await joins.join(structs.replace(ADA, route=b"ada again"), JOIN)
        first, second = (message for _, message in pool.to_agents)
        assert first == second
        await joins.take_handed_over(AgentId("a1"), wire.HandedOver(query=first.query, lease=LeaseId("l1")))
        await joins.take_handed_over(AgentId("a1"), wire.HandedOver(query=first.query, lease=LeaseId("l1")))
        await joins.join(ADA, JOIN)
        assert [route for route, _ in pool.to_kernels] == [b"ada again", b"ada"]
        assert pool.to_kernels[0][1] == pool.to_kernels[1][1]
        assert len(pool.to_agents) == 2

    pool.play(story)


def test_another_user_s_request_of_the_same_name_is_another_request() -> None:
    pool = Pool()

    async def story(joins: Joins) -> None:
        await joins.join(ADA, JOIN)
        await joins.join(Asker(b"eve", UserName("eve"), SessionId("s3"), KernelId("k3")), JOIN)
        first, second = (message for _, message in pool.to_agents)
        assert first.ticket != second.ticket
        assert (second.user, second.session) == ("eve", "s3")

    pool.play(story)


def test_what_the_node_says_against_it_is_the_answer() -> None:
    pool = Pool()

    async def story(joins: Joins) -> None:
        await joins.join(ADA, JOIN)
        await joins.take_handed_over(AgentId("a1"), wire.HandedOver(query=pool.to_agents[0][1].query, sentence="No."))
        await joins.join(ADA, structs.replace(JOIN, request=RequestId("r2"), agent=AgentId("a9")))
        answers = [message for _, message in pool.to_kernels]
        assert [(type(answer), answer.request) for answer in answers] == [(wire.Refusal, "r1"), (wire.Refusal, "r2")]  # type: ignore[attr-defined]
        assert pool.shell.active_leases[LeaseId("l1")].session == "s1"

    pool.play(story)


def test_a_node_of_ones_own_is_asked_for_its_owner_alone() -> None:
    pool = Pool()
    eve = Asker(b"eve", UserName("eve"), SessionId("s3"), KernelId("k3"))
    join = structs.replace(JOIN, agent=AgentId("box"))

    async def story(joins: Joins) -> None:
        await joins.start_search(ADA)
        assert [agent for agent, _ in pool.to_agents] == ["a1", "a2"]
        await joins.join(ADA, join)
        ((_, answer),) = pool.to_kernels
        assert isinstance(answer, wire.Refusal), "eve's agent would be let into ada's notebook"
        await joins.start_search(eve)
        await joins.join(eve, join)
        assert [agent for agent, _ in pool.to_agents[2:]] == ["a1", "a2", "box", "box"]

    pool.play(story)


def test_no_node_hands_over_what_another_one_has() -> None:
    pool = Pool()

    async def story(joins: Joins) -> None:
        await joins.join(ADA, structs.replace(JOIN, agent=AgentId("a2")))
        ((_, hand_over),) = pool.to_agents
        await joins.take_handed_over(AgentId("a2"), wire.HandedOver(query=hand_over.query, lease=LeaseId("l1")))
        ((_, answer),) = pool.to_kernels
        assert isinstance(answer, wire.Refusal)
        assert pool.shell.active_leases[LeaseId("l1")].session == "s1", "its ticket would be told to ada"

    pool.play(story)
