"""The page *Project* as its lead uses it: whose request is held, who is first, and who had which share."""

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.acceptance.hub import Hub
from tests.acceptance.hub_pages import is_for_everybody, logged_in, open_page
from tests.acceptance.played_pool import PlayedPool

pytestmark = pytest.mark.browser


def test_a_lead_holds_and_releases_a_members_request_on_the_page(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "liz") as page:
        open_page(hub, page, "project")
        table = page.get_by_role("region", name="Waiting", exact=True)
        table.get_by_role("button", name="Hold: ada, sweep").click()
        expect(table).to_contain_text("held by the lead of your project")
        table.get_by_role("button", name="Release: ada, sweep").click()
        expect(table).not_to_contain_text("held by the lead of your project")
        expect(page.get_by_role("region", name="Members").first).to_contain_text("bob")
    with logged_in(hub, "ada") as page:
        open_page(hub, page, "project")
        # The login has led back to it, and it stays with the project that it has opened on.
        expect(page).to_have_url(f"{hub.address}/services/bulletin/project?project=ml&by=day")
        expect(page.get_by_role("region", name="Members").first).to_contain_text("others")
        expect(page.locator("#app")).not_to_contain_text("bob")
        expect(page.get_by_role("button", name="Hold")).to_have_count(0)


def test_a_lead_puts_a_member_first_until_a_time_and_ends_it(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "liz") as page:
        open_page(hub, page, "project")
        part = page.get_by_role("region", name="First in line")
        part.get_by_label("Member").fill("ada")
        part.get_by_label("For").select_option("until a time")
        until_at = datetime.now().astimezone() + timedelta(days=9)  # the browser's clock is this one's
        part.locator("input[type=datetime-local]").fill(f"{until_at:%Y-%m-%dT%H:%M}")
        part.get_by_label("Why").fill("the thesis")
        part.get_by_role("button", name="Put first").click()
        card = part.locator("li.card")
        zone = page.evaluate("new Date().toLocaleTimeString([], {timeZoneName: 'short'})").split()[-1]
        expect(card).to_contain_text(re.compile(rf"Until .*\d.* {re.escape(zone)}, by liz: the thesis\."))
        is_for_everybody(page)
        card.get_by_role("button", name="End: first in line for ada").click()
        expect(card).to_have_count(0)
    with logged_in(hub, "ada") as page:
        open_page(hub, page, "project")
        expect(page.get_by_role("region", name="First in line")).to_have_count(0)


def test_who_leads_a_group_that_the_hub_has_later_leads_it(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    hub.api("POST", "/groups/later")
    with logged_in(hub, "liz") as page:
        open_page(hub, page, "project?project=later")
        expect(page.get_by_role("region", name="First in line")).to_be_visible()


def test_the_chart_says_the_same_as_a_table(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "liz") as page:
        open_page(hub, page, "project")
        for name in ("by hour", "by week", "by day"):
            page.get_by_role("radio", name=name).check()
            expect(page.locator(".chart canvas")).to_be_visible()
        page.get_by_text("As a table").click()
        rows = page.get_by_role("region", name="Share over time").first.get_by_role("row")
        expect(rows).to_have_count(15)
