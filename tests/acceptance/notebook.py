"""A notebook kernel behind the hub, spoken to as a browser does: over the server's REST and websocket."""

import json
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import websocket

from tests.acceptance.hub import Hub

ANSWER_S = 120.0


class Run:
    """One cell that was sent: its outputs so far, as text."""

    def __init__(self, kernel: "Kernel", message: str) -> None:
        self._kernel, self.message = kernel, message
        self.text = ""
        self.mime_types: set[str] = set()
        self.error: str | None = None
        self.is_done = False

    def wait(self, until: Callable[["Run"], bool] = lambda run: run.is_done) -> Self:
        """Take in outputs until a condition holds; fails with what came if that takes too long."""
        deadline = time.monotonic() + ANSWER_S
        while not until(self):
            assert not self.is_done, f"the cell ended before that:\n{self.text}\n{self.error}"
            assert time.monotonic() < deadline, f"after {ANSWER_S:.0f} s there is only:\n{self.text}\n{self.error}"
            self._kernel.take_one()
        return self

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """One message of the cell."""
        match kind:
            case "stream":
                self.text += content["text"]
            case "display_data" | "execute_result" | "update_display_data":
                self.mime_types |= set(content["data"])
                self.text += content["data"].get("text/plain", "") + "\n"
            case "error":
                self.error = "\n".join(content["traceback"]) or f"{content['ename']}: {content['evalue']}"
            case "status" if content["execution_state"] == "idle":
                self.is_done = True


class Kernel:
    """A fresh kernel of a user's server; gone with its `with` block."""

    def __init__(self, hub: Hub, user: str) -> None:
        self._hub, self._base = hub, f"/user/{user}/api"
        self._token = hub.token_of(user)
        self._runs: dict[str, Run] = {}

    def __enter__(self) -> Self:
        self._id = self._hub.api("POST", "/kernels", {"name": "python3"}, self._token, self._base)["id"]
        self._socket = websocket.create_connection(
            f"{self._hub.address.replace('http', 'ws', 1)}{self._base}/kernels/{self._id}/channels",
            header=[f"Authorization: token {self._token}"],
            timeout=ANSWER_S,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._socket.close()
        self._hub.api("DELETE", f"/kernels/{self._id}", None, self._token, self._base)

    def restart(self) -> None:
        """Restart it, as Jupyter's button does."""
        self._hub.api("POST", f"/kernels/{self._id}/restart", None, self._token, self._base)

    def send(self, code: str) -> Run:
        """Run a cell; what it prints is in the Run as it is awaited."""
        message = uuid.uuid4().hex
        header = {
            "msg_id": message,
            "msg_type": "execute_request",
            "username": "",
            "session": self._id,
            "version": "5.3",
        }
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        self._runs[message] = Run(self, message)
        self._socket.send(
            json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"})
        )
        return self._runs[message]

    def run(self, code: str) -> str:
        """What a cell prints. Fails if it raises."""
        run = self.send(code).wait()
        assert run.error is None, run.error
        return run.text

    def take_one(self) -> None:
        """Wait for one message of the kernel and give it to its cell."""
        message = json.loads(self._socket.recv())
        run = self._runs.get(message["parent_header"].get("msg_id", ""))
        if run is not None and message["channel"] == "iopub":
            run.take(message["header"]["msg_type"], message["content"])
