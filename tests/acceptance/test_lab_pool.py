"""The pool in JupyterLab: what is free and mine in the status bar and a panel, the %%gpu button, and notices."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.conftest import tab
from tests.acceptance.hub import REPOSITORY, Hub
from tests.acceptance.lab import Gate, Lab, Notebook, picture
from tests.acceptance.notebook import Kernel

BUILT = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "@bulletin" / "lab" / "package.json"
AXE = REPOSITORY / "node_modules" / "axe-core" / "axe.min.js"
TOGGLE = "[data-command='bulletin:toggle-gpu-cell']"
#: The browser's own notices, written down instead of shown; and a tab that lies behind another.
SPY = """
window.shown = [];
window.Notification = class {
  static permission = 'default';
  static async requestPermission() {
    window.shown.push('asked');
    return (this.permission = 'granted');
  }
  constructor(title) { window.shown.push(title); }
  close() {}
};
window.hide = () => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
  document.dispatchEvent(new Event('visibilitychange'));
};
"""


@pytest.fixture(scope="module", autouse=True)
def _is_built() -> None:
    if not BUILT.exists():
        assert not os.environ.get("CI"), "CI builds the extension of JupyterLab"
        pytest.skip("the extension of JupyterLab is not built: python3 make.py lab")


@pytest.fixture(scope="module")
def loud_lab(hub: Hub) -> Iterator[Lab]:
    """JupyterLab with ada in it, where notices are shown."""
    with tab(1180, 620) as page:
        page.add_init_script(SPY)
        lab = Lab(hub, page, "ada")
        loud = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": False}
        lab.set_settings("@jupyterlab/apputils-extension:notification", loud)
        lab.enter(page)
        yield lab


def status(page: Page) -> Locator:
    return page.locator(".bulletin-StatusItem").get_by_role("button")


def open_panel(page: Page) -> Locator:
    panel = page.locator(".bulletin-Panel")
    if not panel.is_visible():
        status(page).click()
    expect(panel).to_be_visible()
    return panel


def stop(card: Locator) -> None:
    """Cancel a cell that runs, and mean it."""
    card.get_by_role("button", name="Cancel").click()
    card.page.get_by_role("button", name="Stop the Cell").click()


def source(notebook: Notebook, number: int) -> Locator:
    return notebook.cell(number).locator(".cm-line")


def announce(hub: Hub, method: str, body: object = None) -> None:
    """An admin announces something to everybody, or takes it back."""
    hub.make_user("admin")
    hub.api(method, "/api/v1/announcement", body, token=hub.token_of("admin"), base="/services/bulletin")


def test_a_button_turns_a_cell_into_a_gpu_cell_and_back_and_can_be_undone(loud_lab: Lab) -> None:
    with loud_lab.notebook("toggle", "x = 1\nx + 1", "y = 2") as notebook:
        notebook.edit(0)
        button = notebook.cell(0).locator(TOGGLE)
        expect(button).to_have_attribute("aria-pressed", "false")
        button.click()
        expect(source(notebook, 0)).to_have_text(["%%gpu", "x = 1", "x + 1"])
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(notebook.cell(0).locator(".bulletin-magic")).to_have_text("%%gpu")
        notebook.run(0)
        expect(notebook.output(0)).to_contain_text("2")
        notebook.edit(0)
        button.click()
        expect(source(notebook, 0)).to_have_text(["x = 1", "x + 1"])
        notebook.edit(0)
        notebook.page.keyboard.press("Control+z")
        expect(source(notebook, 0)).to_have_text(["%%gpu", "x = 1", "x + 1"])
        expect(button).to_have_attribute("aria-pressed", "true")
        button.dblclick()
        expect(source(notebook, 0)).to_have_text(["%%gpu", "x = 1", "x + 1"])
        notebook.edit(0)
        notebook.page.keyboard.press("Control+z")  # one press of the button, however soon the other came
        expect(source(notebook, 0)).to_have_text(["x = 1", "x + 1"])


def test_options_come_back_with_the_button_and_stand_out_from_code(loud_lab: Lab) -> None:
    others = ("%%remote --cpus 1\ny = 2", "%%time\n%%gpu --label timed\nz = 3")
    with loud_lab.notebook("options", "%%gpu --time '10 min' --label run\nx = 1", *others) as notebook:
        notebook.edit(0)
        expect(notebook.cell(0).locator(".bulletin-option")).to_have_text(["--time", "--label"])
        button = notebook.cell(0).locator(TOGGLE)
        button.click()
        expect(source(notebook, 0)).to_have_text(["x = 1"])
        button.click()
        expect(source(notebook, 0)).to_have_text(["%%gpu --time '10 min' --label run", "x = 1"])
        for number, pressed in [(1, ["%%gpu", "y = 2"]), (2, ["%%time", "z = 3"])]:
            before = source(notebook, number).all_inner_texts()
            notebook.edit(number)
            notebook.cell(number).locator(TOGGLE).click()
            expect(source(notebook, number)).to_have_text(pressed)
            if number == 1:
                notebook.cell(number).locator(TOGGLE).click()
                expect(source(notebook, number)).to_have_text(before)
                notebook.cell(number).locator(TOGGLE).click()
                notebook.edit(number)
                for keys in ("Control+Home", "Shift+ArrowDown", "Delete"):
                    notebook.page.keyboard.press(keys)
                expect(source(notebook, number)).to_have_text(["y = 2"])
                notebook.page.keyboard.type("%%gpu\n")
                expect(source(notebook, number)).to_have_text(pressed)
                notebook.cell(number).locator(TOGGLE).click()
                expect(source(notebook, number)).to_have_text(["y = 2"])
            else:
                notebook.run(number)
                expect(notebook.output(number)).to_contain_text("Wall time")


def test_a_cell_is_called_by_its_own_label_where_an_earlier_one_left_its_slot(loud_lab: Lab, gate: Gate) -> None:
    cells = (gate.cell, "%%gpu --label first\nx = 1", "%%gpu --label second\nwait()")
    with loud_lab.notebook("labels", *cells) as notebook:
        panel = open_panel(notebook.page)
        notebook.run(0, 1)
        notebook.start(2)
        running = panel.get_by_role("region", name="Running")
        expect(running).to_contain_text("second")
        expect(running).to_contain_text("labels.ipynb")
        status(notebook.page).press("Enter")  # who has no mouse goes on in the panel
        notebook.page.keyboard.press("Tab")
        expect(running.get_by_role("button", name="labels.ipynb")).to_be_focused()
        notebook.page.evaluate(AXE.read_text())
        found = panel.evaluate("async panel => (await axe.run(panel)).violations")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        gate.open()
        notebook.wait(2)


def test_a_cell_of_text_has_no_such_button(loud_lab: Lab) -> None:
    with loud_lab.notebook("text", "x = 1", "some words") as notebook:
        notebook.edit(0)
        expect(notebook.cell(0).locator(TOGGLE)).to_be_visible()
        notebook.page.keyboard.press("Escape")
        notebook.page.keyboard.press("m")
        expect(notebook.panel.locator(".jp-MarkdownCell")).to_have_count(1)
        expect(notebook.panel.locator(f".jp-MarkdownCell {TOGGLE}:visible")).to_have_count(0)


def test_who_waits_sees_place_and_reason_and_is_told_of_start_and_end(hub: Hub, loud_lab: Lab, gate: Gate) -> None:
    hub.start_server("bob")
    page = loud_lab.page
    with Kernel(hub, "bob") as bob, loud_lab.notebook("waits", "%%gpu --label 'my turn'\nx = 1") as notebook:
        bob.run(gate.cell)
        bob.send("%%gpu\nprint('bob runs', flush=True)\nwait()").wait(lambda run: "bob runs" in run.text)
        panel = open_panel(page)
        notebook.start(0)
        card = panel.get_by_role("region", name="Waiting").get_by_role("listitem")
        expect(card).to_contain_text("my turn")
        expect(card).to_contain_text("Waiting for a CPU slot: 1st in line")
        expect(card).to_contain_text("waits.ipynb")
        expect(status(page)).to_contain_text("1st in line · 0 of 1 CPU slot free")
        assert "bob" not in panel.inner_text()
        picture("lab_pool", page)
        expect(card).to_contain_text(re.compile(r"Waited 1\d s"))  # who waited for less is not told
        announce(hub, "POST", {"sentence": "The pool ends at six.", "for_ms": 600_000})
        expect(notebook.output(0)).to_contain_text("Announcement by admin: The pool ends at six.")
        expect(panel.get_by_role("note")).to_have_text("Announcement by admin: The pool ends at six.")
        announce(hub, "DELETE")
        expect(panel.get_by_role("note")).to_have_count(0)
        gate.open()
        notebook.wait(0)
        expect(page.locator(".Toastify__toast").filter(has_text="“my turn” in waits.ipynb has ended")).to_be_visible()
        receipt = panel.get_by_role("region", name="Last cells").get_by_role("listitem").first
        expect(receipt).to_contain_text("my turn")
        expect(receipt).to_contain_text("ran ")
        assert page.evaluate("window.shown") == [], "the browser was asked for nothing"


def test_a_background_cell_is_cancelled_in_the_panel_while_the_kernel_is_busy(loud_lab: Lab, gate: Gate) -> None:
    cells = ("%%gpu --background job --label fine-tune\nimport time\ntime.sleep(600)", gate.cell, "wait()")
    with loud_lab.notebook("background", *cells) as notebook:
        panel = open_panel(notebook.page)
        notebook.run(0, 1)
        notebook.start(2)
        card = panel.get_by_role("region", name="Running").get_by_role("listitem")
        expect(card).to_contain_text("Background cell")
        expect(card).to_contain_text("Running for")
        card.get_by_role("button", name="Copy attach command").click()
        expect(notebook.page.locator(".Toastify__toast").filter(has_text="Copied: %gpu attach")).to_be_visible()
        card.get_by_role("button", name="Cancel").click()
        notebook.page.get_by_role("button", name="Keep It Running").click()
        expect(card).to_contain_text("Running for")
        stop(card)
        expect(panel.get_by_role("region", name="Running")).to_have_count(0)
        gate.open()
        notebook.wait(2)
        receipt = panel.get_by_role("region", name="Last cells").get_by_role("listitem").first
        expect(receipt).to_contain_text("interrupted")
        told = notebook.page.locator(".Toastify__toast").filter(has_text="“fine-tune” in background.ipynb: interrupted")
        expect(told).to_be_visible()


def test_the_browser_tells_of_it_when_the_tab_is_behind_others_once_it_was_asked_by_a_click(
    loud_lab: Lab, gate: Gate
) -> None:
    page = loud_lab.page
    box = open_panel(page).get_by_role("checkbox")
    expect(box).not_to_be_checked()
    box.click()
    expect(box).to_be_checked()
    assert page.evaluate("window.shown") == ["asked"]
    with loud_lab.notebook("behind", gate.cell, "%%gpu --background job --label quick\nwait()") as notebook:
        notebook.run(0, 1)
        expect(status(page)).to_contain_text("1 running")
        page.evaluate("window.hide()")
        gate.open()
        page.wait_for_function("window.shown.length > 1")
        assert page.evaluate("window.shown[1]") == "Background cell “quick” in behind.ipynb has ended"
    page.reload()
    expect(open_panel(page).get_by_role("checkbox")).not_to_be_checked()  # the browser forgot its user's word
    loud_lab.enter(page)


def test_who_asked_for_more_is_told_what_an_admin_decided_in_lab_and_once_in_the_notebook(
    hub: Hub, loud_lab: Lab
) -> None:
    page, service = loud_lab.page, "/services/bulletin"
    hub.make_user("admin")
    cells = ('%gpu request --time 4h --why "my thesis"', "%%gpu\nprint('one')", "%%gpu\nprint('two')", "%gpu")
    with loud_lab.notebook("asks", *cells) as notebook:
        notebook.run(0)
        expect(notebook.output(0)).to_contain_text("or an admin decides")
        with page.expect_response(
            lambda one: "/bulletin/v1/cells" in one.url and '"awaits_decision":true' in one.text()
        ):
            pass  # Lab has heard that it is open
        token = hub.token_of("admin")
        asked = hub.api("GET", "/api/v1/allowances", token=token, base=service)["rows"][0]
        decision = {"for_ms": 3_600_000, "sentence": "good luck"}
        hub.api("POST", f"/api/v1/allowances/{asked['id']}/grant", decision, token=token, base=service)
        told = page.locator(".Toastify__toast").filter(has_text="admin granted what you asked for")
        expect(told).to_contain_text(re.compile(r"Cells of up to 4 h in project '\w+', until .* \d\d:\d\d"))
        notebook.run(1, 2, 3)
        expect(notebook.output(1)).to_contain_text(
            re.compile(r"admin granted what you asked for: .*, until .*good luck")
        )
        expect(notebook.output(2)).to_have_text(re.compile(r"^two"))
        expect(notebook.output(3)).not_to_contain_text("granted what you asked for")
        expect(notebook.output(3)).to_contain_text("Granted by admin until")


def test_a_cell_that_lost_its_notebook_has_the_command_that_brings_it(hub: Hub, loud_lab: Lab) -> None:
    page = loud_lab.page
    with Kernel(hub, "ada") as lost:
        sent = lost.send("%%gpu --background job --label lost\nimport time\nprint('it began')\ntime.sleep(600)").wait()
        while "it began" not in sent.text:  # a cell whose variables are still on the way ends with its kernel
            lost.take_one()
        panel = open_panel(page)
        expect(panel.get_by_role("region", name="Running")).to_contain_text("Running for")
        lost.restart()
        card = panel.get_by_role("region", name="Without a notebook").get_by_role("listitem")
        expect(card).to_contain_text("Its notebook is gone: running")
        command = card.locator("code").inner_text()
        assert re.fullmatch(r"%gpu attach [0-9a-f]{8}", command)
        attached = lost.send(command).wait(lambda run: "it began" in run.text)
        stop(panel.get_by_role("region", name="Running"))
        attached.wait()


def test_nothing_is_seen_by_who_has_no_pool(hub: Hub, loud_lab: Lab) -> None:
    browser = loud_lab.page.context.browser
    assert browser is not None
    page = browser.new_context().new_page()
    lab = Lab(hub, page, "carol")
    with page.expect_response("**/bulletin/v1/cells**") as answer:
        lab.enter(page)
    assert json.loads(answer.value.text())["pool"] == "none"
    with lab.notebook("alone", "x = 1") as notebook:
        notebook.edit(0)
        notebook.run(0)
        expect(notebook.cell(0).locator(f"{TOGGLE}:visible")).to_have_count(0)
        expect(page.locator(".bulletin-StatusItem:visible")).to_have_count(0)
        expect(page.locator(".bulletin-Panel")).to_have_count(0)
