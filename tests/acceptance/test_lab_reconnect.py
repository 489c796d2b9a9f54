"""A tab that is closed, a kernel that dies, and one that is restarted, each in the middle of a cell."""

import os
import re
import signal
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.lab import Gate, Lab, Notebook, picture

pytestmark = pytest.mark.browser

LONG = """%%gpu --label training
import sys
from IPython.display import HTML
state = display(HTML("<b>begun</b>"), display_id=True)
for epoch in range(12):
    if epoch == 6:
        wait()
    print(f"epoch {epoch} · loss {1 / (epoch + 1):.3f}")
    if epoch % 4 == 3:
        print("the learning rate is halved", file=sys.stderr)
        state.update(HTML(f"<b>{epoch + 1} of 12 epochs</b>"))
losses = [1 / (epoch + 1) for epoch in range(12)]
len(losses)"""


def shown(notebook: Notebook, number: int) -> list[dict[str, Any]]:
    """All that a cell shows, less the numbers of prompts."""
    outputs = notebook.outputs(number)
    for output in outputs:
        output.pop("execution_count", None)
    return outputs


def pid_of_kernel(notebook: Notebook, number: int) -> int:
    """What the cell with `here` in it shows."""
    return int(notebook.output(number).locator("pre").inner_text())


def open_anew(lab: Lab, notebook: Notebook) -> None:
    """Close the tab while a cell runs, and open the notebook in another one."""
    closed, again = lab.page, lab.page.context.new_page()
    closed.close()
    lab.enter(again)
    notebook.open(is_free=False)


def test_a_cell_whose_tab_is_closed_goes_on_and_its_variables_are_there(lab: Lab, gate: Gate) -> None:
    with lab.notebook("closed", gate.cell, LONG, "len(losses)") as notebook:
        notebook.run(0)
        notebook.start(1)
        expect(notebook.output(1)).to_contain_text("epoch 5 ·")
        notebook.save()
        closed, gone = lab.page, lab.page.context.new_page()
        closed.close()
        gate.open()
        lab.enter(gone)
        notebook.open()
        expect(notebook.output(1)).to_contain_text("epoch 5 ·")  # what had been seen is in the file
        notebook.run(2)
        expect(notebook.output(2)).to_contain_text("12")


def test_a_page_that_is_opened_anew_is_told_what_it_missed_and_shows_all_of_it(lab: Lab, gate: Gate) -> None:
    with lab.notebook("missed", gate.cell, LONG, "len(losses)", "%gpu attach ") as notebook:
        notebook.run(0)
        notebook.start(1)
        expect(notebook.output(1)).to_contain_text("epoch 5 ·")
        notebook.save()
        open_anew(lab, notebook)
        gate.open()
        notebook.run(2)
        text = notebook.output(2).get_by_role("note").inner_text()
        told = re.fullmatch(
            r"Cell \[(\d+)\] went on while this page was closed: `%gpu attach \1` shows all that it showed.", text
        )
        assert told is not None, text
        notebook.edit(3)
        notebook.page.keyboard.press("End")
        notebook.page.keyboard.type(told[1])
        notebook.run(3)
        picture("missed", [notebook.cell(2), notebook.cell(3)])
        line, *anew = shown(notebook, 3)
        assert f"All that cell [{told[1]}] showed. It ended" in str(line)
        notebook.run(1, 2)
        expect(notebook.output(2)).not_to_contain_text("closed")
        whole = shown(notebook, 1)
        assert [as_display(output) for output in whole] == anew
        assert "epoch 11 ·" in str(anew)


def as_display(output: dict[str, Any]) -> dict[str, Any]:
    """A value without its number."""
    return {**output, "output_type": output["output_type"].replace("execute_result", "display_data")}


def test_a_cell_whose_kernel_is_killed_is_attached_with_all_that_it_shows(lab: Lab, gate: Gate) -> None:
    with lab.notebook(
        "killed", f"{gate.cell}\nhere", LONG, "%gpu attach", "%gpu attach ", "sum(losses) > 3"
    ) as notebook:
        notebook.run(0)
        notebook.start(1)
        expect(notebook.output(1)).to_contain_text("epoch 5 ·")
        notebook.save()
        open_anew(lab, notebook)
        indicator = notebook.panel.locator(".jp-Notebook-ExecutionIndicator")
        expect(indicator).to_have_attribute("data-status", "busy")  # before, the page does not notice that it dies
        os.kill(pid_of_kernel(notebook, 0), signal.SIGKILL)
        notebook.page.locator(".jp-Dialog").get_by_role("button", name="Ok").click()
        found = None
        while found is None:  # a notebook that has just died counts as there for some seconds
            notebook.run(2)
            text = notebook.output(2).inner_text()
            found = re.search(r"^(\w{8}) \[training\]  import sys  \(running", text, re.MULTILINE)
        assert f"`%gpu attach {found[1]}` shows all that this cell printed" in notebook.output(2).inner_text()
        notebook.edit(3)
        notebook.page.keyboard.press("End")
        notebook.page.keyboard.type(found[1])
        notebook.start(3)
        expect(notebook.output(3)).to_contain_text("epoch 5 ·")
        gate.open()
        notebook.wait(3)
        picture("attach", [notebook.cell(2), notebook.cell(3)])
        notebook.run(4)
        expect(notebook.output(4)).to_contain_text("True")
        attached = shown(notebook, 3)
        notebook.run(0, 1)
        assert attached == shown(notebook, 1)
        assert "epoch 11 ·" in str(attached)


def test_a_cell_whose_kernel_is_restarted_goes_on_and_is_attached(lab: Lab, gate: Gate) -> None:
    cell = LONG.replace("training", "restarted")
    with lab.notebook(
        "restarted", gate.cell, cell, "'here' in dir()", "%gpu attach", "%gpu attach ", "sum(losses) > 3"
    ) as notebook:
        notebook.run(0)
        notebook.start(1)
        expect(notebook.output(1)).to_contain_text("epoch 5 ·")
        notebook.press("Restart the kernel")
        notebook.page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
        expect(notebook.cell(1).locator(".jp-InputPrompt")).to_have_text("[ ]:")
        notebook.run(2, 3)
        expect(notebook.output(2)).to_contain_text("False")
        found = re.search(r"^(\w{8}) \[restarted\]", notebook.output(3).inner_text(), re.MULTILINE)
        assert found is not None
        notebook.edit(4)
        notebook.page.keyboard.press("End")
        notebook.page.keyboard.type(found[1])
        notebook.start(4)
        expect(notebook.output(4)).to_contain_text("epoch 5 ·")
        gate.open()
        notebook.wait(4)
        expect(notebook.output(4)).to_contain_text("epoch 11 ·")
        notebook.run(5)
        expect(notebook.output(5)).to_contain_text("True")
