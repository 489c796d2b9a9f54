"""A crowd whom nobody knows asks for pages and files, while readers and whatever watches the service go on."""

import asyncio
from pathlib import Path

import pytest
from tornado import web

from bulletin_spawner.ports import find_free_ports
from bulletin_spawner.service.broker_client import BrokerClient
from bulletin_spawner.service.visitor_line import VisitorLine
from bulletin_spawner.service.web_app import ServiceSettings, listen, make_app

#: Nobody else comes through for as long as a test takes.
NEVER = 1e-6


@pytest.mark.parametrize("flooded", ["static/pool.css", "nowhere", "api/v1/openapi.json"])
def test_a_crowd_is_answered_one_by_one_and_holds_up_nobody_who_asks_for_something_else(
    flooded: str, tmp_path: Path
) -> None:
    (port,) = find_free_ports([0])

    async def ask(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /pool/{path} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n".encode())
        return reader, writer

    async def scenario() -> tuple[int, bytes]:
        broker = BrokerClient(tmp_path, "")
        app = make_app(ServiceSettings(url=f"http://127.0.0.1:{port}", prefix="/pool/"), broker)
        lines: dict[str, VisitorLine] = app.settings["strangers"]
        lines.update({name: VisitorLine(NEVER, 1) for name in lines if name != "health"})
        server = listen(app, port, "127.0.0.1")
        crowd = [await ask(flooded) for _ in range(20)]
        try:
            async with asyncio.timeout(30):
                answers = [asyncio.ensure_future(one.read()) for one, _ in crowd]
                await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
                reader, _ = health = await ask("health")
                crowd.append(health)
                said = await reader.read()
                return sum(one.done() for one in answers), said
        finally:
            for _, writer in crowd:
                writer.close()
            server.stop()
            await server.close_all_connections()
            broker.close()

    answered, said = asyncio.run(scenario())
    assert said.endswith(b'{"status":"no-pool"}')
    assert answered == 1


def test_who_has_left_takes_nobodys_turn() -> None:
    (port,) = find_free_ports([0])
    came: list[str] = []

    async def scenario() -> None:
        line, has_come, has_left = VisitorLine(NEVER, 1), asyncio.Event(), asyncio.Event()

        class Page(web.RequestHandler):
            async def get(self, name: str) -> None:
                came.append(name)
                has_come.set()
                if name == "gone":
                    await has_left.wait()
                await line.wait(self)
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
