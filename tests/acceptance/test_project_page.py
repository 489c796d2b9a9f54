"""Which project the page *Project* shows: the one that it has opened on, until its reader chooses another."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.conftest import tab
from tests.acceptance.hub import Hub
from tests.acceptance.played_pool import PlayedPool, played_pool
from tests.waiting import until

pytestmark = pytest.mark.browser

#: What a browser says when its window is looked at again: a page then asks for all that it shows.
LOOK_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, PlayedPool]]:
    """Three GPUs, of which one is used, by a cell of ada's in ml."""
    with played_pool(tmp_path_factory.mktemp("project_page")) as (hub, pool):
        pool.add_node("gpu01", 3)
        pool.ask("ada", "resnet-50")
        yield hub, pool


def open_as(user: str, page: Page, hub: Hub, choices: str = "") -> None:
    page.goto(f"{hub.address}/hub/login?next=%2Fservices%2Fbulletin%2Fproject{choices}")
    page.fill("#username_input", user)
    page.fill("#password_input", (hub.run / ("admin-password" if user == "admin" else "password")).read_text())
    page.click("#login_submit")


def opens(hub: Hub, token: str) -> str:
    """The project that the page would open on now."""
    opening: str = hub.api("GET", "/api/v1/projects", token=token, base="/services/bulletin")["opens"]
    return opening


def test_the_page_stays_with_its_project_when_another_is_most_in_use(played: tuple[Hub, PlayedPool]) -> None:
    hub, pool = played
    admin = hub.token_of("admin")
    with tab(1280, 900) as page:
        open_as("admin", page, hub)
        choice = page.locator("form.choices select").first
        expect(choice).to_have_value("ml")
        expect(page).to_have_url(f"{hub.address}/services/bulletin/project?project=ml&by=day")
        pool.ask("eve", gpus=2)
        until(lambda: opens(hub, admin) == "guests", "guests to be the one that is most in use")
        seen: list[str] = []
        page.on("request", lambda request: seen.append(request.url))
        for _ in range(2):  # what it hears the first time, it has taken in when it is answered again
            with page.expect_response("**/api/v1/projects"), page.expect_response("**/api/v1/projects/*"):
                page.evaluate(LOOK_AGAIN)
        assert not any("/projects/guests" in url for url in seen), seen
        expect(choice).to_have_value("ml")
        page.get_by_role("link", name="Project", exact=True).click()
        expect(choice).to_have_value("guests")  # who opens it anew is where the pool is used now


def test_a_project_that_is_not_there_is_nothing_to_wait_for(played: tuple[Hub, PlayedPool]) -> None:
    hub, _ = played
    with tab(1280, 900) as page:
        open_as("ada", page, hub, "%3Fproject%3Dnosuch")
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.locator(".troubles")).to_contain_text("Look again")
        expect(page.locator(".troubles")).not_to_contain_text("goes on by itself")
