"""Jupyter Notebook 7, which is another page than JupyterLab: it has the button, and the panel by the palette."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.conftest import tab
from tests.acceptance.hub import Hub
from tests.acceptance.lab import DONE, log_in

BUILT = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "@bulletin" / "lab" / "package.json"
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}


@pytest.fixture
def notebook(hub: Hub) -> Iterator[Page]:
    """A notebook with one cell, opened in Notebook 7 by ada."""
    if not BUILT.exists():
        assert not os.environ.get("CI"), "CI builds the extension"
        pytest.skip("the extension of JupyterLab is not built: python3 make.py lab")
    hub.start_server("ada")
    cell: dict[str, Any] = {
        "cell_type": "code",
        "metadata": {},
        "source": "x = 6\nx * 7",
        "outputs": [],
        "execution_count": None,
    }
    content = {"cells": [cell], "metadata": {"kernelspec": KERNEL}, "nbformat": 4, "nbformat_minor": 4}
    model = {"type": "notebook", "format": "json", "content": content}
    token = hub.token_of("ada")
    hub.api("PUT", "/contents/seven.ipynb", model, token, "/user/ada/api")
    with tab(1180, 900) as page:
        log_in(hub, page, "ada")
        page.wait_for_url("**/user/ada/**")
        with page.expect_websocket(lambda socket: "/channels" in socket.url) as kernel:
            page.goto(f"{hub.address}/user/ada/notebooks/seven.ipynb")
        kernel.value.wait_for_event("framereceived")  # what is run before its kernel has spoken is forgotten
        expect(page.locator(".jp-Notebook-ExecutionIndicator").first).to_have_attribute("data-status", "idle")
        yield page
        for session in hub.api("GET", "/sessions", None, token, "/user/ada/api"):
            if session["path"] == "seven.ipynb":
                hub.api("DELETE", f"/sessions/{session['id']}", None, token, "/user/ada/api")


def test_a_cell_becomes_a_gpu_cell_by_the_button_and_is_in_the_panel_that_the_palette_opens(notebook: Page) -> None:
    cell = notebook.locator(".jp-CodeCell").first
    cell.locator(".cm-content").click()
    button = cell.locator("[data-command='bulletin:toggle-gpu-cell']")
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    expect(cell.locator(".cm-line")).to_have_text(["%%gpu", "x = 6", "x * 7"])
    cell.locator(".cm-content").click()
    notebook.keyboard.press("Shift+Enter")
    expect(cell.locator(".jp-InputPrompt")).to_have_text(DONE)
    expect(cell.locator(".jp-Cell-outputArea")).to_contain_text("42")
    notebook.keyboard.press("Control+Shift+C")
    palette = notebook.locator(".lm-CommandPalette")
    palette.locator("input").fill("Show My Cells on the GPU Pool")
    palette.locator(".lm-CommandPalette-item").filter(has_text="Show My Cells on the GPU Pool").first.click()
    panel = notebook.locator(".bulletin-Panel")
    expect(panel).to_be_visible()
    expect(panel.get_by_role("region", name="Last cells").get_by_role("listitem").first).to_contain_text("ran ")
