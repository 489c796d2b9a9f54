"""*Quotas* in a browser: a lead and an admin change quotas as forms, see what a change would do, and take it back."""

import json
import re
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.conftest import tab
from tests.acceptance.hub import CONFIG, START_S, Hub
from tests.acceptance.notebook import Kernel
from tests.waiting import until

pytestmark = pytest.mark.browser

TEXT = """\
# of the faculty
[projects.course]  # Lea's
guaranteed = 1
limit = 2
leads = ["lea"]

[projects.course-a]
parent = "course"
limit = 2  # for now

[projects.rivals]
weight = 3
"""
_CONFIG = """\
import os
import bulletin_spawner.setup as setup

test = {{"groups": ["all"], "pool_args": ["--slots=1", "--device=cpu", "--Pool.quota_file={file}"]}}
setup.configure = lambda c, real=setup.configure, **given: real(c, **(given | test))
load_subconfig({config!r})
c = get_config()
course = {{"kind": "course", "faculty": "course", "members": ["many"]}}
c.JupyterHub.load_groups = {{"all": {{"users": ["lea", "sam", "mia"], "properties": course}}}}
c.JupyterHub.services.append({{"name": "test", "api_token": os.environ["BULLETIN_TEST_TOKEN"]}})
c.JupyterHub.load_roles.append({{"name": "test", "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "tokens", "access:servers", "access:services", "shutdown"]}})
"""


class Faculty:
    """A hub whose pool has a quota file, and browsers in which people look at it."""

    def __init__(self, hub: Hub, file: Path, browser: Browser) -> None:
        self.hub, self.file, self._browser = hub, file, browser

    def open(self, user: str) -> Page:
        """The page of quotas, as this user sees it."""
        page = self._browser.new_context(viewport={"width": 1280, "height": 1500}).new_page()
        page.goto(f"{self.hub.address}/hub/login?next=%2Fhub%2Fhome")
        password = (self.hub.run / ("admin-password" if user == "admin" else "password")).read_text()
        page.fill("#username_input", user)
        page.fill("#password_input", password)
        page.click("#login_submit")
        page.wait_for_url("**/hub/home")  # no server of theirs is started
        page.goto(f"{self.hub.address}/services/bulletin/")
        expect(page.get_by_role("heading", name="GPU pool")).to_be_visible()
        page.goto(f"{self.hub.address}/services/bulletin/quotas")
        return page

    def parent_of(self, project: str) -> str | None:
        """What a project is in, by the API, which answers alike for some seconds."""
        token, base = self.hub.token_of("admin"), "/services/bulletin/api/v1"
        projects = self.hub.api("GET", "/projects", token=token, base=base)["projects"]
        return next((one["parent"] for one in projects if one["project"] == project), None)

    def limit(self, user: str = "admin") -> int | None:
        """What the scheduler has, by the API, once its service is up."""
        deadline = time.monotonic() + START_S
        while True:
            try:
                return self._ask_limit(user)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code != 503 or time.monotonic() > deadline:
                    raise
            time.sleep(0.25)  # the one way to learn that it is up is to ask

    def _ask_limit(self, user: str) -> int | None:
        found: int | None = self.hub.api(
            "GET", "/projects/course-a", token=self.hub.token_of(user), base="/services/bulletin/api/v1"
        )["standing"]["limit_milli"]
        return found


@pytest.fixture(scope="module")
def faculty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faculty]:
    folder = tmp_path_factory.mktemp("faculty")
    file = folder / "quotas.toml"
    file.write_text(TEXT)
    hub = Hub(folder, _CONFIG.format(file=file, config=str(CONFIG)))
    with tab(1280, 1500) as page:
        try:
            hub.start()
            assert page.context.browser is not None
            expect.set_options(timeout=30_000)
            yield Faculty(hub, file, page.context.browser)
        finally:
            hub.stop()


@pytest.fixture(autouse=True)
def as_written(faculty: Faculty) -> None:
    faculty.file.write_text(TEXT)


def opened(page: Page, project: str) -> None:
    """Open the settings of a project."""
    summary = page.locator("summary", has_text=re.compile(rf"^{project}( .*)?$"))
    expect(summary).to_be_visible()
    summary.click()


def test_a_lead_previews_saves_and_undoes(faculty: Faculty) -> None:
    page = faculty.open("lea")
    expect(page.get_by_role("link", name="Quotas")).to_be_visible()
    opened(page, "course-a")
    expect(page.locator("summary", has_text="rivals")).to_have_count(0)
    field = page.get_by_label("projects course-a limit", exact=True)
    expect(field).to_have_value("2")
    expect(page.get_by_role("button", name="Take out course-a")).to_have_count(0)  # that is for admins
    expect(page.locator(".field", has=field)).to_contain_text("What all its cells together never exceed.")
    field.fill("1")
    expect(page.get_by_role("heading", name="1 change")).to_be_visible()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("in the last 7 days").first).to_be_visible()  # none, or that of another test
    assert faculty.file.read_text() == TEXT
    page.get_by_label("Why").fill("the exam")
    page.get_by_role("button", name="Save", exact=True).click()
    row = page.get_by_role("row").filter(has_text="the exam")  # its change stands beside the preview, too
    expect(row).to_contain_text("limit of project 'course-a': 2 GPUs -> 1 GPU")
    expect(row).to_contain_text("lea")
    assert faculty.file.read_text() == TEXT.replace("limit = 2  # for now", "limit = 1  # for now")
    expect(row).to_contain_text("(in force)")
    page.get_by_role("button", name="Undo the last change").click()
    expect(page.get_by_text("Undone.")).to_be_visible()
    assert faculty.file.read_text() == TEXT


def test_a_wrong_value_is_refused_at_its_field(faculty: Faculty) -> None:
    page = faculty.open("lea")
    opened(page, "course-a")
    page.get_by_label("projects course-a guaranteed", exact=True).fill("2")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Inside 'course' 2 GPUs would be guaranteed").first).to_be_visible()
    page.get_by_role("button", name="Discard").click()
    field = page.get_by_label("projects course-a limit", exact=True)
    field.fill("many")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".field", has=field)).to_contain_text("Write a number of GPUs")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert faculty.file.read_text() == TEXT


def test_the_api_refuses_with_a_status_and_says_which_setting_is_wrong_or_who_was_faster(faculty: Faculty) -> None:
    token, base = faculty.hub.token_of("admin"), "/services/bulletin/api/v1"

    def refusal(version: str, value: object, path: str = "/quotas/edits") -> tuple[int, Any]:
        edits = [{"path": ["projects", "course-a", "limit"], "value": value}]
        with pytest.raises(urllib.error.HTTPError) as refused:
            faculty.hub.api("POST", path, {"edits": edits, "version": version}, token=token, base=base)
        with refused.value as answer:
            return answer.code, json.loads(answer.read())

    version = faculty.hub.api("GET", "/quotas", token=token, base=base)["version"]
    for path in ("/quotas/edits", "/quotas/previews"):
        status, problem = refusal(version, "many", path)
        assert (status, problem["code"]) == (422, "quota-errors")
        [error] = problem["errors"]
        assert error["path"] == ["projects", "course-a", "limit"]
        assert "Write a number of GPUs" in error["sentence"]
        assert problem["sentence"] == f"Nothing was changed. projects.course-a.limit: {error['sentence']}"
    status, problem = refusal("another", 1)
    assert (status, problem["code"], problem["version"]) == (409, "quotas-changed-meanwhile", version)
    assert problem["sentence"].startswith("Nothing was changed: ")
    assert faculty.file.read_text() == TEXT
    said = faculty.hub.api("GET", "/openapi.json", base=base)["paths"]["/quotas/edits"]["post"]["responses"]
    assert said["422"]["content"]["application/json"]["schema"]["$ref"].endswith("/SettingsRefused")


def test_two_admins_at_once_lose_nothing(faculty: Faculty) -> None:
    first, second = faculty.open("admin"), faculty.open("admin")
    for page in (first, second):
        opened(page, "rivals")
    first.get_by_label("projects rivals weight", exact=True).fill("5")
    second.get_by_label("projects rivals limit", exact=True).fill("4")
    first.get_by_role("button", name="Save", exact=True).click()
    expect(first.get_by_text("weight of project 'rivals': 3 -> 5").first).to_be_visible()
    second.get_by_role("button", name="Save", exact=True).click()
    expect(second.get_by_text("admin has changed the quota file since")).to_be_visible()
    expect(second.get_by_text("weight of project 'rivals': 3 -> 5").first).to_be_visible()
    expect(second.get_by_label("projects rivals limit", exact=True)).to_have_value("4")
    second.get_by_role("button", name="Save on top of the new version").click()
    expect(second.get_by_text("limit of project 'rivals': unlimited -> 4 GPUs").first).to_be_visible()
    assert faculty.file.read_text() == TEXT.replace("weight = 3\n", "weight = 5\nlimit = 4\n")


def test_what_is_typed_wrong_is_said_at_each_field_and_nothing_typed_is_lost(faculty: Faculty) -> None:
    page = faculty.open("admin")
    opened(page, "course-a")
    project = page.locator("details", has=page.get_by_label("projects course-a limit", exact=True))
    project.get_by_label("New window").fill("lecture")
    project.get_by_role("button", name="Add window").click()
    page.get_by_label("New reservation").fill("exam")
    page.get_by_role("button", name="Add reservation").click()
    wrong = {
        "projects course-a limit": ("20000000000000000000", "is '20000000000000000000'. Write a number of GPUs"),
        "projects course-a weight": ("1.5", "is 1.5. Write a whole number"),
        "projects course-a walltime": ("4 parsecs", "is '4 parsecs'. Write a number and a unit"),
        "projects course-a leads": (
            "lea, lea",
            "is the list ['lea', 'lea']. Write a list of 1 to 100 names, each once",
        ),
        "projects course-a budget": ("200 GPU-hours per fortnight", "the period is day, week or month"),
        "projects course-a class_hours lecture days": ("Wednesday", "days are Mon, Tue, Wed"),
        "projects course-a class_hours lecture from": ("9 am", "is '9 am'. Write a time of day"),
        "reservations exam from": ("tomorrow", "is 'tomorrow'. Write a day that there is and a time of that day"),
        "reservations exam time_zone": ("Mars", "Write the name of a time zone"),
    }
    for label, (value, _) in wrong.items():
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Save", exact=True).click()
    for label, (value, words) in wrong.items():
        field = page.get_by_label(label, exact=True)
        expect(page.locator(".field", has=field)).to_contain_text(words)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_value(value)
    expect(page.locator(".problem", has_text="class_hours.lecture does not say until")).to_be_visible()
    expect(page.locator(".problem", has_text="reservations.exam does not say project")).to_be_visible()
    expect(page.get_by_role("heading", name=f"{len(wrong)} changes")).to_be_visible()
    assert faculty.file.read_text() == TEXT


def test_of_two_leads_at_once_the_second_reads_what_is_new_for_them_and_saves_on_top(faculty: Faculty) -> None:
    text = TEXT.replace("weight = 3\n", 'weight = 3\nleads = ["sam"]\n\n[projects.rivals-a]\nparent = "rivals"\n')
    faculty.file.write_text(text)
    lea, sam = faculty.open("lea"), faculty.open("sam")
    opened(lea, "course-a")
    opened(sam, "rivals-a")
    lea.get_by_label("projects course-a limit", exact=True).fill("1")
    sam.get_by_label("projects rivals-a limit", exact=True).fill("3")
    lea.get_by_role("button", name="Save", exact=True).click()
    expect(lea.get_by_text("In force.")).to_be_visible()
    sam.get_by_role("button", name="Save", exact=True).click()
    expect(sam.get_by_text("lea has changed the quota file since. None of the settings that you see")).to_be_visible()
    expect(sam.get_by_label("projects rivals-a limit", exact=True)).to_have_value("3")
    expect(sam.locator("body")).not_to_contain_text("course-a")
    sam.get_by_role("button", name="Save on top of the new version").click()
    expect(sam.get_by_text("limit of project 'rivals-a': unlimited -> 3 GPUs").first).to_be_visible()
    after = text.replace("limit = 2  # for now", "limit = 1  # for now")
    assert faculty.file.read_text().rstrip() == f"{after.rstrip()}\nlimit = 3"


def test_a_project_that_is_only_named_is_listed_and_taken_out(faculty: Faculty) -> None:
    faculty.file.write_text(f"{TEXT}\n[projects.empty]\n")
    page = faculty.open("admin")
    opened(page, "empty")
    page.get_by_role("button", name="Take out empty").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("project 'empty' removed").first).to_be_visible()
    assert faculty.file.read_text().rstrip() == TEXT.rstrip()


def test_a_reservation_is_added_in_a_form_and_taken_out(faculty: Faculty) -> None:
    page = faculty.open("admin")
    page.get_by_label("New reservation").fill("exam")
    page.get_by_role("button", name="Add reservation").click()
    values = {"project": "course", "gpus": "1", "from": "2036-12-01T10:00", "until": "2036-12-01T12:00"}
    for name, value in {**values, "time_zone": "Europe/Berlin"}.items():
        page.get_by_label(f"reservations exam {name}", exact=True).fill(value)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("In force.")).to_be_visible()
    assert '[reservations.exam]\nproject = "course"\ngpus = 1\n' in faculty.file.read_text()
    page.get_by_role("button", name="Take out exam").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("reservation 'exam' removed").first).to_be_visible()
    assert faculty.file.read_text().rstrip() == TEXT.rstrip()


def test_who_may_change_no_quotas_reads_what_their_projects_have_and_who_may(faculty: Faculty) -> None:
    shared = TEXT.replace("guaranteed = 1", "guaranteed = 0.5")  # of the one slot that there is
    faculty.file.write_text(f"{shared}[projects.all]\nguaranteed = 0.5\nlimit = 1\n")
    page = faculty.open("sam")
    part = page.get_by_role("region", name="What your projects have")
    expect(part).to_contain_text("0 in use of 0.5 guaranteed, 1 at most")
    expect(part).to_contain_text("leads change what is inside the projects that they lead, and admins all of it")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("link", name="Quotas")).to_have_count(0)
    page.get_by_role("link", name="Ask for it on Me").click()
    expect(page.get_by_role("region", name="Ask for more")).to_be_visible()


def test_a_group_that_nobody_wrote_down_has_what_the_rule_says_that_an_admin_adds(faculty: Faculty) -> None:
    page = faculty.open("admin")
    page.get_by_label("New rule").fill("courses")
    page.get_by_role("button", name="Add rule").click()
    values = {"properties": "kind=course", "parent_property": "faculty", "walltime": "10 min", "user_limit": "1"}
    for name, value in values.items():
        page.get_by_label(f"group_rules courses {name}", exact=True).fill(value)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("In force.")).to_be_visible()
    faculty.hub.start_server("mia")
    with Kernel(faculty.hub, "mia") as notebook:
        refused = notebook.send("%%gpu --time 15min\nprint('it ran')").wait().error or ""
        assert "more than the 10 min that a cell of project 'all' may run" in refused
        assert (
            "'all' is a group that the rule 'courses' is for: each of them has user_limit 1 GPU, walltime 10 min"
            in (refused)
        )
        assert "no guarantee. For more than that an admin names it in the quota file." in refused
        assert "it ran\n" in notebook.run("%%gpu\nprint('it ran')")
        until(lambda: faculty.parent_of("all") == "course", "the API to say what the hub's group says")
        mine = faculty.open("mia")
        mine.goto(f"{faculty.hub.address}/services/bulletin/me")
        expect(mine.get_by_text("What it has is said by the rule “courses”, which is for all groups")).to_be_visible()
        page.get_by_label("group_rules courses walltime", exact=True).fill("20 min")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("walltime of group rule 'courses': 10 min -> 20 min").first).to_be_visible()
        assert "it ran\n" in notebook.run("%%gpu --time 15min\nprint('it ran')")


def test_a_student_who_is_refused_asks_in_the_cell_and_the_lead_grants_it_with_one_click(faculty: Faculty) -> None:
    faculty.file.write_text(TEXT + '[projects.all]\nleads = ["lea"]\n')
    faculty.hub.start_server("sam")
    with Kernel(faculty.hub, "sam") as notebook:
        refused = notebook.send("%%gpu --time 4h\nprint('it ran')").wait()
        assert '`%gpu request --time 4h --why "..."`' in (refused.error or "")
        asked = notebook.send('%gpu request --time 4h --why "my <b>thesis</b>" --wait')
        asked.wait(lambda run: "lea, who leads the project, or an admin decides" in run.text)
        page = faculty.open("lea")
        page.goto(f"{faculty.hub.address}/services/bulletin/project?project=all")
        card = page.get_by_role("listitem").filter(has_text="sam: cells of up to 4 h")
        expect(card).to_contain_text("“my <b>thesis</b>”")
        card.get_by_label("Say").fill("good luck")
        card.get_by_role("button", name="Grant: sam").click()
        expect(page.get_by_text("sam: cells of up to 4 h granted")).to_be_visible()
        asked.wait()
        assert "Granted by lea until" in asked.text
        assert "good luck" in asked.text
        assert "it ran\n" in notebook.run("%%gpu --time 4h\nprint('it ran')")
    mine = faculty.open("sam")
    mine.goto(f"{faculty.hub.address}/services/bulletin/me")
    granted = mine.get_by_role("listitem").filter(has_text="cells of up to 4 h").filter(has_text="Granted by lea until")
    expect(granted).to_be_visible()
    mine.get_by_label("Hours for a cell").fill("8")
    mine.get_by_label("Why").fill("a second run")
    mine.get_by_role("button", name="Ask", exact=True).click()
    expect(mine.get_by_text("Asked. You read here what is decided.")).to_be_visible()
    wanted = page.get_by_role("listitem").filter(has_text="sam: cells of up to 8 h")
    wanted.get_by_role("button", name="Decline: sam").click()
    expect(wanted.get_by_role("button", name="Grant: sam")).to_have_count(0)
    expect(mine.get_by_role("listitem").filter(has_text="Declined by lea")).to_be_visible()


def test_more_of_a_budget_is_asked_for_on_the_page_and_granted_by_the_lead(faculty: Faculty) -> None:
    faculty.file.write_text(TEXT + '[projects.all]\nleads = ["lea"]\nbudget = "2 GPU-hours per week"\n')
    mine = faculty.open("sam")
    mine.goto(f"{faculty.hub.address}/services/bulletin/me")
    mine.get_by_label("-hours of the budget").fill("1.5")
    mine.get_by_label("Why").fill("the deadline")
    mine.get_by_role("button", name="Ask").click()
    expect(mine.get_by_text("Asked. You read here what is decided.")).to_be_visible()
    page = faculty.open("lea")
    page.goto(f"{faculty.hub.address}/services/bulletin/project?project=all")
    card = page.get_by_role("listitem").filter(has_text="of the budget of all").filter(has_text="the deadline")
    card.get_by_role("button", name="Grant: sam").click()
    expect(page.get_by_text(re.compile(r"sam: 1.5 more .*-hours of the budget of all granted"))).to_be_visible()
    expect(mine.get_by_text("Granted by lea until").first).to_be_visible()


def test_a_broker_that_is_started_again_has_what_was_saved(faculty: Faculty) -> None:
    page = faculty.open("admin")
    opened(page, "course-a")
    page.get_by_label("projects course-a limit", exact=True).fill("1")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("In force.")).to_be_visible()
    faculty.hub.stop()
    faculty.hub.start()
    assert faculty.limit() == 1000
