"""Who is kept from the hub's pages: outsiders, who is logged out, and pages of other sites."""

import pytest
from playwright.sync_api import expect

from tests.acceptance.hub import Hub
from tests.acceptance.hub_pages import PAGES, logged_in, open_page
from tests.acceptance.played_pool import PlayedPool

pytestmark = pytest.mark.browser

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


def test_an_outsider_is_refused_on_every_page_and_by_the_api(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
    with logged_in(hub, "carol", is_refused=True) as page:
        for name in (*PAGES.values(), "api/v1/now", "api/v1/projects/ml"):
            answer = page.goto(f"{hub.address}/services/bulletin/{name}")
            assert answer is not None
            assert answer.status == 403, name


def test_who_is_logged_out_meanwhile_reads_that_and_comes_back_to_the_page(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
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


def test_what_another_site_has_a_browser_send_changes_nothing(busy_pool: tuple[Hub, PlayedPool]) -> None:
    hub, _ = busy_pool
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
