"""Whether whoever asked the page is still there."""

from tornado import web
from tornado.http1connection import HTTP1Connection
from tornado.iostream import IOStream


def has_left(visitor: web.RequestHandler | IOStream) -> bool:
    """Tell whether nobody waits for the answer of a request any more, or at the other end of a connection."""
    if isinstance(visitor, IOStream):
        return visitor.closed()
    connection = visitor.request.connection
    return isinstance(connection, HTTP1Connection) and connection.stream.closed()
