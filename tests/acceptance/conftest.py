"""One hub for all acceptance tests, gone with the last of them, and a browser for each test that wants one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.acceptance.hub import Hub
from tests.acceptance.lab import Gate, Lab
from tests.acceptance.played_pool import PlayedPool, played_pool
from tests.waiting import until

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
_MINUTE_MS = 60_000


@pytest.fixture(scope="package")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A running hub with a pool of one CPU slot: for ada, bob, newcomer and student. Nothing of it is left."""
    hub = Hub(tmp_path_factory.mktemp("hub"))
    try:
        hub.start()
        yield hub
    finally:
        hub.stop()
    assert hub.left_over() == []


@pytest.fixture(scope="package")
def busy_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, PlayedPool]]:
    """Eight GPUs: cells of four people, one of which holds a GPU and does nothing, a hot session, and a line."""
    with played_pool(tmp_path_factory.mktemp("busy_pool")) as (hub, pool):
        nodes = [pool.add_node("gpu01", 4, running_ms=14 * _MINUTE_MS), pool.add_node("gpu02", 4, 27 * _MINUTE_MS)]
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
                    node.uses.update(dict.fromkeys(lease.slots, (0, 2 * 10**9, 17 * _MINUTE_MS)))
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
def tab(width: int, height: int) -> Iterator[Page]:
    """An empty tab of Chromium. CI has it.

    Not for longer than a file of tests: Playwright keeps an event loop in this thread while it runs, and other tests
    have theirs.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        assert not os.environ.get("CI"), "CI runs the browser tests, and there is no chromium on PATH"
        pytest.skip("there is no chromium on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        context = browser.new_context(viewport={"width": width, "height": height})
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield context.new_page()
        browser.close()


@pytest.fixture
def page() -> Iterator[Page]:
    """An empty browser for one test."""
    with tab(1280, 1500) as page:
        yield page


@pytest.fixture(scope="module")
def lab(hub: Hub) -> Iterator[Lab]:
    """JupyterLab with ada in it, for all tests of a file; each opens notebooks of its own."""
    with tab(1180, 1400) as page:
        yield Lab(hub, page, "ada")


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """Closed, and open when the test is over, whatever became of it: nothing waits there for ever."""
    gate = Gate(tmp_path)
    yield gate
    gate.open()
