"""A page is opened while the hub does not say who its reader is: it says so, and opens by itself when the hub does."""

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import expect

from bulletin_spawner.ports import find_free_ports
from tests.acceptance.conftest import tab
from tests.waiting import until

pytestmark = pytest.mark.browser

ADA = {
    "kind": "user",
    "name": "ada",
    "admin": False,
    "groups": [],
    "scopes": ["access:services!service=bulletin"],
    "session_id": None,
}


class Answers(BaseHTTPRequestHandler):
    """What a hub says of each token: it is ada's."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(ADA).encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def hub_at(port: int) -> Iterator[None]:
    server = HTTPServer(("127.0.0.1", port), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def service_of(hub_port: int, folder: Path) -> Iterator[str]:
    """The pages' service alone, with the address of its pages: its hub and its pool may be away."""
    (port,) = find_free_ports([0])
    address = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "JUPYTERHUB_SERVICE_URL": address,
        "JUPYTERHUB_SERVICE_PREFIX": "/services/bulletin/",
        "JUPYTERHUB_API_URL": f"http://127.0.0.1:{hub_port}/hub/api",
        "JUPYTERHUB_API_TOKEN": "of-the-service",
        "JUPYTERHUB_CLIENT_ID": "service-bulletin",
        "JUPYTERHUB_OAUTH_ACCESS_SCOPES": json.dumps(ADA["scopes"]),
    }
    command = [sys.executable, "-m", "bulletin_spawner.service", "--no-pool", "--folder", str(folder)]
    service = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    try:
        pages = f"{address}/services/bulletin/"
        until(lambda: answers(f"{pages}health"), "the service to be up")
        yield pages
    finally:
        service.terminate()
        service.wait(timeout=60)


def answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except urllib.error.HTTPError as error:
        error.close()  # without a pool that is its answer
    except OSError:
        return False
    return True


@pytest.mark.parametrize("name", ["", "me"])
def test_a_page_opened_while_the_hub_is_away_says_so_and_opens_when_it_is_back(name: str, tmp_path: Path) -> None:
    (hub_port,) = find_free_ports([0])
    with service_of(hub_port, tmp_path) as pages, tab(390, 844) as page:
        page.set_extra_http_headers({"Authorization": "token of-ada"})
        page.goto(pages + name)
        expect(page.get_by_role("heading", name="The hub does not answer")).to_be_visible()
        expect(page.get_by_role("alert")).to_contain_text("This page looks again by itself")
        with hub_at(hub_port):
            expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
            expect(page.get_by_role("alert").first).to_contain_text(
                "pool"
            )  # which is away, too: that is another matter
            expect(page).to_have_url(pages + name)
