"""One hub for all acceptance tests, and a browser for each test that wants one."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.acceptance.hub import Hub

#: A browser of root, in a closed network, that asks nobody anything.
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
PATIENCE_MS = 120_000


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A running hub with a pool of one CPU slot: ada and bob may use it. Nothing of it is left afterwards."""
    hub = Hub(tmp_path_factory.mktemp("hub"))
    try:
        hub.start()
        yield hub
    finally:
        hub.stop()
    assert hub.left_over() == []


@pytest.fixture
def page() -> Iterator[Page]:
    """An empty Chromium. CI has it.

    For one test only: Playwright keeps an event loop in this thread while it runs, and other tests have theirs.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        assert not os.environ.get("CI"), "CI runs the browser tests, and there is no chromium on PATH"
        pytest.skip("there is no chromium on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1500})
        page.set_default_timeout(PATIENCE_MS)
        yield page
        browser.close()
