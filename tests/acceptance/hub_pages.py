"""The hub's pages as people open them in a browser: logged in, on a desk or a phone, read by axe, and as pictures."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from PIL import Image
from playwright.sync_api import Page, expect

from tests.acceptance.conftest import tab
from tests.acceptance.hub import REPOSITORY, Hub

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
PAGES = {"now": "", "me": "me", "project": "project"}
IMAGES = REPOSITORY / "docs" / "images"
_AXE = REPOSITORY / "node_modules" / "axe-core" / "axe.min.js"


@contextmanager
def logged_in(hub: Hub, user: str, size: str = "desk", *, is_refused: bool = False) -> Iterator[Page]:
    """A tab of this user, whose errors are the test's, unless something is to be refused."""
    with tab(*SIZES[size]) as page:
        problems: list[str] = []
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{hub.address}/hub/login?next=%2Fhub%2Ftoken")
        page.fill("#username_input", user)
        page.fill("#password_input", (hub.run / ("admin-password" if user == "admin" else "password")).read_text())
        page.click("#login_submit")
        page.wait_for_url("**/hub/token**")
        problems.clear()  # those of the hub's own page
        yield page
        assert is_refused or problems == []


def open_page(hub: Hub, page: Page, name: str) -> None:
    """Open a page and wait until what it shows is there."""
    page.goto(f"{hub.address}/services/bulletin/{PAGES.get(name, name)}")
    expect(page.locator("#app section").first).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def keep_picture(page: Page, name: str) -> None:
    """Keep what is seen in the docs, where that is asked for."""
    if os.environ.get("BULLETIN_SCREENSHOTS"):
        taken = page.screenshot(full_page=True)
        picture = Image.open(io.BytesIO(taken)).convert("RGB")
        height = min(picture.height, 2 * picture.width if "desk" in name else 5 * picture.width)
        picture = picture.crop((0, 0, picture.width, height)).quantize(64, dither=Image.Dither.NONE)
        picture.save(IMAGES / f"page_{name}.png", optimize=True)


def serious(page: Page) -> list[Any]:
    """What axe finds that keeps people out, and where."""
    page.evaluate(_AXE.read_text())
    found = page.evaluate("async () => (await axe.run()).violations")
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def is_for_everybody(page: Page, size: str = "desk") -> None:
    """What is shown now has nothing that keeps people out, in both schemes, and is no wider than the window."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert serious(page) == [], scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
