"""The link to the broker is asked by many pages, and asks now and then; what it is not told it does not invent."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq.asyncio

from bulletin.codes import RefusalCode
from bulletin.errors import NotDone
from bulletin.ids import AgentId, CellId, KernelId, LeaseId, ProjectId, SlotId, UserName
from bulletin.wire import channel, clients, console, frames, keys, messages as wire
from bulletin.wire.messages.own_cells import AskOwn, OwnReport, OwnRunning
from bulletin_lab.pool_link import NotLetIn, OwnCells, PoolLink

REPORT = OwnReport(slot_word="GPU", total=1, free=1, ready=0, waiting_count=0)
REFUSED = wire.Refusal(code=RefusalCode.NOT_ALLOWED, sentence="You have no access to the GPU pool.")


def answer(message: wire.Message) -> list[wire.Message]:
    """What a broker says that knows the user, who has no cell."""
    match message:
        case wire.Hello():
            return [wire.Welcome(user=UserName("ann"), version="1")]
        case AskOwn():
            return [REPORT]
        case wire.Find():
            return [wire.Found(cells=())]
        case _:
            return [wire.Malformed(problem="no such question")]


class Broker:
    """The other end of the socket: keeps what it hears, and says what it is to say."""

    def __init__(self, say: Callable[[wire.Message], list[wire.Message]] = answer) -> None:
        self.say, self.heard, self.keys = say, [], keys.make_keys()
        self.heard: list[wire.Message]
        self.address = ""

    def count(self, kind: type[wire.Message]) -> int:
        return sum(isinstance(message, kind) for message in self.heard)

    @asynccontextmanager
    async def running(self) -> Any:
        context = zmq.asyncio.Context()
        socket = channel.serve(context.socket(zmq.ROUTER), self.keys, channel.CONTROL_LIMIT, 100)
        self.address = channel.bind(socket, "tcp://127.0.0.1:0")
        unpacker: frames.Unpacker[Any] = frames.Unpacker(clients.FromClient)

        async def serve() -> None:
            while True:
                route, *parts = await socket.recv_multipart()
                message, _ = unpacker.unpack(parts)
                self.heard.append(message)
                for one in self.say(message):
                    await socket.send_multipart([route, *frames.pack(one)])

        task = asyncio.create_task(serve())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            context.destroy(linger=0)


def play(broker: Broker, use: Callable[[PoolLink], Awaitable[object]], **environ: str) -> None:
    """Let the link of a server use the broker, by the hub's variables unless others are given."""

    async def talk() -> None:
        async with broker.running():
            by_hub = {
                "BULLETIN_ADDRESS": broker.address,
                "BULLETIN_PUBLIC_KEY": broker.keys.public,
                "JUPYTERHUB_API_TOKEN": "secret",
            }
            link = PoolLink(environ or by_hub)
            try:
                await use(link)
            finally:
                link.close()

    asyncio.run(talk())


def test_however_many_pages_ask_the_broker_is_asked_once() -> None:
    broker = Broker()

    async def use(link: PoolLink) -> None:
        answers = await asyncio.gather(*(link.fetch(whole=number % 2 == 0) for number in range(100)))
        assert all(isinstance(one, OwnCells) and one.report == REPORT for one in answers)
        await link.fetch(whole=False)

    play(broker, use)
    assert (broker.count(wire.Hello), broker.count(AskOwn), broker.count(wire.Find)) == (1, 1, 1)


def test_who_is_not_let_in_does_not_knock_again_at_once() -> None:
    broker = Broker(lambda _: [REFUSED])

    async def use(link: PoolLink) -> None:
        for _ in range(3):
            with pytest.raises(NotLetIn, match="no access"):
                await link.fetch(whole=True)

    play(broker, use)
    assert broker.count(wire.Hello) == 1


def test_a_broker_that_was_started_again_is_told_again_who_asks() -> None:
    forgets = iter([True])

    def say(message: wire.Message) -> list[wire.Message]:
        return [wire.Unknown()] if isinstance(message, AskOwn) and next(forgets, False) else answer(message)

    broker = Broker(say)

    async def use(link: PoolLink) -> None:
        assert isinstance(await link.fetch(whole=False), OwnCells)

    play(broker, use)
    assert broker.count(wire.Hello) == 2


def test_a_broker_of_an_earlier_version_is_no_fault_of_the_page() -> None:
    broker = Broker(
        lambda message: answer(message) if isinstance(message, wire.Hello) else [wire.Malformed(problem="?")]
    )

    async def use(link: PoolLink) -> None:
        with pytest.raises(NotDone, match="version"):
            await link.fetch(whole=False)

    play(broker, use)


def test_a_welcome_that_comes_by_itself_is_not_taken_for_an_answer() -> None:
    """A broker says so when the pool has another kind of slots."""
    broker = Broker(
        lambda message: [*answer(wire.Hello(protocol=1, version="1", token="", kernel="")), *answer(message)]
    )  # type: ignore[arg-type]

    async def use(link: PoolLink) -> None:
        assert isinstance(await link.fetch(whole=True), OwnCells)

    play(broker, use)


def test_only_what_is_the_users_own_is_cancelled() -> None:
    broker = Broker()

    async def use(link: PoolLink) -> None:
        with pytest.raises(NotDone, match="neither waits nor runs"):
            await link.cancel(LeaseId("somebody-elses"))

    play(broker, use)
    assert broker.count(console.Cancel) == 0


@pytest.fixture
def own_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("bulletin_lab.pool_link._ANSWER_S", 0.2)
    from bulletin.own_pool_facts import name_folder

    folder = name_folder({"BULLETIN_RUNTIME_DIR": str(tmp_path)})
    folder.mkdir(parents=True)
    return folder


def test_a_pool_of_ones_own_that_ended_without_a_word_is_one_that_the_next_cell_starts(
    own_pool: Path, tmp_path: Path
) -> None:
    gone = keys.Connection(address="tcp://127.0.0.1:1", public_key=keys.make_keys().public, token="t")
    keys.write_private(own_pool / "connection.json", gone)

    async def use(link: PoolLink) -> None:
        assert await link.fetch(whole=False) == "startable"
        assert await link.fetch(whole=False) == "startable"  # and while it is left alone

    play(Broker(), use, BULLETIN_RUNTIME_DIR=str(tmp_path))


def test_a_file_that_others_can_read_is_not_used(own_pool: Path, tmp_path: Path) -> None:
    connection = keys.Connection(address="tcp://127.0.0.1:1", public_key=keys.make_keys().public, token="t")
    keys.write_private(own_pool / "connection.json", connection)
    (own_pool / "connection.json").chmod(0o644)

    async def use(link: PoolLink) -> None:
        assert await link.fetch(whole=False) == "startable"

    play(Broker(), use, BULLETIN_RUNTIME_DIR=str(tmp_path))


def test_nodes_are_asked_again_at_once_when_a_cell_without_a_notebook_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bulletin_lab.pool_link._FRESH_S", -1.0)
    running = OwnRunning(
        lease=LeaseId("l"),
        cell=CellId("c"),
        kernel=KernelId("k"),
        label="",
        node="n1",
        slots=(SlotId("gpu-0"),),
        state="busy",
        qos="batch",
        project=ProjectId("p"),
        for_ms=1,
        walltime_ms=1,
        in_quota=None,
    )
    note = wire.CellNote(cell=CellId("c"), agent=AgentId("a"), node="n1", state="running", line="fit()")
    told: list[tuple[OwnRunning | None, wire.CellNote]] = [
        (running, note),
        (None, msgspec.structs.replace(note, state="finished")),
    ]

    def say(message: wire.Message) -> list[wire.Message]:
        match message:
            case AskOwn():
                held = told[0][0]
                return [msgspec.structs.replace(REPORT, running=(held,) if held else ())]
            case wire.Find():
                return [wire.Found(cells=(told[0][1],))]
            case _:
                return answer(message)

    broker = Broker(say)

    async def use(link: PoolLink) -> None:
        for _ in range(2):
            assert (await link.fetch(whole=True)).notes == (note,)  # type: ignore[union-attr]
        told.pop(0)
        for _ in range(2):
            assert (await link.fetch(whole=True)).notes == (told[0][1],)  # type: ignore[union-attr]

    play(broker, use)
    assert broker.count(wire.Find) == 2
