"""A page that is newer than the service behind it, as after an upgrade without a restart."""

import json
from collections import Counter

import pytest
from playwright.sync_api import Route, expect

from tests.acceptance.conftest import tab
from tests.acceptance.hub import REPOSITORY

pytestmark = pytest.mark.browser

SCRIPT = REPOSITORY / "bulletin_spawner" / "service" / "static" / "built" / "pages.js"
#: What *Me* is filled with, without what an older service does not know of.
ME = {"slot_word": "GPU", "running": [], "waiting": [], "projects": [], "own_projects": ["maths"]}


def test_a_page_that_its_service_cannot_fill_says_so_and_asks_for_nothing_more() -> None:
    asked = Counter[str]()

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix("http://hub")
        asked[path] += 1
        if path == "/me":
            route.fulfill(
                content_type="text/html",
                body='<body data-page="me"><div id="app"></div><script type="module" src="pages.js"></script></body>',
            )
        elif path == "/pages.js":
            route.fulfill(content_type="text/javascript", body=SCRIPT.read_text())
        else:
            said = ME if path == "/api/v1/me" else {"rows": []}
            route.fulfill(content_type="application/json", body=json.dumps(said))

    with tab(800, 600) as page:
        page.route("**/*", answer)
        page.clock.install()
        page.goto("http://hub/me")
        expect(page.get_by_role("alert")).to_contain_text("until the service of the pool is started again")
        page.clock.run_for(60_000)
        expect(page.get_by_role("alert")).to_have_count(1)
    assert asked["/api/v1/me"] == 1
    assert asked["/api/v1/allowances"] <= 1
