"""A node that somebody controls says what is not so: what it reaches of the notebooks and cells of other nodes."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec import structs

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import AgentId, CellId, KernelId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from bulletin.units import HOUR_MS
from bulletin.wire import messages as wire
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.joins import Joins
from gpu_worker.broker.kernels import Kernels
from gpu_worker.broker.metering import Metering
from gpu_worker.broker.records import LeaseRecord, OpenLease
from gpu_worker.broker.session_names import SessionNames
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub

#: Each notebook's connection is called as its user.
KERNELS = {"ann": KernelId("ann-kernel"), "eve": KernelId("eve-kernel")}


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    for user in KERNELS:
        hub.users[f"{user}-token"] = {"name": user, "kind": "user", "scopes": [SCOPE], "groups": ["maths"]}
    with hub.serving():
        yield hub


@pytest.fixture
def broker(broker: BrokerParts, hub: FakeHub) -> BrokerParts:
    """A broker of a hub with two nodes, and notebooks that hear what is said to their sessions."""
    restart(broker, hub)
    for node in ("honest", "lying"):
        broker.join(node)
    return broker


async def _nobody_looks(person: Person) -> wire.Picture:
    raise AssertionError(f"{person.user} looks at a pool that is not there")


async def _nobody_asks(person: Person, question: object) -> wire.Refusal:
    raise AssertionError(f"{person.user} asks for {question}")


def restart(broker: BrokerParts, hub: FakeHub, unproved: Mapping[SessionId, UserName] = {}) -> None:
    """Begin with what a broker knows that has been started again: nothing of who is there."""
    url = f"http://127.0.0.1:{hub.server_address[1]}/hub/api"
    identity = Identity("own", Hub(url=url, token="service"), SCOPE)
    kernels = Kernels(
        broker.send,
        identity,
        broker.clock_ms,
        _nobody_looks,
        _nobody_asks,
        "GPU",
        broker.faults,
        SessionNames("secret", unproved),
    )
    broker.agents._claims._names = kernels.names
    kernels.shell, kernels.groups, kernels.decisions = broker.shell, broker.groups, broker.kernels.decisions
    kernels.joins = Joins(broker.send, broker.tell_agent, broker.shell, broker.clock_ms)
    broker.kernels = broker.agents._kernels = kernels
    broker.agents.joins = kernels.joins
    broker.shell._tell = kernels.tell


def says(broker: BrokerParts, user: str, *messages: wire.FromKernel) -> None:
    """What a notebook says, and all that follows from it."""

    async def say() -> None:
        hello = wire.Hello(protocol=wire.PROTOCOL, version="1", token=f"{user}-token", kernel=KERNELS[user])
        for message in (hello, *messages):
            await broker.kernels.take(user.encode(), message)
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    asyncio.run(say())


def prepared(broker: BrokerParts) -> wire.Prepare:
    """What the last node was told that was granted."""
    return next(said for said in reversed(broker.to_agents) if isinstance(said, wire.Prepare))


def hears(broker: BrokerParts, session: SessionId) -> list[str]:
    """Whose notebooks hear what is said to a session."""
    broker.to_routes.clear()
    asyncio.run(broker.kernels.tell(session, wire.Pong()))
    return [route.decode() for route, _ in broker.to_routes]


def claim(broker: BrokerParts, node: str = "lying", **changes: Any) -> None:
    """A node comes again with a lease, which nobody granted or as it was not granted."""
    held = wire.HeldLease(
        lease=LeaseId("l-made-up"),
        session=SessionId("s"),
        kernel=KERNELS["eve"],
        user=UserName("eve"),
        project=ProjectId("maths"),
        qos="interactive",
        slots=(SlotId("gpu-0"),),
        walltime_ms=60_000,
        cell=CellId("made-up"),
    )
    message = structs.replace(broker.registration(node), held=(structs.replace(held, **changes),))
    asyncio.run(broker.agents.take(f"again-{node}".encode(), message))


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_node_gives_nobody_the_session_of_another_users_notebook(
    broker: BrokerParts, hub: FakeHub, is_restarted: bool
) -> None:
    """A node knows the session of each notebook that had a cell there, and its owner has a notebook of their own."""
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    session = prepared(broker).session
    if is_restarted:
        restart(broker, hub)
    claim(broker, session=session)
    says(broker, "eve", wire.Submit(request=RequestId("r")))
    assert hears(broker, session) == ([] if is_restarted else ["ann"])


def test_a_notebook_keeps_its_session_whatever_a_node_says_that_it_has_of_it(broker: BrokerParts) -> None:
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    session = prepared(broker).session
    claim(broker, session=SessionId("junk"), user=UserName("ann"), kernel=KERNELS["ann"])
    says(broker, "ann")
    assert hears(broker, session) == ["ann"]


def recorded(session: SessionId, lease: str, granted_at_ms: int, node: str = "lying") -> OpenLease:
    record = LeaseRecord(
        lease=LeaseId(lease),
        session=session,
        user=UserName("ann"),
        project=ProjectId("maths"),
        qos="interactive",
        node=node,
        slots=(SlotId("gpu-0"),),
        kind="gpu",
        milli=1000,
        granted_at_ms=granted_at_ms,
    )
    return OpenLease(record, 0)


@pytest.mark.parametrize("order", [("older", "newer"), ("newer", "older")], ids=", then ".join)
def test_a_notebook_keeps_the_session_by_which_it_was_granted_something_last(
    broker: BrokerParts, hub: FakeHub, order: tuple[str, str]
) -> None:
    """A node tells a broker that was restarted of a session that the notebook had before the one that it has."""
    names = SessionNames("secret")
    sessions = {lease: names.draw(UserName("ann"), KERNELS["ann"]) for lease in order}
    open_leases = [recorded(sessions["older"], "older", 1), recorded(sessions["newer"], "newer", 2, "honest")]
    broker.shell.metering = Metering(broker.shell.scheduler.state, open_leases, [], 0)
    restart(broker, hub)
    for lease in order:
        node = "honest" if lease == "newer" else "lying"
        claim(broker, node, lease=LeaseId(lease), session=sessions[lease], user=UserName("ann"), kernel=KERNELS["ann"])
    says(broker, "ann")
    assert hears(broker, sessions["newer"]) == ["ann"]
    assert hears(broker, sessions["older"]) == []


def test_a_notebook_that_has_asked_for_a_place_since_is_not_made_one_of_before(
    broker: BrokerParts, hub: FakeHub
) -> None:
    old = SessionNames("secret").draw(UserName("ann"), KERNELS["ann"])
    broker.shell.metering = Metering(broker.shell.scheduler.state, [recorded(old, "l", broker.now_ms - 1)], [], 0)
    restart(broker, hub)
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    session = prepared(broker).session
    claim(broker, lease=LeaseId("l"), session=old, user=UserName("ann"), kernel=KERNELS["ann"])
    says(broker, "ann")
    assert hears(broker, session) == ["ann"]


def let_go_by(broker: BrokerParts, minutes: int, *nodes: str) -> None:
    """Time in which these nodes are heard, and notebooks ask for what they wait for."""

    async def pass_minutes() -> None:
        for _ in range(minutes * 12):
            broker.now_ms += 5_000
            for node in nodes:
                await broker.agents.take(node.encode(), wire.Ping())
            await broker.agents.tidy()
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
            await broker.shell.step(events.Tick())

    asyncio.run(pass_minutes())


def grants(broker: BrokerParts, lease: LeaseId) -> list[wire.Prepare]:
    """What was granted beside this lease."""
    return [said for said in broker.to_agents if isinstance(said, wire.Prepare) and said.lease != lease]


@pytest.mark.parametrize("has_begun", [False, True], ids=["no cell", "a cell"])
def test_a_node_that_never_says_that_a_lease_is_over_keeps_its_notebook_from_others_for_a_bounded_time(
    broker: BrokerParts, has_begun: bool
) -> None:
    says(broker, "ann", wire.Submit(request=RequestId("r"), walltime_ms=HOUR_MS // 2))
    granted = prepared(broker)
    node = broker.shell.active_leases[granted.lease].agent.removeprefix("agent-")
    if has_begun:
        broker.report(node, wire.CellBegan(lease=granted.lease, cell=CellId("c")))
    says(broker, "ann", wire.Submit(request=RequestId("r2"), walltime_ms=HOUR_MS // 2))
    let_go_by(broker, 89 if has_begun else 9, "honest", "lying")
    assert grants(broker, granted.lease) == [], "it may be at work yet"
    let_go_by(broker, 3, "honest", "lying")
    [elsewhere] = grants(broker, granted.lease)
    assert (elsewhere.user, elsewhere.kernel) == ("ann", KERNELS["ann"])
    assert elsewhere.session != granted.session
    assert hears(broker, elsewhere.session) == ["ann"]
    assert wire.Evict(lease=granted.lease, force=True) in broker.to_agents
    state = broker.shell.scheduler.state
    assert granted.lease in state.leases, "its slots are not given to anybody"
    says(broker, "ann")
    assert hears(broker, elsewhere.session) == ["ann"], "also with its next words"


def test_who_waits_for_a_cell_on_a_node_that_is_not_heard_waits_on(broker: BrokerParts) -> None:
    """Its cell may go on there, and is not to run twice."""
    broker.agents._keep_ms = 24 * HOUR_MS
    says(broker, "ann", wire.Submit(request=RequestId("r"), walltime_ms=60_000))
    granted = prepared(broker)
    node = broker.shell.active_leases[granted.lease].agent.removeprefix("agent-")
    broker.report(node, wire.CellBegan(lease=granted.lease, cell=CellId("c")))
    broker.agents.known[AgentId(f"agent-{node}")].is_away = True
    says(broker, "ann", wire.Submit(request=RequestId("r2")))
    let_go_by(broker, 70, *{"honest", "lying"} - {node})
    assert grants(broker, granted.lease) == []


def test_a_notebook_has_its_session_again_at_a_broker_that_was_restarted(broker: BrokerParts, hub: FakeHub) -> None:
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    session = prepared(broker).session
    lease = prepared(broker).lease
    node = broker.shell.nodes[broker.shell.active_leases[lease].agent].node
    restart(broker, hub)
    claim(broker, node, lease=lease, session=session, user=UserName("ann"), kernel=KERNELS["ann"])
    says(broker, "ann")
    assert hears(broker, session) == ["ann"]


@pytest.mark.parametrize("is_old", [False, True], ids=["one that nobody granted", "the lease that ended"])
def test_a_node_keeps_no_notebook_from_other_nodes_by_a_lease_that_it_does_not_have(
    broker: BrokerParts, is_old: bool
) -> None:
    """It had a cell of the notebook, says that it is over, and comes again with it."""
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    granted = prepared(broker)
    node = broker.shell.nodes[broker.shell.active_leases[granted.lease].agent].node
    broker.report(node, wire.LeaseOver(lease=granted.lease, code=LeaseEnd.LEFT, sentence=""))
    claim(
        broker,
        node,
        lease=granted.lease if is_old else LeaseId("l-made-up"),
        session=granted.session,
        user=UserName("ann"),
        kernel=KERNELS["ann"],
    )
    says(broker, "ann", wire.Submit(request=RequestId("r2")))
    assert prepared(broker).lease != granted.lease
    assert broker.shell.scheduler.state.pending == {}


@pytest.mark.parametrize(
    "session", [SessionNames("secret").draw(UserName("ann"), KERNELS["ann"]), SessionId("s-0123")], ids=["", "unproved"]
)
def test_what_a_broker_that_was_restarted_finds_in_its_ledger_is_the_notebooks_and_its_users(
    broker: BrokerParts, hub: FakeHub, session: SessionId
) -> None:
    """Also where a Bulletin named the session whose names have no proof."""
    open_lease = recorded(session, "l", 0)
    record = open_lease.lease
    broker.shell.metering = Metering(broker.shell.scheduler.state, [open_lease], [], 0)
    restart(broker, hub, {session: UserName("ann")})
    claim(broker, lease=record.lease, session=session, kernel=KERNELS["ann"], user=UserName("eve"))
    lease = broker.shell.scheduler.state.leases[record.lease]
    assert (lease.user, lease.session) == ("ann", session)
    says(broker, "ann")
    assert hears(broker, session) == ["ann"]


def test_a_node_that_connects_without_end_is_taken_in_so_often_and_told_why(broker: BrokerParts) -> None:
    def come(route: int, node: str = "lying") -> None:
        message = structs.replace(broker.registration(node), process="one", clock_ms=None)
        asyncio.run(broker.agents.take(f"{node}-{route}".encode(), message))

    for route in range(1_000):
        come(route)
    taken = [said for _, said in broker.to_routes if isinstance(said, wire.Registered)]
    [refusal] = [said for _, said in broker.to_routes if isinstance(said, wire.Refusal)]
    assert len(taken) <= 150
    assert "again and again" in refusal.sentence
    assert "'lying'" in refusal.sentence
    come(0, "honest")
    assert isinstance(broker.to_routes[-1][1], wire.Registered), "others are taken in"
    broker.now_ms += 10_000
    come(1_000)
    assert isinstance(broker.to_routes[-1][1], wire.Registered), "so is it, in time"


def test_a_node_says_to_notebooks_one_line_that_can_be_read(broker: BrokerParts) -> None:
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    granted = prepared(broker)
    node = broker.shell.nodes[broker.shell.active_leases[granted.lease].agent].node
    broker.to_routes.clear()
    broker.report(
        node,
        wire.LeaseOver(lease=granted.lease, code=LeaseEnd.CANNOT_START, sentence="\x1b[2J\u202ebad\nsecond" * 5_000),
    )
    [sentence] = [said.sentence for _, said in broker.to_routes if isinstance(said, wire.Revoked)]
    assert sentence.isprintable()
    assert 0 < len(sentence) <= 1_000
    says(broker, "eve", wire.Join(request=RequestId("j"), cell=CellId("c"), agent=AgentId("agent-lying")))
    asked = next(said for said in broker.to_agents if isinstance(said, wire.HandOver))
    broker.report("lying", wire.HandedOver(query=asked.query, sentence="\x1b]0;mine\x07no\n" * 5_000))
    [sentence] = [said.sentence for _, said in broker.to_routes if isinstance(said, wire.Refusal)]
    assert sentence.isprintable()
    assert 0 < len(sentence) <= 1_000


def test_a_node_hands_over_no_cell_of_another_node(broker: BrokerParts) -> None:
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    granted = prepared(broker)
    node = broker.shell.active_leases[granted.lease].agent
    other = next(agent for agent in broker.shell.nodes if agent != node)
    says(broker, "eve", wire.Join(request=RequestId("j"), cell=CellId("c"), agent=other))
    asked = next(said for said in broker.to_agents if isinstance(said, wire.HandOver))
    broker.to_routes.clear()
    broker.report(
        "honest" if other == AgentId("agent-honest") else "lying",
        wire.HandedOver(query=asked.query, lease=granted.lease, slots=granted.slots, walltime_ms=1),
    )
    assert broker.shell.active_leases[granted.lease].session == granted.session
    [(route, told)] = broker.to_routes
    assert route == b"eve"
    assert isinstance(told, wire.Refusal)
    assert "another node" in told.sentence


def test_a_node_says_of_no_lease_that_was_granted_whose_it_is(broker: BrokerParts) -> None:
    says(broker, "eve", wire.Submit(request=RequestId("r")))
    granted = prepared(broker)
    node = "honest" if broker.shell.active_leases[granted.lease].agent == "agent-honest" else "lying"
    claim(broker, node, lease=granted.lease, user=UserName("ann"), kernel=KERNELS["ann"], session=granted.session)
    lease = broker.shell.scheduler.state.leases[granted.lease]
    assert (lease.user, lease.session) == ("eve", granted.session)


def note(cell: str, since_ms: int, **changes: Any) -> wire.CellNote:
    one = wire.CellNote(
        cell=CellId(cell), agent=AgentId("agent-honest"), node="honest", state="running", line="x", since_ms=since_ms
    )
    return structs.replace(one, **changes)


def test_a_node_that_lists_cells_without_end_hides_none_of_another_nodes(broker: BrokerParts) -> None:
    says(broker, "ann", wire.Find())
    query = next(said for said in broker.to_agents if isinstance(said, wire.ListCells)).query
    broker.to_routes.clear()
    made_up = tuple(note(f"made-up-{number}", -number) for number in range(5_000))
    broker.report("lying", wire.Listed(query=query, cells=made_up))
    broker.report("honest", wire.Listed(query=query, cells=(note("hers", 3_600_000),)))
    [(_, found)] = broker.to_routes
    assert isinstance(found, wire.Found)
    assert "hers" in {one.cell for one in found.cells}
    assert len(found.cells) <= 100


def test_a_node_lists_its_own_cells_and_no_others(broker: BrokerParts) -> None:
    """It says that a cell is another node's, by a name that a terminal obeys, and since before there were computers."""
    says(broker, "ann", wire.Find())
    query = next(said for said in broker.to_agents if isinstance(said, wire.ListCells)).query
    broker.to_routes.clear()
    broker.report("honest", wire.Listed(query=query, cells=()))
    broker.report("lying", wire.Listed(query=query, cells=(note("c", 10**30, node="honest\x1b[2J", label="\x1bc"),)))
    [(_, found)] = broker.to_routes
    assert isinstance(found, wire.Found)
    [one] = found.cells
    assert (one.agent, one.node) == ("agent-lying", "lying")
    assert one.label.isprintable()
    assert 0 <= one.since_ms <= 10 * 366 * 24 * 3_600_000


def test_cells_that_a_node_makes_up_without_end_take_little_of_the_broker_and_its_ledger(broker: BrokerParts) -> None:
    usage = wire.CellUsage(outcome=CellOutcome.RETURNED, ran_ms=1, held_ms=1)
    done = wire.CellDone(
        lease=LeaseId("l"),
        session=SessionId("s"),
        cell=CellId("c"),
        user=UserName("ann"),
        project=ProjectId("maths"),
        qos="interactive",
        slots=(),
        usage=usage,
    )

    async def flood(node: str, number: int) -> None:
        for at in range(number):
            await broker.agents.take(node.encode(), structs.replace(done, lease=LeaseId(f"{node}-{at}")))

    asyncio.run(flood("lying", 20_000))
    assert broker.writer.unwritten <= 6_000
    before = broker.writer.unwritten
    asyncio.run(flood("honest", 10))
    assert broker.writer.unwritten == before + 10, "others' are recorded"


def test_a_request_that_waits_for_a_lease_which_is_never_over_goes_on_with_its_age_and_its_place(
    broker: BrokerParts,
) -> None:
    """An admin put it first, and no other node is free: whoever came later stands behind it yet."""
    says(broker, "ann", wire.Submit(request=RequestId("r"), walltime_ms=HOUR_MS // 2))
    hers = prepared(broker)
    says(broker, "eve", wire.Submit(request=RequestId("r"), walltime_ms=4 * HOUR_MS, qos="batch"))
    others = prepared(broker)
    for lease in (hers.lease, others.lease):
        node = broker.shell.active_leases[lease].agent.removeprefix("agent-")
        broker.report(node, wire.CellBegan(lease=lease, cell=CellId("c")))
    says(broker, "ann", wire.Submit(request=RequestId("r2"), walltime_ms=HOUR_MS // 2))
    [before] = broker.shell.scheduler.state.pending.values()
    broker.step(events.RequestPutFirst(before.id))
    let_go_by(broker, 89, "honest", "lying")
    broker.to_routes.clear()
    let_go_by(broker, 3, "honest", "lying")
    [revoked] = [said for _, said in broker.to_routes if isinstance(said, wire.Revoked)]
    assert (revoked.lease, revoked.code) == (hers.lease, LeaseEnd.NOT_RELEASED)
    [after] = broker.shell.scheduler.state.pending.values()
    assert after.session != before.session
    assert (after.lease, after.since_ms) == (before.lease, before.since_ms)
    assert (after.entry.key.turn, after.entry.key.seq) == (before.entry.key.turn, before.entry.key.seq)
    assert after.entry.key.turn < 0
    says(broker, "ann", wire.Submit(request=RequestId("r2"), walltime_ms=HOUR_MS // 2))
    assert list(broker.shell.scheduler.state.pending) == [after.id], "said again, it is the same one"
    node = broker.shell.active_leases[others.lease].agent.removeprefix("agent-")
    broker.report(node, wire.LeaseOver(lease=others.lease, code=LeaseEnd.LEFT, sentence=""))
    assert (prepared(broker).session, prepared(broker).user) == (after.session, "ann")


def test_a_request_that_goes_on_by_another_session_is_withdrawn_by_its_kernel(broker: BrokerParts) -> None:
    says(broker, "ann", wire.Submit(request=RequestId("r"), walltime_ms=HOUR_MS // 2))
    hers = prepared(broker)
    says(broker, "eve", wire.Submit(request=RequestId("r"), walltime_ms=4 * HOUR_MS, qos="batch"))
    broker.report(
        broker.shell.active_leases[prepared(broker).lease].agent.removeprefix("agent-"),
        wire.CellBegan(lease=prepared(broker).lease, cell=CellId("c")),
    )
    says(broker, "ann", wire.Submit(request=RequestId("r2")))
    let_go_by(broker, 20, "honest", "lying")
    [waits] = broker.shell.scheduler.state.pending.values()
    assert waits.session != hers.session
    assert hears(broker, waits.session) == ["ann"]
    says(broker, "ann", wire.Withdraw(request=RequestId("r2")))
    assert broker.shell.scheduler.state.pending == {}
    assert broker.shell.pending_requests == {}
