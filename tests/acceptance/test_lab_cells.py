"""Cells in JupyterLab as people see and touch them: widgets, questions, the stop button, the panel, the keys."""

import re

import pytest
from playwright.sync_api import expect

from tests.acceptance.hub import Hub
from tests.acceptance.lab import Gate, Lab, picture
from tests.acceptance.notebook import Kernel

pytestmark = pytest.mark.browser

SLIDER = """%%gpu
import ipywidgets as widgets

slider = widgets.IntSlider(description="side", value=3, max=9)
answer = widgets.Label()

def show(change):
    place = "in the notebook" if os.getpid() == here else "on the pool"
    answer.value = f"{change.new} squared is {change.new ** 2}, computed {place}"

slider.observe(show, "value")
widgets.VBox([slider, answer])"""


def test_a_progress_bar_is_seen_moving_and_ends_full(lab: Lab, gate: Gate) -> None:
    training = """%%gpu
from tqdm.notebook import tqdm

for epoch in tqdm(range(8), desc="training", mininterval=0):
    if epoch == 2:
        wait()"""
    with lab.notebook("bar", gate.cell, training) as notebook:
        notebook.run(0)
        notebook.start(1)
        bar = notebook.output(1).locator(".progress-bar")
        expect(notebook.output(1)).to_contain_text("2/8")
        whole = bar.locator("..").bounding_box()
        part = bar.bounding_box()
        assert whole is not None
        assert part is not None
        assert 0.2 < part["width"] / whole["width"] < 0.3
        gate.open()
        notebook.wait(1)
        expect(notebook.output(1)).to_contain_text("100%")
        expect(notebook.output(1)).to_contain_text("8/8")
        expect(notebook.output(1).locator(".progress-bar-success")).to_have_count(1)


def test_a_slider_that_is_moved_by_its_keys_is_answered_on_the_pool(lab: Lab, gate: Gate) -> None:
    with lab.notebook("slider", gate.cell, SLIDER, "slider.value") as notebook:
        notebook.run(0, 1)
        handle = notebook.output(1).get_by_role("slider")
        handle.press("ArrowRight")
        expect(notebook.output(1)).to_contain_text("4 squared is 16, computed on the pool")
        handle.press("ArrowRight")
        expect(notebook.output(1)).to_contain_text("5 squared is 25, computed on the pool")
        picture("widgets", notebook.cell(1))
        notebook.run(2)
        expect(notebook.output(2)).to_contain_text("5")


def test_a_cell_asks_and_a_password_is_not_shown(lab: Lab) -> None:
    asking = """%%gpu
from getpass import getpass

who = input("Who are you? ")
key = getpass("Your key: ")
print(f"{who}'s key has {len(key)} letters")"""
    with lab.notebook("asking", asking) as notebook:
        notebook.start(0)
        box = notebook.output(0).locator("input.jp-Stdin-input")
        box.fill("Ada")
        box.press("Enter")
        secret = notebook.output(0).locator("input.jp-Stdin-input[type=password]")
        secret.fill("wintergreen")
        picture("input", notebook.cell(0))
        secret.press("Enter")
        notebook.wait(0)
        expect(notebook.output(0)).to_contain_text("Who are you?  Ada")
        expect(notebook.output(0)).to_contain_text("Ada's key has 11 letters")
        assert "wintergreen" not in notebook.page.content()
        assert "wintergreen" not in str(notebook.outputs(0))


def test_the_stop_button_ends_a_cell_and_what_it_did_is_kept(lab: Lab, gate: Gate) -> None:
    long = "%%gpu\ndone = []\nfor number in range(3):\n    done.append(number)\nprint('three')\nwait()\ndone.append(99)"
    with lab.notebook("stopped", gate.cell, long, "done") as notebook:
        notebook.run(0)
        notebook.start(1)
        expect(notebook.output(1)).to_contain_text("three")
        notebook.press("Interrupt the kernel")
        notebook.wait(1)
        expect(notebook.output(1)).to_contain_text("KeyboardInterrupt")
        notebook.run(2)
        expect(notebook.output(2)).to_contain_text("[0, 1, 2]")


def test_the_stop_button_takes_a_cell_out_of_the_queue(hub: Hub, lab: Lab, gate: Gate) -> None:
    with (
        Kernel(hub, "ada") as other,
        lab.notebook("queued", "ran = 'not yet'", "%%gpu\nran = 'yes'", "ran") as notebook,
    ):
        other.run(gate.cell)
        holding = other.send("%%gpu\nprint('held')\nwait()").wait(lambda run: "held" in run.text)
        notebook.run(0)
        notebook.start(1)
        expect(notebook.output(1)).to_contain_text("1st in line")
        expect(notebook.output(1)).to_contain_text("busy")
        notebook.press("Interrupt the kernel")
        notebook.wait(1)
        expect(notebook.output(1)).to_have_text(
            "CellStopped: The cell was stopped before it ran. Your variables are as before the cell."
        )
        notebook.run(2)
        expect(notebook.output(2)).to_contain_text("'not yet'")
        gate.open()
        assert holding.wait().error is None


def test_a_failed_cell_shows_its_own_lines_and_no_others(lab: Lab) -> None:
    with lab.notebook("failed", "%%gpu\ndef inverse(x):\n    return 1 / x\ninverse(0)") as notebook:
        notebook.run(0)
        shown = notebook.output(0).inner_text()
        assert "Cell In[1], line 4" in shown
        assert "----> 4 inverse(0)" in shown
        assert "ZeroDivisionError: division by zero" in shown
        assert "bulletin" not in shown
        assert "gpu_worker" not in shown


def test_a_background_cell_says_where_it_is_while_the_notebook_goes_on(lab: Lab, gate: Gate) -> None:
    cells = (
        "%%gpu --background train\nprint('on its way')\nwait()\nmodel = 'trained'\nlen(model)",
        "1 + 1",
        "train.result(), model",
    )
    with lab.notebook("background", gate.cell, *cells) as notebook:
        notebook.run(0, 1)
        expect(notebook.output(1)).to_contain_text("train: ▶ running")
        expect(notebook.output(1)).to_contain_text("on its way")
        notebook.run(2)
        expect(notebook.output(2)).to_contain_text("2")
        gate.open()
        expect(notebook.output(1)).to_contain_text("train: ✓ ran")
        expect(notebook.output(1).locator(".jp-OutputArea-output").last).to_have_text("7")
        expect(notebook.output(1).locator(".jp-OutputPrompt").last).to_have_text("")  # no Out[n] is it
        notebook.run(3)
        expect(notebook.output(3)).to_contain_text("(7, 'trained')")


def test_the_panel_shows_who_has_the_slot_and_who_waits(hub: Hub, lab: Lab, gate: Gate) -> None:
    with (
        Kernel(hub, "ada") as other,
        lab.notebook(
            "panel", gate.cell, "%%gpu\ntotal = sum(range(10))", "%%gpu --background train\nwait()", "%gpu"
        ) as notebook,
    ):
        notebook.run(0, 1, 2)
        expect(notebook.output(2)).to_contain_text(re.compile(r"train: ▶ running for [1-9]"))
        waiting = other.send("%%gpu\nprint('at last')").wait(lambda run: "in line" in run.text)
        notebook.run(3)
        panel = notebook.output(3)
        expect(panel).to_contain_text("The pool of this hub: 1 CPU slot (1 running a cell)")
        expect(panel).to_contain_text("In the background, train: ▶ running")
        expect(panel).to_contain_text("Waiting: 1.")
        expect(panel.get_by_role("row").filter(has_text="running a cell").first).to_contain_text("ada")
        expect(panel).to_contain_text("the only CPU slot is busy")
        picture("panel", notebook.cell(3))
        gate.open()
        assert "at last" in waiting.wait().text


def test_a_block_runs_on_the_pool_and_its_names_are_those_of_the_loop(lab: Lab) -> None:
    loop = """total, places = 0, []
for number in range(4):
    with gpu:
        total += number
        places.append(os.getpid())
total, os.getpid() in places"""
    with lab.notebook("block", "import os", loop) as notebook:
        notebook.run(0, 1)
        expect(notebook.output(1)).to_contain_text("(6, False)")


def test_the_tab_key_offers_options_and_a_question_mark_explains_them(lab: Lab) -> None:
    with lab.notebook("keys", "%%gpu --ma", "%%gpu --", "%%gpu?") as notebook:
        notebook.ready()
        notebook.edit(1)
        notebook.page.keyboard.press("End")
        notebook.page.keyboard.press("Tab")
        offered = notebook.page.locator(".jp-Completer:visible")
        expect(offered).to_contain_text("--gpus")
        assert "--print" not in offered.inner_text()
        notebook.page.keyboard.press("Escape")
        notebook.edit(0)
        notebook.page.keyboard.press("End")
        notebook.page.keyboard.press("Tab")
        expect(offered).to_contain_text("option")
        notebook.page.keyboard.press("Enter")
        expect(notebook.cell(0).locator(".cm-content")).to_have_text("%%gpu --max-wait")
        notebook.run(2)
        expect(notebook.output(2)).to_contain_text("--max-wait TIME")
