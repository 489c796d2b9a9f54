"""A page of the notebook is closed while a cell runs, and opened anew: nothing that the cell showed is lost."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from tests.integration.conftest import PATIENCE_S, Notebook, Output, until

#: Waits in the middle for a file, goes on for a second, and shows one of everything. When the page came is known as
#: exactly as its first request was quick: a busy machine must not make it later than the cell's end.
LONG = """
import os, sys, time
bar = display({{'text/plain': 'begun'}}, raw=True, display_id=True)
for i in range(200):
    while i == 100 and not os.path.exists({gate!r}): time.sleep(0.01)
    while i == 101 and time.time() < os.path.getmtime({gate!r}) + 1: time.sleep(0.01)
    print(i, 'x' * 50)
    print(f'\\rstep {{i}} ü', end='', file=sys.stderr)
    bar.update({{'text/plain': f'{{i + 1}} of 200'}}, raw=True)
display('picture')
200 * 2
"""


class Page(Notebook):
    """Another page of the same kernel. Its first words wait until the cell has ended that runs."""

    def __init__(self, notebook: Notebook, *, is_greeted: bool = False) -> None:
        self.manager = notebook.manager
        self.client = BlockingKernelClient(connection_file=notebook.manager.connection_file)
        self.client.load_connection_file()
        self.client.start_channels()
        if is_greeted:
            self._greet()
        self.client.kernel_info()

    def _greet(self) -> None:
        """What a server may say for it, and the kernel answers though a cell runs."""
        hello = self.client.session.msg("kernel_info_request")
        self.client.control_channel.send(hello)
        while True:
            answer = self.client.get_control_msg(timeout=PATIENCE_S)
            if answer["parent_header"]["msg_id"] == hello["header"]["msg_id"]:
                break

    def close(self) -> None:
        self.client.stop_channels()


@pytest.fixture
def pages() -> Iterator[list[Page]]:
    opened: list[Page] = []
    yield opened
    for page in opened:
        page.close()


def seen(output: Output, *, skip: int = 0) -> dict[str, Any]:
    """What a screen shows of an output; `skip` leaves out the first things.

    How two streams mix, nobody promises, nor whether a cell took long enough for a receipt.
    """
    data: list[Any] = []
    displays: dict[str, int] = {}
    for message in output.messages:
        content, kind = message["content"], message["msg_type"]
        name = content.get("transient", {}).get("display_id", "")
        if kind == "update_display_data":
            data[displays[name]] = content["data"]
        elif kind in {"display_data", "execute_result"}:
            displays[name] = len(data)
            data.append(content["data"])
        elif kind == "error":
            data.append(content["traceback"])
    data = [one for one in data[skip:] if not (isinstance(one, dict) and one["text/plain"].startswith("ran "))]
    return {"data": data, "stdout": output.stream(), "stderr": as_seen(output.stream("stderr"))}


def as_seen(text: str) -> list[str]:
    """Each line as it was last overwritten."""
    return [line.rpartition("\r")[2] for line in text.split("\n")]


def number_of(output: Output) -> int:
    number: int = output.reply["execution_count"]
    return number


@pytest.mark.parametrize("is_greeted", [False, True])
def test_what_a_closed_page_missed_is_told_once_and_shown_anew(
    is_greeted: bool, notebook: Notebook, pages: list[Page], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    cell = "%%gpu" + LONG.format(gate=str(gate))
    asked = notebook.start_until(cell, shows="99 xxx")
    pages.append(Page(notebook, is_greeted=is_greeted))
    gate.touch()
    whole = notebook.collect(asked)  # the test's own eyes, on the page that is said to be closed
    first = pages[0].run("1 + 1")
    number = number_of(whole)
    told = f"Cell [{number}] went on while this page was closed: `%gpu attach {number}` shows all that it showed."
    assert told in first.shown
    assert first.shown.startswith("2\n"), "the cell's own outputs come first"
    assert "went on" not in pages[0].run("2 + 2").shown
    listed = pages[0].run("%gpu attach").stream()
    assert re.search(
        rf"^\[{number}\]  import os, sys, time  \(ended [\d.]+ m?s ago, while this page was closed\)$",
        listed,
        re.MULTILINE,
    )
    anew = pages[0].run(f"%gpu attach {number}")
    assert anew.shown.startswith(f"All that cell [{number}] showed. It ended ")
    again = notebook.run(cell)
    assert "199 xxx" in again.stream()
    assert seen(anew, skip=1) == seen(again)
    (line,) = re.findall(rf"^\[{number}\].*$", notebook.run("%gpu attach").stream(), re.MULTILINE)
    assert "closed" not in line


def test_a_page_that_asks_while_the_cell_runs_is_told_though_the_kernel_is_long_busy_after_it(
    notebook: Notebook, pages: list[Page], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    notebook.run("import time\ndef tidy(_): time.sleep(1)\nget_ipython().events.register('post_run_cell', tidy)")
    try:
        asked = notebook.start_until("%%gpu" + LONG.format(gate=str(gate)), shows="99 xxx")
        pages.append(Page(notebook))
        first = pages[0].start("1 + 1")
        gate.touch()
        number = number_of(notebook.collect(asked))
        assert f"Cell [{number}] went on while this page was closed" in pages[0].collect(first).shown
    finally:
        notebook.run("get_ipython().events.unregister('post_run_cell', tidy)")


def test_a_page_that_comes_when_all_was_seen_is_told_nothing(notebook: Notebook, pages: list[Page]) -> None:
    notebook.run("%%gpu\nimport time\nprint('all')\ntime.sleep(2.1)")
    notebook.run("'more work'")
    pages.append(Page(notebook))
    assert pages[0].run("1").shown == "1"


def test_a_page_that_comes_right_after_a_cell_is_told_that_it_may_have_missed_some(
    notebook: Notebook, pages: list[Page]
) -> None:
    number = number_of(notebook.run("%%gpu\nimport time\nprint('all')\ntime.sleep(2.1)"))
    pages.append(Page(notebook, is_greeted=True))
    assert f"Cell [{number}] may have gone on while this page was closed" in pages[0].run("1").shown


def test_a_cell_that_failed_is_shown_with_its_traceback(notebook: Notebook) -> None:
    failed = notebook.run("%%gpu\nprint('then')\n1 / 0")
    anew = notebook.run(f"%gpu attach {number_of(failed)}")
    assert seen(anew, skip=1) == seen(failed)
    assert anew.of("error")


def test_a_background_cell_goes_on_where_it_is_shown_anew(
    notebook: Notebook, pages: list[Page], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    begun = notebook.run("%%gpu --background later" + LONG.format(gate=str(gate)))
    number = number_of(begun)
    until(lambda: "99 xxx" in notebook.run(f"%gpu attach {number}").shown, "half of it")
    pages.append(Page(notebook))
    anew = pages[0].start(f"%gpu attach {number}")
    shown = pages[0].collect(anew)
    assert f"All that cell [{number}] has shown so far; what it shows from now on appears here, too." in shown.shown
    assert "199 xxx" not in shown.shown
    rest: list[dict[str, Any]] = []
    gate.touch()
    while not any("✓ ran" in str(message["content"].get("data")) for message in rest):
        message = pages[0].client.get_iopub_msg(timeout=PATIENCE_S)
        if message["parent_header"].get("msg_id") == anew:
            rest.append(message)
    whole = Output([*shown.messages, *rest], {})
    printed = "".join(f"{i} {'x' * 50}\n" for i in range(200))
    assert whole.stream() == printed
    assert pages[0].value("later.result()") == "400"
    ended = pages[0].run(f"%gpu attach {number}")
    assert ended.stream() == printed
    assert "✓ ran" in ended.shown


def test_widgets_that_the_notebook_does_not_have_are_made_for_the_page_that_has_come(
    notebook: Notebook, pages: list[Page]
) -> None:
    bars = "def bar():\n    made = w.IntProgress(max=9)\n    display(made)\n    for made.value in range(10): pass"
    shown = notebook.run(f"%%gpu\nimport ipywidgets as w\nmine = w.HTML('mine')\ndisplay(mine)\n{bars}\nbar()")
    mine, bar = [
        data["data"]["application/vnd.jupyter.widget-view+json"]["model_id"] for data in shown.of("display_data")[:2]
    ]  # after them comes the receipt, if the cell had to wait
    attach = f"%gpu attach {number_of(shown)}"
    assert notebook.run(attach).of("comm_open") == [], "this page has them"
    pages.append(Page(notebook, is_greeted=True))
    anew = pages[0].run(attach)
    states = {opened["comm_id"]: opened["data"]["state"] for opened in anew.of("comm_open")}
    assert mine not in states
    assert (states[bar]["value"], states[bar]["max"]) == (9, 9)
    assert states[bar]["layout"].removeprefix("IPY_MODEL_") in states
    kinds = [message["msg_type"] for message in anew.messages if message["msg_type"] in {"comm_open", "display_data"}]
    assert kinds.index("comm_open") < kinds.index("display_data", 1), "a view finds its model"
    assert pages[0].run(attach).of("comm_open") == [], "it has them now"


def test_blocks_of_one_cell_are_shown_together_and_a_sweep_too(notebook: Notebook) -> None:
    blocks = notebook.run("with gpu:\n    print('one')\nprint('here')\nwith gpu:\n    print('two')")
    assert notebook.run(f"%gpu attach {number_of(blocks)}").stream() == "one\ntwo\n"
    sweep = notebook.run("_ = gpu.map(print, ['three'])")
    assert notebook.run(f"%gpu attach {number_of(sweep)}").stream() == "three\n"


def test_no_more_is_kept_than_is_set(notebook: Notebook) -> None:
    notebook.run("%config BulletinMagics.keep_shown_mb = 1")
    try:
        large = number_of(notebook.run("%%gpu\nfor i in range(5000): print(i, 'x' * 200)"))
        anew = notebook.run(f"%gpu attach {large}")
        assert re.search(r"The first [\d.]+ KB of it are not kept", anew.shown)
        assert anew.stream().endswith(f"\n4999 {'x' * 200}\n")
        assert len(anew.stream()) <= 250_000
        for _ in range(5):
            notebook.run("%%gpu\nfor i in range(2000): print(i, 'y' * 200)")
        assert notebook.run(f"%gpu attach {large}").error is not None
    finally:
        notebook.run("%config BulletinMagics.keep_shown_mb = 32")
