"""What is behind an open page is started again: the page says so, keeps what it showed with its age, and goes on."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.conftest import tab
from tests.acceptance.hub import Hub
from tests.acceptance.played_pool import PlayedPool, played_pool

pytestmark = pytest.mark.browser

AS_OF = re.compile(r"What you see is as of \d+:\d\d:\d\d( [AP]M)?, \d+ s ago\. This page goes on by itself\.")


@pytest.fixture
def played(tmp_path: Path) -> Iterator[tuple[Hub, PlayedPool]]:
    """A GPU with a cell of ada's."""
    with played_pool(tmp_path) as (hub, pool):
        pool.add_node("gpu01", 1)
        pool.ask("ada", "resnet-50")
        yield hub, pool


def open_as_ada(page: Page, hub: Hub, name: str) -> None:
    page.goto(f"{hub.address}/hub/login?next=%2Fservices%2Fbulletin%2F{name}")
    page.fill("#username_input", "ada")
    page.fill("#password_input", (hub.run / "password").read_text())
    page.click("#login_submit")
    expect(page.locator("#app")).to_contain_text("resnet-50")


def shows_its_age(page: Page, why: str) -> None:
    """It says why, once, and of when that is what is still there to be read."""
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(why)
    assert alert.inner_text().count(why) == 1
    expect(page.locator(".troubles")).to_contain_text(AS_OF)
    expect(page.locator("#app")).to_contain_text("resnet-50")


def kill_service(hub: Hub) -> None:
    """End the hub's service as a fault would. The hub starts it again."""
    [service] = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and is_service(entry, str(hub.folder).encode())
    ]
    os.kill(service, signal.SIGKILL)


def is_service(process: Path, folder: bytes) -> bool:
    try:
        words = (process / "cmdline").read_bytes()
    except OSError:
        return False  # gone meanwhile
    return b"bulletin_spawner.service" in words and folder in words


def test_an_open_page_goes_on_by_itself_whatever_behind_it_is_started_again(played: tuple[Hub, PlayedPool]) -> None:
    hub, pool = played
    with tab(1280, 900) as page:
        open_as_ada(page, hub, "me")
        why = page.get_by_label("Why")
        why.fill("typed before")  # and it is there to the end: the page is not loaded anew
        with pool.silent_broker():
            shows_its_age(page, "The pool does not answer.")
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(page.locator(".troubles")).to_contain_text("Up to date again.")

        kill_service(hub)
        shows_its_age(page, "The service behind these pages does not answer: it may be starting again.")
        expect(page.get_by_role("alert")).to_have_count(0)

        hub.stop()
        shows_its_age(page, "The hub cannot be reached: it may be starting again, or you are not connected to it.")
        hub.start()
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(why).to_have_value("typed before")
        page.get_by_role("button", name="Cancel: resnet-50").click()  # what is done is done in the reader's name again
        page.get_by_role("button", name="Stop this cell").click()
        expect(page.get_by_role("heading", name="resnet-50 running")).to_be_hidden()
