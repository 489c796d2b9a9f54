"""A crowd whom nobody knows asks for pages and files, while others log in, read, or watch the service."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from tornado import web

from bulletin_spawner.ports import find_free_ports
from bulletin_spawner.service.broker_client import BrokerClient
from bulletin_spawner.service.page_login import PageLogin
from bulletin_spawner.service.reader_line import ReaderLine
from bulletin_spawner.service.stranger_turns import StrangerTurns
from bulletin_spawner.service.web_app import ServiceSettings, listen, make_app

#: After one turn nobody else has one for as long as a test takes.
NEVER = 1e6
#: Each has a thread with an event loop, which JupyterHub never closes.
_KEPT: list[PageLogin] = []

Ask = Callable[..., "asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]"]


@asynccontextmanager
async def _page(folder: Path, most_connections: int | None = None) -> AsyncIterator[tuple[web.Application, Ask]]:
    """A page, and how to ask it for a path. Whoever has asked hangs up in the end."""
    (port,) = find_free_ports([0])
    broker = BrokerClient(folder, "")
    app = make_app(ServiceSettings(url=f"http://127.0.0.1:{port}", prefix="/pool/"), broker)
    server, writers = listen(app, port, "127.0.0.1", most_connections), []

    async def ask(path: str, head: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        writer.write(f"GET /pool/{path} HTTP/1.1\r\nHost: hub\r\n{head}Connection: close\r\n\r\n".encode())
        return reader, writer

    try:
        async with asyncio.timeout(60):
            yield app, lambda *asked: asyncio.ensure_future(ask(*asked))
    finally:
        for one in writers:
            one.close()
        server.stop()
        await server.close_all_connections()
        broker.close()


@pytest.fixture(autouse=True)
def hub(monkeypatch: pytest.MonkeyPatch) -> PageLogin:
    """The page's way to a hub, which does not answer."""
    monkeypatch.setenv("JUPYTERHUB_API_URL", "http://127.0.0.1:1/hub/api")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of-the-service")
    monkeypatch.setenv("JUPYTERHUB_CLIENT_ID", "service-bulletin")
    PageLogin.clear_instance()
    _KEPT.append(PageLogin.instance())
    return _KEPT[-1]


@pytest.mark.parametrize("flooded", ["static/pool.css", "nowhere", "api/v1/openapi.json"])
def test_a_crowd_is_answered_one_by_one_and_holds_up_nobody_who_asks_for_something_else(
    flooded: str, tmp_path: Path
) -> None:
    async def scenario() -> tuple[int, bytes]:
        async with _page(tmp_path) as (app, ask):
            turns: dict[str, StrangerTurns] = app.settings["strangers"]
            turns.update({kind: StrangerTurns(NEVER) for kind in turns if kind != "health"})
            answers = [asyncio.ensure_future((await ask(flooded))[0].read()) for _ in range(20)]
            await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
            reader, _ = await ask("health")
            return sum(one.done() for one in answers), await reader.read()

    answered, said = asyncio.run(scenario())
    assert said.endswith(b'{"status":"no-pool"}')
    assert answered == 1


def test_a_reader_has_script_and_style_whatever_crowd_of_strangers_asks_for_them(
    tmp_path: Path, hub: PageLogin
) -> None:
    """Also one whom the hub does not answer just now."""
    (hub_port,) = find_free_ports([0])
    hub.api_url = f"http://127.0.0.1:{hub_port}/hub/api"

    async def be_a_hub(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        said = b'{"kind": "user", "name": "ada"}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(said), said))
        await writer.drain()
        writer.close()

    async def scenario() -> tuple[bytes, bool]:
        async with _page(tmp_path) as (app, ask):
            app.settings["strangers"]["files"] = turns = StrangerTurns(NEVER)
            await turns.take()
            stranger = asyncio.ensure_future((await ask("static/pool.css", "Authorization: token guess\r\n"))[0].read())
            token = "Authorization: token of-ada\r\n"
            async with await asyncio.start_server(be_a_hub, "127.0.0.1", hub_port):
                page, _ = await ask("api/v1/now", token)
                await page.read()
            reader, _ = await ask("static/pool.css", token)
            return await reader.read(), stranger.done()

    said, is_guess_answered = asyncio.run(scenario())
    assert said.startswith(b"HTTP/1.1 200 OK")
    assert not is_guess_answered


def test_of_a_crowd_that_asks_faster_than_it_is_answered_some_are_however_long_it_goes_on(tmp_path: Path) -> None:
    """Of too many connections the oldest are ended, and those are not the ones whose turn is next."""

    async def scenario() -> list[bytes]:
        async with _page(tmp_path, 40) as (_, ask):
            asked = [asyncio.ensure_future((await ask(""))[0].read(20)) for _ in range(600)]
            return await asyncio.gather(*asked)

    answers = asyncio.run(scenario())
    later = answers[300:-40]  # before the last ones, whom nobody pushes out
    assert later.count(b"HTTP/1.1 302 Found\r\n") > len(later) // 10


def test_whoever_else_is_ready_is_answered_between_two_of_a_crowd() -> None:
    async def scenario() -> list[str]:
        turns, came = StrangerTurns(), list[str]()

        async def be_one(name: str) -> None:
            await turns.take()
            came.append(name)

        async def be_known() -> None:
            while came.count("stranger") < 50:
                came.append("reader")
                await asyncio.sleep(0)

        async with asyncio.timeout(60):
            await asyncio.gather(be_known(), *(be_one("stranger") for _ in range(50)))
        return came

    came = asyncio.run(scenario())
    assert "stranger" in came
    assert ("stranger", "stranger") not in set(pairwise(came))


@pytest.mark.parametrize("wait", [ReaderLine(1 / NEVER, 1).wait, StrangerTurns(NEVER).take])
def test_who_has_left_takes_nobodys_turn(wait: Callable[[web.RequestHandler], "asyncio.Future[None]"]) -> None:
    (port,) = find_free_ports([0])
    came: list[str] = []

    async def scenario() -> None:
        has_come, has_left = asyncio.Event(), asyncio.Event()

        class Page(web.RequestHandler):
            async def get(self, name: str) -> None:
                came.append(name)
                has_come.set()
                if name == "gone":
                    await has_left.wait()
                await wait(self)
                came.append(f"{name} answered")

            def on_connection_close(self) -> None:
                has_left.set()

        server = web.Application([(r"/(\w+)", Page)]).listen(port, "127.0.0.1")
        async with asyncio.timeout(30):
            _, gone = await asyncio.open_connection("127.0.0.1", port)
            gone.write(b"GET /gone HTTP/1.1\r\nHost: x\r\n\r\n")
            await has_come.wait()
            gone.close()
            await has_left.wait()
            reader, here = await asyncio.open_connection("127.0.0.1", port)
            here.write(b"GET /here HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
        here.close()
        server.stop()
        await server.close_all_connections()

    asyncio.run(scenario())
    assert came == ["gone", "here", "here answered"]
