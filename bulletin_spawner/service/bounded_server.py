"""The page's server: so many connections at most, and of more those go that nobody is known by.

Where no descriptor is left, Tornado tries to accept again and again, and logs each time.
"""

from typing import Any

from tornado import web
from tornado.http1connection import HTTP1Connection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from bulletin_spawner.service.long_heads import LongHeads

#: So many connections of one reader are kept before others'.
_MOST_OF_READER = 32


class BoundedServer(HTTPServer):
    """Of too many connections the oldest goes: answers take moments, and who waits says nothing.

    Half of them are for readers whom the hub knows: no crowd of strangers ends these while the broker is asked.
    """

    def initialize(self, *arguments: Any, most_connections: int = 512, **limits: Any) -> None:
        """Take how many connections there may be."""
        super().initialize(*arguments, **limits)
        self._most_connections, self._long_heads = most_connections, LongHeads()
        #: With the reader who was known last by it, if one was. The oldest first.
        self._streams: dict[IOStream, str] = {}

    def handle_stream(self, stream: IOStream, address: tuple[object, ...]) -> None:
        """Take in a connection."""
        self._streams[stream] = ""
        while len(self._streams) > self._most_connections:
            one = self._choose()
            del self._streams[one]
            one.close()
        self._long_heads.watch(stream)
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Forget a connection that has ended."""
        self._streams.pop(server_conn.stream, None)  # type: ignore[attr-defined]  # what Tornado passes has it
        super().on_close(server_conn)

    def note_reader(self, stream: IOStream, reader: str) -> None:
        """Take note of who asks by a connection."""
        if self._streams.get(stream, reader) != reader:
            is_one_more = sum(one == reader for one in self._streams.values()) >= _MOST_OF_READER
            self._streams[stream] = "" if is_one_more else reader

    def _choose(self) -> IOStream:
        strangers = [one for one, reader in self._streams.items() if not reader]
        if len(strangers) > self._most_connections // 2:
            return strangers[0]
        return next(one for one, reader in self._streams.items() if reader)


def note_reader(handler: web.RequestHandler, reader: str) -> None:
    """Let the connection that a request came by be kept before those of strangers."""
    server, connection = handler.settings.get("server"), handler.request.connection
    if isinstance(server, BoundedServer) and isinstance(connection, HTTP1Connection):
        server.note_reader(connection.stream, reader)
