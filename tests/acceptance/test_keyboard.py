"""The hub's pages by keys alone: what has the focus is seen and named, in order, and the main deeds are done."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.conftest import tab
from tests.acceptance.hub import Hub
from tests.acceptance.played_pool import PlayedPool, played_pool

pytestmark = pytest.mark.browser

BASE = "/services/bulletin"
PAGES = {
    "ada": ("", "me", "project", "quotas"),
    "liz": ("", "me", "project", "quotas"),
    "admin": ("", "me", "project", "quotas", "admin"),
}
MOST_STOPS = 150
#: What has the focus: its name, whether a ring is around it (of a date the browser itself rings the part that has it),
#: whether it is in the window and nothing lies upon it, and where in the document it is.
STOP = """() => {
    const one = document.activeElement;
    if (!one || one === document.body) return null;
    const style = getComputedStyle(one), box = one.getBoundingClientRect();
    const shown = document.elementFromPoint(box.x + Math.min(box.width, innerWidth) / 2, box.y + box.height / 2);
    const all = [...document.querySelectorAll('*')];
    const labels = [...(one.labels ?? [])].map(label => label.textContent).join(' ');
    return {
        name: (one.getAttribute('aria-label') || labels || one.textContent || '').trim(),
        html: one.outerHTML.slice(0, 150),
        has_ring: one.type === 'date' || style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        is_seen: box.width > 0 && shown !== null && (one.contains(shown) || [...(one.labels ?? [])].includes(shown)),
        place: all.indexOf(one),
    };
}"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, PlayedPool]]:
    """Four GPUs with cells of ada and bob, and one of ada's that waits."""
    with played_pool(tmp_path_factory.mktemp("keyboard")) as (hub, pool):
        pool.add_node("gpu01", 4)
        for user, label, gpus in (("ada", "resnet-50", 1), ("bob", "ablation", 2), ("ada", "sweep", 4)):
            pool.ask(user, label, gpus)
        yield hub, pool


@contextmanager
def opened(hub: Hub, user: str, name: str) -> Iterator[Page]:
    """A page of this user, who has logged in, with nothing in focus yet."""
    with tab(1280, 900) as page:
        page.goto(f"{hub.address}/hub/login?next=%2Fhub%2Ftoken")
        page.fill("#username_input", user)
        page.fill("#password_input", (hub.run / ("admin-password" if user == "admin" else "password")).read_text())
        page.keyboard.press("Enter")
        page.wait_for_url("**/hub/token**")
        show(hub, page, name)
        yield page


def show(hub: Hub, page: Page, name: str) -> None:
    page.goto(f"{hub.address}{BASE}/{name}")
    expect(page.locator("#app section").first).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def go_to(page: Page, target: Locator, key: str = "Tab") -> None:
    """Press a key until the focus is there."""
    expect(target).to_have_count(1)
    for _ in range(MOST_STOPS):
        if target.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not lead to {target}")


def stops(page: Page) -> list[dict[str, Any]]:
    """Where the focus goes by Tab, from the beginning to the end of the page."""
    found: list[dict[str, Any]] = []
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop is None or (found and stop["place"] <= found[0]["place"]):
            return found
        found.append(stop)
    raise AssertionError(f"after {MOST_STOPS} stops there is no end: {found[-1]}")


@pytest.mark.parametrize("user", PAGES)
def test_what_has_the_focus_is_seen_and_named_and_goes_down_the_page(played: tuple[Hub, PlayedPool], user: str) -> None:
    hub, _ = played
    with opened(hub, user, "") as page:
        for name in PAGES[user]:
            show(hub, page, name)
            found = stops(page)
            assert found[0]["name"] == "To the content", name
            places = [stop["place"] for stop in found]
            assert places == sorted(places), f"{name}: not in the order of the page"
            wrong = [stop["html"] for stop in found if not (stop["name"] and stop["has_ring"] and stop["is_seen"])]
            assert wrong == [], f"{name} of {user}"


def test_a_student_stops_a_cell_of_theirs_and_is_not_lost(played: tuple[Hub, PlayedPool]) -> None:
    hub, pool = played
    with opened(hub, "ada", "me") as page:
        press(page, "Tab", "Enter")  # past the menu
        cancel = page.get_by_role("button", name="Cancel: resnet-50")
        go_to(page, cancel)
        press(page, "Enter")
        expect(page.get_by_role("button", name="Stop this cell")).to_be_focused()
        press(page, "Escape")
        expect(cancel).to_be_focused()
        press(page, "Enter")
        expect(page.get_by_role("button", name="Stop this cell")).to_be_focused()
        press(page, "Enter")
        expect(page.get_by_role("heading", name="resnet-50 running")).to_be_hidden()
        expect(page.get_by_role("region", name="Running and kept ready")).to_be_focused()
        go_to(page, page.get_by_role("button", name="Withdraw: sweep"))
    pool.ask("ada", "resnet-50", 1)


def test_a_lead_decides_what_a_member_asked_for_and_is_at_the_next_one(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
    for hours in (2, 3):
        body = {"project": "ml", "why": f"a run of {hours} h", "for_ms": 3_600_000, "walltime_ms": hours * 3_600_000}
        hub.api("POST", "/api/v1/allowances", body, token=hub.token_of("ada"), base=BASE)
    with opened(hub, "liz", "project?project=ml") as page:
        part = page.get_by_role("region", name="Asked for")
        card = part.get_by_role("listitem").filter(has_text="a run of 2 h")
        go_to(page, card.get_by_label("Say"))
        page.keyboard.type("good luck")
        go_to(page, card.get_by_role("button", name="Grant: ada"))
        press(page, "Enter")
        expect(card).to_contain_text(re.compile(r"Granted by liz until .*: good luck"))
        expect(part).to_be_focused()
        other = part.get_by_role("listitem").filter(has_text="a run of 3 h")
        go_to(page, other.get_by_role("button", name="Decline: ada"))
        press(page, "Enter")
        expect(part.get_by_role("button", name="Decline: ada")).to_have_count(0)


def test_an_admin_changes_a_quota_previews_saves_and_takes_it_back(played: tuple[Hub, PlayedPool]) -> None:
    hub, pool = played
    file = Path(pool.folder / "quotas.toml")
    before = file.read_text()
    with opened(hub, "admin", "quotas") as page:
        go_to(page, page.locator("summary", has_text=re.compile("^guests guaranteed 2")))
        press(page, "Enter")
        go_to(page, page.get_by_label("projects guests limit", exact=True))
        page.keyboard.type("2")
        go_to(page, page.get_by_label("Why"))
        page.keyboard.type("by keys")
        preview = page.get_by_role("button", name="Preview")
        go_to(page, preview)
        press(page, "Enter")
        expect(page.get_by_role("heading", name="What the last week would have been")).to_be_visible()
        expect(preview).to_be_focused()
        save = page.get_by_role("button", name="Save", exact=True)
        go_to(page, save)
        press(page, "Enter")
        expect(page.get_by_text("In force.")).to_be_visible()
        expect(save).to_be_focused()
        assert "limit = 2" in file.read_text()
        go_to(page, page.get_by_role("button", name="Undo the last change"))
        press(page, "Enter")
        expect(page.get_by_text("Undone.")).to_be_visible()
        expect(page.get_by_role("button", name="Undo the last change")).to_be_focused()
        assert file.read_text() == before


def test_an_admin_thinks_better_of_draining_a_node(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
    with opened(hub, "admin", "admin") as page:
        drain = page.get_by_role("button", name="Drain: gpu01")
        go_to(page, drain)
        press(page, "Space")
        expect(page.get_by_role("button", name="Drain gpu01 now")).to_be_focused()
        press(page, "Escape")
        expect(drain).to_be_focused()
        go_to(page, page.get_by_role("link", name="Now"), "Shift+Tab")
        press(page, "Enter")
        expect(page.get_by_role("region", name="GPUs")).to_be_visible()
