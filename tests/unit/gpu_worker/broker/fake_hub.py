"""A server with the two answers of the hub that the broker asks for."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCOPE = "access:services!service=bulletin"


class FakeHub(ThreadingHTTPServer):
    """The two answers of JupyterHub's API that the broker asks for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.users = {
            "ada-token": {"name": "ada", "kind": "user", "scopes": [SCOPE], "groups": []},
            "eve-token": {"name": "eve", "kind": "user", "scopes": ["access:servers!server=eve/"]},
            "svc-token": {"name": "cron", "kind": "service", "scopes": [SCOPE]},
        }
        self.groups = {"ada": ["ml", "bio"]}
        self.asked: list[str] = []
        self.status = 200

    def answer(self, path: str, token: str) -> tuple[int, object]:
        self.asked.append(path)
        if self.status != 200:
            return self.status, {}
        if path == "/hub/api/user":
            return (200, self.users[token]) if token in self.users else (403, {})
        name = path.rpartition("/")[2]
        return (200, {"name": name, "groups": self.groups.get(name, [])}) if token == "service" else (403, {})


class Answer(BaseHTTPRequestHandler):
    server: FakeHub

    def do_GET(self) -> None:
        status, body = self.server.answer(self.path, self.headers["Authorization"].removeprefix("token "))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        pass
