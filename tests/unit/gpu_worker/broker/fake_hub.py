"""A server with the answers of the hub that the broker asks for."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

SCOPE = "access:services!service=bulletin"


class FakeHub(ThreadingHTTPServer):
    """The answers of JupyterHub's API that the broker asks for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.users: dict[str, dict[str, Any]] = {
            "ada-token": {"name": "ada", "kind": "user", "scopes": [SCOPE], "groups": []},
            "eve-token": {"name": "eve", "kind": "user", "scopes": ["access:servers!server=eve/"]},
            "service": {"name": "bulletin", "kind": "service", "scopes": ["read:users:name", "read:users:groups"]},
            "svc-token": {"name": "cron", "kind": "service", "scopes": [SCOPE]},
        }
        self.groups = {"ada": ["ml", "bio"]}
        #: Of groups that it shows to the service; others it does not.
        self.group_properties: dict[str, dict[str, Any]] = {}
        self.admins: set[str] = set()
        #: Whose answer is longer than anybody reads.
        self.long: set[str] = set()
        #: Who was a user of it.
        self.left: set[str] = set()
        self.asked: list[str] = []
        self.status = 200
        #: Where it sends all who ask; and what it says instead of what it is asked for.
        self.elsewhere, self.body = "", b""
        #: Seconds from one byte of an answer to the next.
        self.pause_s = 0.0
        #: While this is not set, the hub answers about no token.
        self.answers = threading.Event()
        self.asks = threading.Event()
        self.answers.set()

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Answer, in a thread, until the end of the block."""
        thread = threading.Thread(target=self.serve_forever)
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()
            thread.join()

    def serve_forever(self, poll_interval: float = 0.02) -> None:
        """Serve until `shutdown`, which waits for the end of an interval: each test of a hub ends with it."""
        super().serve_forever(poll_interval)

    def answer(self, path: str, token: str) -> tuple[int, object]:
        self.asked.append(path)
        self.asks.set()
        self.answers.wait()
        if self.status != 200:
            return self.status, {}
        if path == "/hub/api/user":
            padding = {"servers": {"": {"user_options": "x" * 20_000_000}}} if token in self.long else {}
            return (200, {**self.users[token], **padding}) if token in self.users else (403, {})
        name = path.rpartition("/")[2]
        if path.startswith("/hub/api/groups/"):
            known = self.group_properties.get(unquote(name))
            return (403, {}) if known is None or token != "service" else (200, {"name": name, "properties": known})
        if name in self.left:
            return 404, {}
        return (200, self._full_model(name)) if token == "service" else (403, {})

    def _full_model(self, name: str) -> dict[str, object]:
        groups = {"groups": self.groups.get(name, [])}
        shown = groups if "read:users:groups" in self.users["service"]["scopes"] else {}
        return {"name": name, "admin": name in self.admins, **shown}


class Answer(BaseHTTPRequestHandler):
    server: FakeHub

    def do_GET(self) -> None:
        status, body = self.server.answer(self.path, self.headers["Authorization"].removeprefix("token "))
        self.send_response(302 if self.server.elsewhere else status)
        if self.server.elsewhere:
            self.send_header("Location", self.server.elsewhere + self.path)
        self.end_headers()
        said = self.server.body or json.dumps(body).encode()
        if not self.server.pause_s:
            self.wfile.write(said)
            return
        with contextlib.suppress(OSError):  # nobody listens any more
            for byte in said:
                self.wfile.write(bytes([byte]))
                time.sleep(self.server.pause_s)

    def log_message(self, *_: object) -> None:
        pass
