"""The hub's pages in a real browser: as a user, a lead, an admin and an outsider, on a desk and on a phone."""

import codecs
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from bulletin.wire import messages as wire
from tests.acceptance.conftest import PATIENCE_MS, tab
from tests.acceptance.hub import REPOSITORY, Hub
from tests.acceptance.played_pool import PlayedNotebook, PlayedPool, played_pool
from tests.waiting import until

pytestmark = pytest.mark.browser

AXE = REPOSITORY / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
PAGES = {"now": "", "me": "me", "project": "project"}
IMAGES = REPOSITORY / "docs" / "images"
MINUTE_MS = 60_000
#: What a page of another site may try, with what the browser has of the reader's; what it could read is returned.
FROM_ELSEWHERE = """async ([read, change]) => {
    const seen = [];
    document.cookie = "_xsrf=guess; path=/";
    for (const headers of [{}, {"X-XSRFToken": "guess"}])
        for (const method of ["GET", "POST"])
            try {
                const url = method == "GET" ? read : change;
                seen.push(await (await fetch(url, {method, credentials: "include", headers})).text());
            } catch { }
    // It is sent, and what is answered is kept from other sites.
    await fetch(change, {method: "POST", mode: "no-cors", credentials: "include", body: "{}"}).catch(() => null);
    return seen;
}"""
FORM_FROM_ELSEWHERE = """(change) => {
    const [form] = document.forms;
    form.action = change + "?_xsrf=guess";
    form.enctype = "text/plain";
    form.innerHTML = "<input name=_xsrf value=guess>";
    form.submit();
}"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, PlayedPool]]:
    """Eight GPUs: cells of four people, one of which holds a GPU and does nothing, a hot session, and a line."""
    with played_pool(tmp_path_factory.mktemp("pages")) as (hub, pool):
        nodes = [pool.add_node("gpu01", 4, running_ms=14 * MINUTE_MS), pool.add_node("gpu02", 4, 27 * MINUTE_MS)]
        for user, label, gpus in (
            ("ada", "resnet-50", 1),
            ("bob", "ablation", 2),
            ("vic", "segmentation", 1),
            ("eve", "", 1),
            ("ada", "background", 1),
            ("bob", "warm-up", 1),
        ):
            pool.ask(user, label, gpus)
        for node in nodes:
            for number, slot in enumerate(node.slots):
                node.uses[slot] = (93 - 11 * number, (20 + 7 * number) * 10**9, 0)
            for lease in list(node.leases.values()):
                if lease.user == "vic":
                    node.uses.update(dict.fromkeys(lease.slots, (0, 2 * 10**9, 17 * MINUTE_MS)))
                if lease.label == "warm-up":
                    node.uses.update(dict.fromkeys(lease.slots, (0, 10**9, 0)))
                    node.end_cell(lease.lease)
        for user, label, gpus in (("eve", "", 4), ("bob", "ablation", 4), ("ada", "sweep", 4)):
            pool.ask(user, label, gpus)
        token = hub.token_of("ada")
        # A GPU is said to be idle when its cell has done nothing for a minute.
        until(
            lambda: hub.api("GET", "/api/v1/now", token=token, base="/services/bulletin")["counts"]["idle"] == 1,
            "the GPU that does nothing to be said to be idle",
        )
        yield hub, pool


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
    page.evaluate(AXE.read_text())
    found = page.evaluate("async () => (await axe.run()).violations")
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("user", ["ada", "liz", "admin"])
def test_every_page_is_for_everybody_and_fits_where_it_is_seen(
    played: tuple[Hub, PlayedPool], user: str, size: str
) -> None:
    hub, _ = played
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
    played: tuple[Hub, PlayedPool], user: str, name: str
) -> None:
    hub, _ = played
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
            shown = last.get_by_role("row").filter(has=page.locator("[data-column=Ended]"))
            expect(shown).to_have_count(5)
            page.get_by_role("button", name="Show more: Last cells").click()
            expect(shown).to_have_count(21)
            page.get_by_role("button", name="Show fewer: Last cells").click()
            expect(shown).to_have_count(5)
            expect(last.get_by_role("columnheader", name="Waited")).to_be_attached()
            assert last.get_by_role("row").nth(1).get_by_role("cell").count() > 6
            first = last.get_by_role("row").nth(1).locator("[data-column=Waited]")
            assert first.evaluate("cell => getComputedStyle(cell, '::before').content") == '"Waited"'


def test_a_user_sees_at_once_what_is_free_what_is_idle_and_what_is_theirs(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
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


def test_the_page_is_live_and_keeps_where_the_reader_is(played: tuple[Hub, PlayedPool]) -> None:
    hub, pool = played
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


def test_by_keyboard_alone_somebody_stops_a_cell_of_theirs(played: tuple[Hub, PlayedPool]) -> None:
    hub, pool = played
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


def test_what_a_background_cell_needs_to_come_back_is_there_to_copy(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
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


def test_a_lead_holds_and_releases_a_members_request_on_the_page(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
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


def is_for_everybody(page: Page, size: str = "desk") -> None:
    """What is shown now has nothing that keeps people out, in both schemes, and is no wider than the window."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert serious(page) == [], scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]


def test_an_admin_plans_to_empty_a_node_with_a_reason_takes_it_back_and_downloads_usage(
    played: tuple[Hub, PlayedPool],
) -> None:
    hub, _ = played
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


def test_the_file_of_usage_opens_in_a_spreadsheet_with_times_that_can_be_read(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
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


def test_who_thinks_better_of_it_by_keyboard_is_back_at_the_button(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
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


def test_a_lead_puts_a_member_first_until_a_time_and_ends_it(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
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


def test_who_leads_a_group_that_the_hub_has_later_leads_it(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
    hub.api("POST", "/groups/later")
    with logged_in(hub, "liz") as page:
        open_page(hub, page, "project?project=later")
        expect(page.get_by_role("region", name="First in line")).to_be_visible()


def test_what_an_admin_announces_everybody_reads_on_each_page_until_it_is_taken_back(
    played: tuple[Hub, PlayedPool],
) -> None:
    hub, pool = played
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


def test_who_is_no_admin_finds_nothing_to_do_on_the_page_for_admins(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
    with logged_in(hub, "liz") as page:
        open_page(hub, page, "now")
        expect(page.get_by_role("link", name="Quotas")).to_be_visible()
        expect(page.get_by_role("link", name="Admin")).to_have_count(0)
        open_page(hub, page, "admin")
        expect(page.locator("#app")).to_contain_text("This page is for admins of the pool.")
        expect(page.get_by_role("button")).to_have_count(0)


def test_the_chart_says_the_same_as_a_table(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
    with logged_in(hub, "liz") as page:
        open_page(hub, page, "project")
        for name in ("by hour", "by week", "by day"):
            page.get_by_role("radio", name=name).check()
            expect(page.locator(".chart canvas")).to_be_visible()
        page.get_by_text("As a table").click()
        rows = page.get_by_role("region", name="Share over time").first.get_by_role("row")
        expect(rows).to_have_count(15)


def test_an_outsider_is_refused_on_every_page_and_by_the_api(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
    with logged_in(hub, "carol", is_refused=True) as page:
        for name in (*PAGES.values(), "api/v1/now", "api/v1/projects/ml"):
            answer = page.goto(f"{hub.address}/services/bulletin/{name}")
            assert answer is not None
            assert answer.status == 403, name


def test_who_is_logged_out_meanwhile_reads_that_and_comes_back_to_the_page(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
    with logged_in(hub, "bob", is_refused=True) as page:
        open_page(hub, page, "me")
        logins: list[str] = []
        page.on("request", lambda request: logins.append(request.url) if "oauth" in request.url else None)
        page.context.new_page().goto(f"{hub.address}/hub/logout")
        page.bring_to_front()
        expect(page.get_by_role("alert").first).to_contain_text("You are logged out.")
        assert logins == []  # on purpose, and the page leaves it at that
        expect(page.locator("#app")).not_to_contain_text("ablation")
        page.get_by_role("link", name="Log in again").first.click()
        page.fill("#username_input", "bob")
        page.fill("#password_input", (hub.run / "password").read_text())
        page.click("#login_submit")
        expect(page.locator("#app")).to_contain_text("ablation")
        expect(page).to_have_url(f"{hub.address}/services/bulletin/me")


def test_names_as_long_as_they_may_be_fit_a_phone(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
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


def test_what_another_site_has_a_browser_send_changes_nothing(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
    with logged_in(hub, "ada", is_refused=True) as page:
        open_page(hub, page, "me")
        lease = page.evaluate(
            "async () => (await (await fetch('api/v1/me', {headers: {'X-XSRFToken': document.body.dataset.xsrf}}))"
            ".json()).running[0].lease"
        )
        statuses = page.evaluate(
            "async (path) => [(await fetch(path, {method: 'POST'})).status, (await fetch(path, {method: 'POST', "
            "headers: {'X-XSRFToken': 'guess'}})).status]",
            f"api/v1/cells/{lease}/cancel",
        )
        assert statuses == [403, 403]
        base, host = f"{hub.address}/services/bulletin/api/v1", hub.address.rpartition(":")[0]
        site = f"{host}:18999/"  # a browser sends the cookies of a host to all its ports
        page.route(f"{site}**", lambda route: route.fulfill(body="<form method=post>", content_type="text/html"))
        page.goto(site)
        assert page.evaluate(FROM_ELSEWHERE, [f"{base}/me", f"{base}/cells/{lease}/cancel"]) == []
        with page.expect_navigation():
            page.evaluate(FORM_FROM_ELSEWHERE, f"{base}/cells/{lease}/cancel")
        assert "not-allowed" in page.content()
        open_page(hub, page, "me")
        expect(page.get_by_role("button", name="Cancel: resnet-50")).to_be_visible()


def test_without_a_script_who_holds_what_and_who_waits_can_be_read(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
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
