"""Connections to the page by the hundreds, while a reader waits for an answer that takes long."""

import asyncio

from tornado import web

from bulletin_spawner.ports import find_free_ports
from bulletin_spawner.service.bounded_server import BoundedServer, note_reader


def test_a_crowd_of_strangers_ends_no_connection_of_who_is_known() -> None:
    (port,) = find_free_ports([0])

    async def main() -> tuple[bytes, int]:
        is_known, may_answer = asyncio.Event(), asyncio.Event()

        class Slow(web.RequestHandler):
            async def get(self) -> None:
                note_reader(self, "ann")
                is_known.set()
                await may_answer.wait()
                self.finish("the answer")

        app = web.Application([("/", Slow)])
        app.settings["server"] = server = BoundedServer(app, most_connections=10)
        server.listen(port, "127.0.0.1")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        strangers = []
        try:
            async with asyncio.timeout(60):
                writer.write(b"GET / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
                await is_known.wait()
                strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
                for oldest, _ in strangers[:30]:
                    assert await oldest.read() == b"", "they are hung up on"
                may_answer.set()
                return await reader.read(), len(server._streams)
        finally:
            for one in (writer, *(one for _, one in strangers)):
                one.close()
            server.stop()
            await server.close_all_connections()

    answer, count = asyncio.run(main())
    assert answer.endswith(b"the answer")
    assert count <= 10
