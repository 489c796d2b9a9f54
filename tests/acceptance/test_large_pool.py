"""Now in a pool of 64 GPUs with 2,000 cells in line, as the broker tells of it and the service shows it."""

import json
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Route, expect

from bulletin.ids import UserName
from bulletin.wire import page_requests
from bulletin_spawner.service.now_view import MOST_SHOWN, view_now
from bulletin_spawner.service.viewer import Sight, Viewer
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.pool_report import draw_pool
from tests.acceptance.conftest import tab
from tests.acceptance.hub import REPOSITORY
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts

pytestmark = pytest.mark.browser

BUILT = REPOSITORY / "bulletin_spawner" / "service" / "static" / "built"
NODES, GPUS, WAITING, USERS = 8, 8, 2_000, 500
KINDS = {"/pages.js": "text/javascript", "/pages.css": "text/css"}


def crowd(folder: Path) -> page_requests.PoolReport:
    """Every GPU has a cell, and each of many people waits for several."""
    with Ledger.open(f"sqlite:///{folder / 'ledger'}") as ledger:
        broker = BrokerParts(ledger)
        for number in range(NODES):
            broker.join(f"n{number}", GPUS)
        people = [Person(user=UserName(f"u{n}"), groups=(f"p{n % 20}",)) for n in range(USERS)]
        for number in range(NODES * GPUS):
            broker.run(people[number], f"runs-{number}")
        for number in range(WAITING):
            broker.submit(people[number % USERS], f"waits-{number}")
        return draw_pool(broker.shell, broker.agents, broker.now_ms, lambda _: "", started_ms=0, serves_hub=True)


def test_now_shows_each_gpu_the_first_of_the_line_and_ones_own_and_says_how_many_more_there_are(tmp_path: Path) -> None:
    report = crowd(tmp_path)
    viewer = Viewer(user=UserName("u499"), groups=("p19",))
    now = msgspec.json.encode(view_now(report, Sight(viewer, report))).decode()

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix("http://hub").partition("?")[0]
        if path in KINDS:
            route.fulfill(content_type=KINDS[path], body=(BUILT / path[1:]).read_text())
        elif path == "/":
            head = '<link rel="stylesheet" href="pages.css"><script type="module" src="pages.js"></script>'
            route.fulfill(content_type="text/html", body=f'{head}<body data-page="now"><div id="app"></div></body>')
        else:
            route.fulfill(content_type="application/json", body=now if path.endswith("/now") else json.dumps({}))

    with tab(320, 640) as page:
        page.route("**/*", answer)
        page.goto("http://hub/")
        expect(page.get_by_role("status")).to_have_text("0 of 64 GPUs free, 2000 waiting.")
        expect(page.locator(".slot")).to_have_count(NODES * GPUS)
        rows = page.get_by_role("region", name="Who waits").locator("tbody tr:not(.why)")
        mine = sum(one.is_mine for one in view_now(report, Sight(viewer, report)).queue)
        assert mine > 0
        expect(rows).to_have_count(MOST_SHOWN + mine)
        expect(page.get_by_text(f"and {WAITING - MOST_SHOWN - mine:,} more.")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
