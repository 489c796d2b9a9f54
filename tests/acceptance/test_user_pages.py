"""The hub's pages as their user sees them: what is free and theirs, live, and what they do there themselves."""

import re

import pytest
from playwright.sync_api import expect

from tests.acceptance.hub import Hub
from tests.acceptance.hub_pages import logged_in, open_page
from tests.acceptance.played_pool import PlayedPool

pytestmark = pytest.mark.browser


def test_a_user_sees_at_once_what_is_free_what_is_idle_and_what_is_theirs(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "ada") as page:
        open_page(hub, page, "now")
        expect(page.get_by_role("status")).to_have_text(
            re.compile(r"^1 of 8 GPUs free, 1 reserved but idle, 1 kept ready, \d waiting\.$")
        )
        expect(page.locator(".slot.idle")).to_contain_text("idle")
        expect(page.locator(".slot.idle")).to_contain_text("someone else")
        expect(page.locator(".slot.mine")).to_have_count(2)
        expect(page.locator(".slot.mine", has_text="resnet-50")).to_have_count(1)
        cut = "[...document.querySelectorAll('.slot .state')].filter(one => one.scrollWidth > one.clientWidth).length"
        assert page.evaluate(cut) == 0, "what a GPU does can be read"
        for word in ("bob", "vic", "eve", "segmentation"):
            expect(page.locator("#app")).not_to_contain_text(word)


def test_the_page_is_live_and_keeps_where_the_reader_is(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, pool = busy_pool
    with logged_in(hub, "eve") as page:
        open_page(hub, page, "now")
        table = page.get_by_role("region", name="Who waits")
        table.focus()
        status = page.get_by_role("status")
        expect(status).to_contain_text("waiting")
        found = re.search(r"(\d+) waiting", status.inner_text())
        assert found is not None
        pool.ask("vic", "another", 4)
        expect(status).to_contain_text(f"{int(found[1]) + 1} waiting")
        expect(table).to_be_focused()


def test_by_keyboard_alone_somebody_stops_a_cell_of_theirs(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, pool = busy_pool
    with logged_in(hub, "ada") as page:
        open_page(hub, page, "me")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="To the content")).to_be_focused()
        page.keyboard.press("Enter")
        cancel = page.get_by_role("button", name="Cancel: resnet-50")
        for _ in range(10):
            page.keyboard.press("Tab")
            if cancel.evaluate("button => button === document.activeElement"):
                break
        expect(cancel).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Stop this cell")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="resnet-50 running")).to_be_hidden()
    pool.ask("ada", "resnet-50", 1)


def test_what_a_background_cell_needs_to_come_back_is_there_to_copy(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "ada") as page:
        open_page(hub, page, "me")
        mine = page.get_by_role("region", name="Without a notebook")
        card = page.locator("li.card", has_text="model.fit(train, epochs=90)")
        expect(card).to_contain_text("%gpu attach c-")
        expect(mine.or_(card).first).to_be_visible()
        expect(page.locator("#app")).to_contain_text("The GPU was idle 98% of the time")
        last = page.get_by_role("region", name="Last cells").first
        expect(last).to_contain_text("Half of your cells of the last 7 days waited for 3 min or less.")
        expect(last.get_by_role("columnheader", name="Waited")).to_be_visible()
