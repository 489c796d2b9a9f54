"""Texts that users, groups and nodes choose, and that a browser would run: each page shows them as text."""

import csv
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.hub import Hub
from tests.acceptance.hub_pages import logged_in, open_page
from tests.acceptance.played_pool import PlayedPool, played_pool
from tests.waiting import until

pytestmark = pytest.mark.browser

SERVICE = "/services/bulletin/api/v1"
#: What a page must not have: what comes of the texts where one of them is taken for markup.
_MADE = "img, iframe, svg[onload], a[href^='javascript:' i], [onerror], [onload], main script, b"


def hostile(name: str) -> str:
    """A text that would be markup in an element, in an attribute, in a template and in a script."""
    return f"{name}\"'><img src=x onerror=pwned=1><svg onload=pwned=1>{{{{97*89}}}}</script><b>"


@pytest.fixture(scope="module")
def hostile_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, PlayedPool, str]]:
    """A pool whose texts are all of that kind, and the name of the user and of the group who are, too."""
    with played_pool(tmp_path_factory.mktemp("hostile")) as (hub, pool):
        name = '=eve"><img src=x onerror=pwned=1>'
        user = quote(name, safe="")
        hub.make_user(user)
        hub.api("POST", f"/groups/{user}", {"users": [name]})
        hub.api("POST", "/groups/guests/users", {"users": [name]})  # who may use the pool
        node = pool.add_node("gpu01", 2)
        pool.ask("ada", hostile("running"))
        pool.ask(user, hostile("hot"))
        mine = next(lease for lease in node.leases.values() if lease.label.startswith("hot"))
        node.end_cell(mine.lease)
        pool.ask(user, hostile("waiting"), 2)
        pool.ask("ada", hostile("waiting"), 2)
        admin, eve, ada, liz = (hub.token_of(one) for one in ("admin", user, "ada", "liz"))
        hour_ms = 3_600_000
        for token, method, path, body in (
            (admin, "POST", "/nodes/gpu01/drain", {"in_ms": hour_ms, "why": hostile("drain")}),
            (admin, "POST", "/announcement", {"sentence": hostile("announced"), "for_ms": hour_ms}),
            (liz, "POST", "/projects/ml/boosts", {"user": "ada", "for_ms": hour_ms, "why": hostile("boost")}),
            (
                ada,
                "POST",
                "/allowances",
                {"project": "ml", "walltime_ms": 100 * hour_ms, "for_ms": hour_ms, "why": hostile("more")},
            ),
        ):
            hub.api(method, path, body, token, base=SERVICE)
        until(
            lambda: hub.api("GET", "/me/receipts", token=eve, base=SERVICE)["receipts"],
            "the cell that is over to be in the ledger",
        )
        yield hub, pool, name


def is_text(page: Page) -> None:
    """Nothing on this page has come of a text, and nothing of one has run."""
    assert page.locator(_MADE).evaluate_all("all => all.map(one => one.outerHTML.slice(0, 200))") == []
    assert page.evaluate("typeof pwned") == "undefined"
    assert "8633" not in page.locator("main").inner_text(), "no template was filled with it"


@pytest.mark.parametrize(
    ("reader", "shown"),
    [
        ("admin", {"now": "drain", "admin": "drain"}),
        ("liz", {"project": "boost", "quotas": "more"}),
        ("ada", {"now": "drain", "me": "running"}),
        ("", {"now": "drain", "me": "hot", "project": "=eve"}),
    ],
)
def test_what_a_browser_would_run_is_shown_as_text_on_each_page(
    hostile_pool: tuple[Hub, PlayedPool, str], reader: str, shown: dict[str, str]
) -> None:
    hub, _, name = hostile_pool
    with logged_in(hub, reader or name) as page:
        for where, text in shown.items():
            open_page(hub, page, where)
            expect(page.locator("main")).to_contain_text(text)
            expect(page.locator("main")).to_contain_text("onerror=pwned=1>")
            is_text(page)


def test_the_file_of_usage_has_no_formula_of_a_name(hostile_pool: tuple[Hub, PlayedPool, str]) -> None:
    hub, _, name = hostile_pool
    token = hub.token_of("admin")
    until_ms = time.time_ns() // 1_000_000
    asked = f"since_ms={until_ms - 86_400_000}&until_ms={until_ms}"
    for by, text in (("user", name), ("project", name), ("label", "hot")):
        said = hub.api("GET", f"/usage?{asked}&by={by}", token=token, base=SERVICE)["csv"]
        rows = list(csv.reader(said.splitlines()))
        assert any(text in row[0] for row in rows)
        assert not [cell for row in rows for cell in row if cell.startswith(tuple("=+-@"))]
