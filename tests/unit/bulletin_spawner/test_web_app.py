"""What the page reads of somebody whom it does not know yet."""

import asyncio

import pytest

from bulletin_spawner.ports import find_free_ports
from bulletin_spawner.service.broker_client import BrokerClient
from bulletin_spawner.service.web_app import ServiceSettings, listen, make_app


@pytest.mark.parametrize(
    "head",
    [
        b"POST /pool/ HTTP/1.1\r\nHost: hub\r\nContent-Length: 100000000\r\n\r\n",
        b"POST /pool/ HTTP/1.1\r\nHost: hub\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    ],
    ids=["body", "header"],
)
def test_what_is_too_long_is_not_read(head: bytes, tmp_path) -> None:
    (port,) = find_free_ports([0])

    async def send() -> bytes:
        broker = BrokerClient(tmp_path / "connection.json")
        app = make_app(ServiceSettings(url=f"http://127.0.0.1:{port}", prefix="/pool/"), broker)
        server = listen(app, port, "127.0.0.1")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(head)
            async with asyncio.timeout(30):
                return await reader.read()  # until the page hangs up, though its client does not
        except ConnectionResetError:  # with part of it unread
            return b""
        finally:
            writer.close()
            server.stop()
            await server.close_all_connections()
            broker.close()

    answer = asyncio.run(send())
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
