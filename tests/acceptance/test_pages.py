"""The hub's pages in a real browser are for everybody: on a desk and on a phone, dark and light, with no script too."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.acceptance.conftest import PATIENCE_MS
from tests.acceptance.hub import Hub
from tests.acceptance.hub_pages import IMAGES, PAGES, SIZES, keep_picture, logged_in, open_page, serious
from tests.acceptance.played_pool import PlayedPool

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("user", ["ada", "liz", "admin"])
def test_every_page_is_for_everybody_and_fits_where_it_is_seen(
    busy_pool: tuple[Hub, PlayedPool], user: str, size: str
) -> None:
    hub, _ = busy_pool
    with logged_in(hub, user, size) as page:
        for name in PAGES:
            for scheme in ("dark", "light"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                open_page(hub, page, name)
                assert serious(page) == [], f"{name} in {scheme}"
            assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0], name
            if (user, name) in (("ada", "now"), ("ada", "me"), ("liz", "project")):
                keep_picture(page, f"{name}_{size}")


@pytest.mark.parametrize(("user", "name"), [("ada", "me"), ("liz", "project"), ("admin", "quotas")])
def test_where_a_page_is_narrowest_wide_tables_are_cards_and_nothing_is_read_sideways(
    busy_pool: tuple[Hub, PlayedPool], user: str, name: str
) -> None:
    hub, _ = busy_pool
    with logged_in(hub, user) as page:
        page.set_viewport_size({"width": 320, "height": 640})
        open_page(hub, page, name)
        expect(page.locator(".wide:visible").first).to_be_visible()
        wider = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth)"
        assert page.evaluate(f"{wider}.map(one => one.getAttribute('aria-label'))") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        lines = "[...document.querySelectorAll('header nav a')].map(one => Math.round(one.offsetHeight / 24))"
        assert set(page.evaluate(lines)) == {2}, "the names of pages are whole words: a line, and the space around it"
        assert serious(page) == []
        if name == "me":
            last = page.get_by_role("table")
            shown = last.locator("td[data-column=Ended]")
            expect(shown).to_have_count(5)
            page.get_by_role("button", name="Show more: Last cells").click()
            expect(shown.nth(20)).to_be_visible()
            page.get_by_role("button", name="Show fewer: Last cells").click()
            expect(shown).to_have_count(5)
            expect(last.get_by_role("columnheader", name="Waited")).to_be_attached()
            assert last.get_by_role("row").nth(1).get_by_role("cell").count() > 6
            first = last.get_by_role("row").nth(1).locator("[data-column=Waited]")
            assert first.evaluate("cell => getComputedStyle(cell, '::before').content") == '"Waited"'


def test_names_as_long_as_they_may_be_fit_a_phone(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    name, project = "x" * 100, "p" * 120
    hub.make_user(name)
    hub.api("POST", f"/groups/{project}")
    for group in (project, "guests"):
        hub.api("POST", f"/groups/{group}/users", {"users": [name]})
    with logged_in(hub, name, "phone") as page:
        for shown in PAGES:
            open_page(hub, page, shown)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{shown} is wider"
        expect(page.locator("select option", has_text=project)).to_have_count(1)


def test_without_a_script_who_holds_what_and_who_waits_can_be_read(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "ada") as page:
        open_page(hub, page, "now")
        assert page.context.browser is not None
        plain = page.context.browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state())
        now = plain.new_page()
        now.goto(f"{hub.address}/services/bulletin/", timeout=PATIENCE_MS)
        expect(now.get_by_role("region", name="GPUs").get_by_role("row")).to_have_count(9)
        expect(now.get_by_role("region", name="Waiting", exact=True).get_by_role("row").nth(1)).to_be_visible()
        answer = now.goto(f"{hub.address}/services/bulletin/me", timeout=PATIENCE_MS)
        assert answer is not None
        assert "This page needs JavaScript" in answer.text()


def test_pictures_in_the_docs_are_small() -> None:
    pictures: list[Path] = sorted(IMAGES.glob("page_*.png"))
    assert len(pictures) == 7
    assert [one.name for one in pictures if one.stat().st_size > 150_000] == []
