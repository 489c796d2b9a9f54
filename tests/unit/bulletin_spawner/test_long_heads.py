"""A crowd sends the page requests with long heads, and somebody else one as browsers send it."""

import asyncio
from itertools import count

from tornado import web

from bulletin_spawner.ports import find_free_ports
from bulletin_spawner.service.bounded_server import BoundedServer
from bulletin_spawner.service.long_heads import LongHeads

#: After one long head no other has its turn for as long as a test takes.
NEVER = 1e6
LONG = "".join(f"{number}: x\r\n" for number in range(1000))


class _Page(web.RequestHandler):
    def get(self) -> None:
        self.finish("the answer")


def test_of_long_heads_one_is_parsed_and_short_ones_are_answered_before_the_next() -> None:
    (port,) = find_free_ports([0])

    async def main() -> tuple[bytes, list[bool]]:
        server = BoundedServer(web.Application([("/", _Page)]))
        server._long_heads = LongHeads(NEVER)
        server.listen(port, "127.0.0.1")
        writers = []

        async def ask(head: str) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            writer.write(f"GET / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n{head}\r\n".encode())
            return await reader.read()

        try:
            async with asyncio.timeout(60):
                crowd = [asyncio.create_task(ask(LONG)) for _ in range(10)]
                await asyncio.wait(crowd, return_when=asyncio.FIRST_COMPLETED)
                return await ask("Cookie: of=ann\r\n"), [one.done() for one in crowd]
        finally:
            for one in writers:
                one.close()
            server.stop()  # and no more: who waits for a turn waits until the loop ends

    answer, are_answered = asyncio.run(main())
    assert answer.endswith(b"the answer")
    assert are_answered.count(True) == 1


def test_all_long_heads_have_their_turn() -> None:
    (port,) = find_free_ports([0])
    answered = count()

    async def main() -> None:
        server = BoundedServer(web.Application([("/", _Page)]))
        server.listen(port, "127.0.0.1")

        async def ask() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n{LONG}\r\n".encode())
            assert (await reader.read()).endswith(b"the answer")
            writer.close()
            next(answered)

        async with asyncio.timeout(60):
            await asyncio.gather(*(ask() for _ in range(5)))
        server.stop()
        await server.close_all_connections()

    asyncio.run(main())
    assert next(answered) == 5
