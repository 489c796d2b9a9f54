"""JupyterLab in a real browser, used as its user does: notebooks, their cells, the buttons and the keys."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from tests.acceptance.hub import REPOSITORY, Hub

#: The prompt of a cell that has run, of one that runs or waits to, and of either.
DONE, BUSY, BEGUN = re.compile(r"^\[\d+\]:$"), re.compile(r"^\[\*\]:$"), re.compile(r"^\[(\d+|\*)\]:$")
_PICTURES = REPOSITORY / "docs" / "images"


def log_in(hub: Hub, page: Page, user: str, password_file: str = "password") -> None:
    """Through the hub's own form."""
    page.goto(f"{hub.address}/hub/login")
    page.fill("#username_input", user)
    page.fill("#password_input", (hub.run / password_file).read_text())
    page.click("#login_submit")


class Gate:
    """A file that cells wait for: how far they get is then for the test to say."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "gate"

    @property
    def cell(self) -> str:
        """A cell that defines `wait`, which waits until the gate is open."""
        return f"""import os, time
here = os.getpid()
def wait():
    while not os.path.exists({str(self._file)!r}):
        time.sleep(0.02)"""

    def open(self) -> None:
        """Let all go on."""
        self._file.touch()


class Lab:
    """JupyterLab of one user, who is logged in. `page` is the tab that it is in."""

    def __init__(self, hub: Hub, page: Page, user: str) -> None:
        self.page, self.user = page, user
        self._hub = hub
        log_in(hub, page, user)
        page.wait_for_url(f"**/user/{user}/lab**")
        self._token = hub.token_of(user)
        quiet = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
        self.set_settings("@jupyterlab/apputils-extension:notification", quiet)
        self.enter(page)

    def set_settings(self, plugin: str, values: dict[str, Any]) -> None:
        """Change what the user has set of a plugin; Lab knows it when it is opened next."""
        self._api("PUT", f"/settings/{plugin}", {"raw": json.dumps(values)}, at="lab/")

    def enter(self, page: Page) -> None:
        """Open Lab in this tab, with no notebook in it."""
        self.page = page
        page.goto(f"{self._hub.address}/user/{self.user}/lab?reset")
        page.locator(".jp-Launcher").first.wait_for()

    def notebook(self, name: str, *cells: str) -> "Notebook":
        """A new notebook with these cells, open, with a kernel that is ready. Gone with its `with` block."""
        sources = [
            {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
            for source in cells
        ]
        kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
        content = {"cells": sources, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
        model = {"type": "notebook", "format": "json", "content": content}
        self._api("PUT", f"/contents/{quote(name)}.ipynb", model)
        return Notebook(self, f"{name}.ipynb").open()

    def notebooks(self) -> list[str]:
        """The paths of all notebooks in the home, but for those in its folders."""
        return sorted(file["path"] for file in self._api("GET", "/contents/")["content"] if file["type"] == "notebook")

    def saved(self, path: str) -> list[dict[str, Any]]:
        """The cells of a notebook as its file has them."""
        cells: list[dict[str, Any]] = self._api("GET", f"/contents/{quote(path)}")["content"]["cells"]
        return cells

    def end_kernel_of(self, path: str) -> None:
        """End the session of a notebook, whatever it does; no matter if it has none."""
        for session in self._api("GET", "/sessions"):
            if session["path"] == path:
                self._api("DELETE", f"/sessions/{session['id']}")

    def choose(self, menu: str, item: str) -> None:
        """Choose something in the menu bar."""
        self.page.get_by_role("menuitem", name=menu, exact=True).click()
        self.page.get_by_role("menuitem", name=item, exact=True).click()

    def _api(self, method: str, path: str, body: object = None, at: str = "") -> Any:
        return self._hub.api(method, path, body, self._token, f"/user/{self.user}/{at}api")


class Notebook:
    """One notebook in Lab. Cells are counted from 0."""

    def __init__(self, lab: Lab, path: str) -> None:
        self._lab, self.path = lab, path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._lab.end_kernel_of(self.path)

    def open(self, *, is_free: bool = True) -> Self:
        """Open it by its path, and wait for its kernel: Lab forgets what is run before it has spoken.

        Not `is_free`: the kernel has a cell under way.
        """
        with self.page.expect_websocket(lambda socket: "/channels" in socket.url) as kernel:
            self._lab.choose("File", "Open from Path…")
            dialog = self.page.locator(".jp-Dialog")
            dialog.get_by_role("textbox").fill(self.path)
            dialog.get_by_role("button", name="Open").click()
        kernel.value.wait_for_event("framereceived")
        if is_free:
            self.ready()
        expect(self.panel.locator(":focus")).to_have_count(1)  # Lab takes the cursor once, when all is built
        return self

    @property
    def page(self) -> Page:
        """The tab that it is in."""
        return self._lab.page

    @property
    def panel(self) -> Locator:
        """All of it that can be seen."""
        return self.page.locator(".jp-NotebookPanel:visible")

    def cell(self, number: int) -> Locator:
        """A cell with its prompts and outputs."""
        return self.panel.locator(".jp-CodeCell").nth(number)

    def output(self, number: int) -> Locator:
        """What a cell shows below its code."""
        return self.cell(number).locator(".jp-Cell-outputArea")

    def edit(self, number: int) -> None:
        """Put the cursor into a cell."""
        self.cell(number).locator(".cm-content").click()

    def ready(self) -> None:
        """Wait until its kernel is idle, by the notebook's toolbar, or by the status bar where that one is narrow."""
        in_toolbar = self.panel.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        in_status_bar = self.page.get_by_role("button", name=re.compile(r"^Python 3.*\| Idle$"))
        expect(in_toolbar.or_(in_status_bar).first).to_be_attached()

    def start(self, number: int) -> None:
        """Run a cell by its keys, once the kernel is free; it need not end."""
        self.ready()
        self.edit(number)
        self.page.keyboard.press("Shift+Enter")

    def wait(self, number: int) -> None:
        """Wait until a cell has ended, in whatever way."""
        expect(self.cell(number).locator(".jp-InputPrompt")).to_have_text(DONE)

    def run(self, *numbers: int) -> None:
        """Run cells by their keys, one after the other, each to its end."""
        for number in numbers:
            self.start(number)
            self.wait(number)

    def start_all(self) -> None:
        """Run it whole, by the menu; it need not end."""
        self._lab.choose("Run", "Run All Cells")
        expect(self._prompts.first).to_have_text(BEGUN)  # Lab marks all cells at once

    def wait_all(self) -> None:
        """Wait until no cell runs or waits to. After a cell that failed there are some that have not run."""
        expect(self._prompts.filter(has_text=BUSY)).to_have_count(0)

    @property
    def _prompts(self) -> Locator:
        return self.panel.locator(".jp-CodeCell .jp-InputPrompt")

    def press(self, button: str) -> None:
        """Press a button of the notebook's own bar, by what it says; the key that does the same may follow."""
        name = re.compile(rf"^{re.escape(button)}( \(.*\))?$")
        self.panel.get_by_role("toolbar").get_by_role("button", name=name).click()

    def save(self) -> None:
        """Write it into its file."""
        self.press("Save and create checkpoint")
        expect(self.page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty")).to_have_count(0)

    def code_cells(self) -> list[dict[str, Any]]:
        """All code cells with their outputs, as the saved file has them."""
        self.save()
        return [cell for cell in self._lab.saved(self.path) if cell["cell_type"] == "code"]

    def outputs(self, number: int) -> list[dict[str, Any]]:
        """What a cell shows, as the saved file has it: the same for the same outputs, byte by byte."""
        self.save()
        outputs: list[dict[str, Any]] = self._lab.saved(self.path)[number]["outputs"]
        return outputs


def picture(name: str, shown: Page | Locator | Sequence[Locator]) -> None:
    """Keep what is seen there, or all of the page, as docs/images/NAME.png, where pictures are asked for."""
    if not os.environ.get("BULLETIN_SCREENSHOTS"):
        return
    if isinstance(shown, Page):
        shown.screenshot(path=_PICTURES / f"{name}.png")
        return
    parts = [shown] if isinstance(shown, Locator) else shown
    page = parts[0].page
    page.mouse.move(0, 0)
    parts[0].scroll_into_view_if_needed()
    boxes = [box for box in (part.bounding_box() for part in parts) if box is not None]
    left, top = min(box["x"] for box in boxes), min(box["y"] for box in boxes)
    right, bottom = max(box["x"] + box["width"] for box in boxes), max(box["y"] + box["height"] for box in boxes)
    floor = page.locator(".jp-NotebookPanel:visible").bounding_box()
    assert floor is not None
    assert bottom <= floor["y"] + floor["height"], f"the picture {name} does not fit into the window"
    area = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    page.screenshot(path=_PICTURES / f"{name}.png", clip=area)  # type: ignore[arg-type]
