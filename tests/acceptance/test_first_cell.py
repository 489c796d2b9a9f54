"""A student's first minutes, in a real browser: log in, open the example, run it all."""

import os

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.conftest import PATIENCE_MS
from tests.acceptance.hub import REPOSITORY, Hub
from tests.acceptance.lab import log_in

pytestmark = pytest.mark.browser


def test_a_student_logs_in_and_runs_the_first_gpu_cell(hub: Hub, page: Page) -> None:
    log_in(hub, page, "student")  # whose JupyterLab opens nothing that another test has left
    page.wait_for_url("**/user/student/lab**")
    page.get_by_role("listitem", name="first_cell.ipynb").dblclick()
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

    prepare, train, use = (page.locator(".jp-CodeCell").nth(number) for number in range(3))
    expect(prepare).to_contain_text("1347 pictures to learn from, 450 to test with", timeout=PATIENCE_MS)
    expect(train).to_contain_text("100%", timeout=PATIENCE_MS)
    expect(train.locator(".jp-OutputArea img")).to_have_count(1, timeout=PATIENCE_MS)
    expect(use).to_contain_text("accuracy: 9", timeout=PATIENCE_MS)
    expect(use.locator(".jp-OutputArea img")).to_have_count(1, timeout=PATIENCE_MS)
    expect(page.locator(".jp-NotebookPanel")).not_to_contain_text("Traceback")
    if os.environ.get("BULLETIN_SCREENSHOTS"):
        news = page.get_by_role("button", name="No", exact=True)
        news.click()
        expect(news).to_be_hidden()
        train.scroll_into_view_if_needed()
        page.screenshot(path=REPOSITORY / "docs" / "images" / "first_cell.png")


def test_the_pools_page_shows_its_slots_after_logging_in_on_the_hub(hub: Hub, page: Page) -> None:
    log_in(hub, page, "bob")
    page.wait_for_url("**/user/bob/**")
    page.goto(f"{hub.address}/services/bulletin/")
    expect(page.get_by_role("heading", name="GPU pool")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("of 1 CPU slot", timeout=PATIENCE_MS)
    slots = page.get_by_role("region", name="CPU slots")
    expect(slots).to_be_visible()
    with page.expect_response(f"{hub.address}/services/bulletin/api/v1/now") as refreshed:
        pass
    assert refreshed.value.status == 200
    expect(slots).to_be_visible()


def test_somebody_outside_the_groups_does_not_see_the_page(hub: Hub, page: Page) -> None:
    log_in(hub, page, "carol")
    page.wait_for_url("**/user/carol/**")
    answer = page.goto(f"{hub.address}/services/bulletin/")
    assert answer is not None
    assert answer.status == 403
