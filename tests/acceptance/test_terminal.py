"""A terminal of the hub of `make.py run`: the commands of its environment are there."""

import json
import time

import websocket

from tests.acceptance.hub import Hub
from tests.acceptance.notebook import ANSWER_S


def test_a_terminal_finds_the_commands_that_the_docs_name(hub: Hub) -> None:
    hub.start_server("ada")
    token, base = hub.token_of("ada"), "/user/ada/api"
    name = hub.api("POST", "/terminals", {}, token, base)["name"]
    try:
        terminal = websocket.create_connection(
            f"{hub.address.replace('http', 'ws', 1)}/user/ada/terminals/websocket/{name}",
            header=[f"Authorization: token {token}"],
            timeout=ANSWER_S,
        )
        terminal.send(json.dumps(["stdin", "bulletin status; echo the end is $?\r"]))
        shown, deadline = "", time.monotonic() + ANSWER_S
        while "the end is " not in shown.replace("the end is $?", ""):
            assert time.monotonic() < deadline, shown
            kind, *said = json.loads(terminal.recv())
            shown += said[0] if kind == "stdout" else ""
        terminal.close()
    finally:
        hub.api("DELETE", f"/terminals/{name}", None, token, base)
    assert "the end is 0" in shown, shown
    assert "CPU slot" in shown
