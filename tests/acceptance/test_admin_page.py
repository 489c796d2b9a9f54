"""The page *Admin*: nodes that are emptied, files of usage, and what everybody is told."""

import codecs
import re

import pytest
from playwright.sync_api import expect

from bulletin.wire import messages as wire
from tests.acceptance.hub import Hub
from tests.acceptance.hub_pages import (
    PAGES,
    SIZES,
    is_for_everybody,
    keep_picture,
    logged_in,
    open_page,
)
from tests.acceptance.played_pool import PlayedNotebook, PlayedPool
from tests.waiting import until

pytestmark = pytest.mark.browser


def test_an_admin_plans_to_empty_a_node_with_a_reason_takes_it_back_and_downloads_usage(
    busy_pool: tuple[Hub, PlayedPool],
) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "admin") as page:
        open_page(hub, page, "now")
        page.get_by_role("link", name="Admin").click()
        card = page.locator("li.card", has=page.get_by_role("heading", name=re.compile("^gpu02")))
        card.get_by_label("When").select_option("in 4 hours")
        card.get_by_label("Why").fill("a new disk")
        card.get_by_role("button", name="Drain: gpu02").click()
        card.get_by_role("button", name="Plan it for gpu02").click()
        expect(card.get_by_role("status")).to_have_text(
            "gpu02 is drained in 4 h: until then it is given only cells that are over by then."
        )
        expect(card.get_by_role("heading")).to_have_text(re.compile(r"^gpu02 drained from .*\d.* on: a new disk$"))
        page.get_by_role("link", name="Now").click()
        expect(page.get_by_label("Node gpu02")).to_contain_text(re.compile(r"drained from .*\d.* on: a new disk"))
        page.get_by_role("link", name="Admin").click()
        is_for_everybody(page)
        keep_picture(page, "admin_desk")
        page.set_viewport_size({"width": SIZES["phone"][0], "height": SIZES["phone"][1]})
        is_for_everybody(page, "phone")
        form = page.get_by_role("region", name="Usage for a spreadsheet")
        form.get_by_label("By").select_option("label")
        with page.expect_download() as download:
            form.get_by_role("button", name="Download").click()
        assert download.value.suggested_filename.startswith("usage-by-label-")
        assert "\nsegmentation,gpu," in download.value.path().read_text()
        card.get_by_role("button", name="Give back: gpu02").click()
        expect(card.get_by_role("status")).to_have_text("gpu02 is given cells again.")
        expect(card.get_by_role("heading")).to_contain_text("given cells")


def test_the_file_of_usage_opens_in_a_spreadsheet_with_times_that_can_be_read(
    busy_pool: tuple[Hub, PlayedPool],
) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "admin") as page:
        open_page(hub, page, "admin")
        form = page.get_by_role("region", name="Usage for a spreadsheet")
        form.get_by_label("From").fill("2026-01-01")
        form.get_by_label("To").fill("2026-01-31")
        with page.expect_download() as download:
            form.get_by_role("button", name="Download").click()
        assert download.value.path().read_bytes().startswith(codecs.BOM_UTF8)
        head = download.value.path().read_text("utf-8-sig").splitlines()[0]
        assert head.startswith("of,kind,from_ms,until_ms,")
        assert head.endswith(",from_utc,until_utc")


def test_who_thinks_better_of_it_by_keyboard_is_back_at_the_button(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "admin") as page:
        open_page(hub, page, "admin")
        drain = page.get_by_role("button", name="Drain: gpu01")
        for leave in ("Escape", "Tab Enter"):
            drain.focus()
            page.keyboard.press("Enter")
            expect(page.get_by_role("button", name="Drain gpu01 now")).to_be_focused()
            for key in leave.split():
                page.keyboard.press(key)
            expect(drain).to_be_focused()
        expect(page.get_by_role("heading", name="gpu01")).to_contain_text("given cells")


def test_what_an_admin_announces_everybody_reads_on_each_page_until_it_is_taken_back(
    busy_pool: tuple[Hub, PlayedPool],
) -> None:
    hub, pool = busy_pool
    waiting = pool.ask("eve", "for the announcement", 4)
    with logged_in(hub, "admin") as page:
        open_page(hub, page, "admin")
        form = page.get_by_role("region", name="Announcement")
        form.get_by_label("Sentence").fill("gpu01 is <b>away</b> from 18:00 on")
        form.get_by_role("button", name="Announce").click()
        expect(form.locator(".card")).to_contain_text("By admin, until")
        is_for_everybody(page)
        until(lambda: len(announced(waiting)) == 1, "who waits to hear of it")
    with logged_in(hub, "ada") as page:
        for name in PAGES:
            open_page(hub, page, name)
            expect(page.locator(".announcement")).to_have_text("admin: gpu01 is <b>away</b> from 18:00 on")
        is_for_everybody(page)
    hub.api("DELETE", "/api/v1/announcement", token=hub.token_of("admin"), base="/services/bulletin")
    with logged_in(hub, "admin") as page:
        open_page(hub, page, "admin")
        expect(page.locator(".announcement")).to_have_count(0)
        expect(page.get_by_role("button", name="Take back")).to_have_count(0)
    assert announced(waiting) == ["Announcement by admin: gpu01 is <b>away</b> from 18:00 on"], "once, not each second"


def announced(notebook: PlayedNotebook) -> list[str]:
    """What a notebook that waits was told of announcements."""
    queued = [one for one in notebook.heard if isinstance(one, wire.Queued)]
    return [one.announcement for one in queued if one.announcement]


def test_who_is_no_admin_finds_nothing_to_do_on_the_page_for_admins(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "liz") as page:
        open_page(hub, page, "now")
        expect(page.get_by_role("link", name="Quotas")).to_be_visible()
        expect(page.get_by_role("link", name="Admin")).to_have_count(0)
        open_page(hub, page, "admin")
        expect(page.locator("#app")).to_contain_text("This page is for admins of the pool.")
        expect(page.get_by_role("button")).to_have_count(0)
