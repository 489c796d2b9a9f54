"""Widgets of %%gpu cells: what they say reaches the front end, what their views say reaches their callbacks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import PATIENCE_S, Notebook, Output, PoolProcess

pytest.importorskip("ipywidgets")


def say(notebook: Notebook, comm_id: str, state: dict[str, object], **header: str) -> str:
    """Let the view of a widget say that its user has set this; the id of its message."""
    data = {"method": "update", "state": state, "buffer_paths": []}
    message = notebook.client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
    message["header"].update(header)
    notebook.client.shell_channel.send(message)
    return str(message["header"]["msg_id"])


def moved(notebook: Notebook, comm_id: str, **state: object) -> Output:
    """What is shown when the view of a widget says that its user has set this."""
    said = say(notebook, comm_id, state)
    shown: list[dict[str, Any]] = []
    while True:
        came = notebook.client.get_iopub_msg(timeout=PATIENCE_S)
        if came["parent_header"].get("msg_id") != said:
            continue
        if came["msg_type"] == "status" and came["content"]["execution_state"] == "idle":
            return Output(shown, {})
        shown.append(came)


def updates(output: Output) -> list[dict[str, object]]:
    """What the widgets of the kernel's side have told their views."""
    return [said["data"]["state"] for said in output.of("comm_msg")]


_VIEW = "application/vnd.jupyter.widget-view+json"
SLIDER = """%%gpu
import os
import ipywidgets as widgets
there, seen = os.getpid(), []
def follow(change):
    print('moved to', change.new)
    seen.append((change.new, os.getpid() == there))
slider = widgets.IntSlider(value=3)
slider.observe(follow, 'value')
slider"""


def test_a_slider_moves_its_callback_on_the_pool_and_what_that_changes_comes_back(notebook: Notebook) -> None:
    made = notebook.run(SLIDER)
    assert made.error is None, made.shown
    comm_id = made.of("execute_result")[0]["data"][_VIEW]["model_id"]
    assert comm_id in [opened["comm_id"] for opened in made.of("comm_open")]
    assert moved(notebook, comm_id, value=7).stream() == "moved to 7\n"
    assert notebook.value("(slider.value, seen)") == "(7, [(7, True)])"
    # A value that the notebook sets reaches the view, and the widget on the pool.
    assert updates(notebook.run("slider.value = 9")) == [{"value": 9}]
    assert notebook.run("%%gpu\nprint(slider.value, len(seen))").stream() == "9 2\n"


def test_a_widget_outlives_its_executor_in_the_notebook(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(pool)
    made = notebook.run(SLIDER)
    comm_id = notebook.value("slider.model_id").strip("'")
    assert made.error is None, made.shown
    notebook.run("%gpu stop")
    assert moved(notebook, comm_id, value=5).stream() == "moved to 5\n"
    assert notebook.value("(slider.value, seen)") == "(5, [(5, False)])"


def test_a_widget_of_the_notebook_is_updated_live_by_a_cell(notebook: Notebook) -> None:
    comm_id = notebook.run("import ipywidgets as widgets\nbar = widgets.IntProgress(max=9)\nbar.model_id").result
    assert comm_id is not None
    counted = notebook.run("%%gpu\nfor _ in range(3):\n    bar.value += 1\nprint('done')")
    assert {said["comm_id"] for said in counted.of("comm_msg")} == {comm_id.strip("'")}
    assert updates(counted) == [{"value": 1}, {"value": 2}, {"value": 3}]
    assert counted.of("comm_open") == []
    assert notebook.value("bar.value") == "3"


def test_callbacks_of_a_widget_of_the_notebook_run_in_the_notebook_whoever_has_set_them(notebook: Notebook) -> None:
    """What a cell does to the widget is there when the cell does it."""
    made = notebook.run(
        "import ipywidgets as widgets, os\nhome, moves = os.getpid(), []\n"
        "def follow(change):\n    moves.append((change['new'], os.getpid() == home))\n"
        "slider = widgets.IntSlider(max=9)\nslider.observe(follow, 'value')\nslider.model_id"
    )
    assert made.result is not None
    comm_id = made.result.strip("'")
    notebook.run("%%gpu\nslider.value = 3\nslider.observe(lambda change: print('home', os.getpid() == home), 'value')")
    assert notebook.value("moves") == "[(3, False)]"
    assert moved(notebook, comm_id, value=5).stream() == "home True\n"
    assert notebook.value("moves") == "[(3, False), (5, True)]"
    assert notebook.run("%%gpu\nprint(slider.value, moves)").stream() == "5 [(3, False), (5, True)]\n"


def test_an_output_widget_catches_what_the_cell_prints_in_it(notebook: Notebook) -> None:
    notebook.run("import ipywidgets as widgets")
    message_id = notebook.start(
        "%%gpu\nbox = widgets.Output()\ndisplay(box)\nwith box:\n    print('caught')\n    1 / 0\nprint('free')"
    )
    shown = notebook.collect(message_id)
    kinds = [m["msg_type"] for m in shown.messages if m["msg_type"] in ("comm_msg", "stream", "error")]
    assert kinds == ["comm_msg", "stream", "error", "comm_msg", "stream"]
    assert updates(shown) == [{"msg_id": message_id}, {"msg_id": ""}]
    assert shown.of("error")[0]["ename"] == "ZeroDivisionError"
    assert shown.reply["status"] == "ok"


def test_buffers_reach_the_front_end_as_they_are(notebook: Notebook) -> None:
    shown = notebook.run(
        "%%gpu\nimport ipywidgets as widgets\nimage = widgets.Image(value=bytes(range(256)), format='png')"
    )
    opened = [m for m in shown.messages if m["msg_type"] == "comm_open" and m["buffers"]]
    assert [bytes(buffer) for m in opened for buffer in m["buffers"]] == [bytes(range(256))]
    assert notebook.value("image.value == bytes(range(256))") == "True"


def test_progress_bars_look_as_in_a_notebook(notebook: Notebook) -> None:
    pytest.importorskip("tqdm")
    shown = notebook.run("%%gpu\nfrom tqdm.auto import tqdm\nfor _ in tqdm(range(3)): pass")
    assert shown.error is None, shown.shown
    assert shown.stream("stderr") == ""
    assert {"bar_style": "success"} in updates(shown)
    pytest.importorskip("rich")
    shown = notebook.run("%%gpu\nfrom rich.progress import track\nfor _ in track(range(3)): pass")
    assert any("100%" in shown["data"]["text/plain"] for shown in shown.of("display_data"))


INTERACT = """%%gpu
import ipywidgets, math
scale = 10
def draw(x):
    if x == 2:
        raise ValueError('two')
    print(math.sqrt(x) * scale)
ipywidgets.interact(draw, x=(0, 9));"""


def slider_of(shown: Output) -> str:
    """The comm of the slider that was shown."""
    opened = {one["data"]["state"]["_model_name"]: one["comm_id"] for one in shown.of("comm_open")}
    return str(opened["IntSliderModel"])


def test_a_callback_reads_the_notebooks_names_as_they_are_when_it_is_called(notebook: Notebook) -> None:
    comm_id = slider_of(notebook.run(INTERACT))
    assert moved(notebook, comm_id, value=9).stream() == "30.0\n"
    notebook.run("%%gpu\nother = 1")
    notebook.run("scale = 100")
    assert moved(notebook, comm_id, value=1).stream() == "100.0\n"
    failed = moved(notebook, comm_id, value=2).of("error")
    assert [(error["ename"], error["evalue"]) for error in failed] == [("ValueError", "two")]


def test_what_a_view_says_in_a_thread_of_its_own_is_heard_when_the_cell_has_ended(notebook: Notebook) -> None:
    client = notebook.client
    client.control_channel.send(client.session.msg("create_subshell_request", {}))
    created = client.get_control_msg(timeout=PATIENCE_S)["content"]
    assert created["status"] == "ok"
    comm_id = slider_of(notebook.run(INTERACT))
    message_id = notebook.start("%%gpu\nanswer = input('now?')\nprint('cell over')")
    client.get_stdin_msg(timeout=PATIENCE_S)
    said = say(notebook, comm_id, {"value": 9}, subshell_id=created["subshell_id"])
    while client.get_iopub_msg(timeout=PATIENCE_S)["parent_header"].get("msg_id") != said:
        pass  # until the kernel is busy with it
    client.input("yes")
    printed: list[tuple[str, str]] = []
    while len(printed) < 2:
        came = client.get_iopub_msg(timeout=PATIENCE_S)
        if came["msg_type"] == "stream":
            printed.append((came["parent_header"]["msg_id"], came["content"]["text"]))
    assert printed == [(message_id, "cell over\n"), (said, "30.0\n")]


def test_a_widget_of_a_background_cell_is_heard_once_the_cell_has_ended(notebook: Notebook, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    waits = f"display(slider)\nwhile not os.path.exists({str(gate)!r}):\n    pass"
    begun = notebook.start(SLIDER.removesuffix("slider").replace("%%gpu", "%%gpu --background later") + waits)
    notebook.collect(begun)
    under: list[dict[str, Any]] = []

    def follow(is_enough: Callable[[dict[str, Any]], bool]) -> None:
        """Gather what is shown under the cell, until a message is enough."""
        while True:
            came = notebook.client.get_iopub_msg(timeout=PATIENCE_S)
            under.extend([came] if came["parent_header"].get("msg_id") == begun else [])
            if is_enough(came):
                return

    follow(lambda _: _VIEW in str(under))
    comm_id = next(m["content"]["data"][_VIEW]["model_id"] for m in under if _VIEW in m["content"].get("data", {}))
    said = say(notebook, comm_id, {"value": 5})
    follow(lambda came: came["parent_header"].get("msg_id") == said and came["content"] == {"execution_state": "idle"})
    assert Output(under, {}).shown.count("later is still running: its widgets hear nobody until it has ended.") == 1
    gate.touch()
    follow(lambda _: "✓ ran" in str(under))
    assert moved(notebook, comm_id, value=7).stream() == "moved to 7\n"
    assert notebook.value("(slider.value, seen)") == "(7, [(7, False)])"
