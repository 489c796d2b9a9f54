"""Cells in the background, with real kernels: the notebook goes on, and loses nothing of what it does meanwhile."""

from pathlib import Path

from tests.integration.conftest import PATIENCE_S, Notebook

#: Waits in the background until the notebook has made a file, which only a later cell does.
_UNTIL = "import time\nwhile not os.path.exists(gate):\n    time.sleep(0.01)\n"


def _gate(notebook: Notebook, folder: Path, name: str) -> str:
    gate = folder / name
    notebook.run(f"import os\ngate = {str(gate)!r}\nhere = os.getpid()")
    return f"open({str(gate)!r}, 'w').close()"


def test_the_notebook_goes_on_and_gets_the_results(notebook: Notebook, tmp_path: Path) -> None:
    opened = _gate(notebook, tmp_path, "a")
    notebook.run("total = [1]\nalso = total\nx = 1")
    begun = notebook.run(
        f"%%gpu --background train\n{_UNTIL}total.append(os.getpid() != here)\nx = 2\nnew = 7\nnew + 1"
    )
    assert begun.reply["status"] == "ok", begun.shown
    assert notebook.value("x, total, train.done()") == "(1, [1], False)"
    assert notebook.value(f"{opened}\ntrain.result()") == "8"
    assert notebook.value("x, total, also is total, new, train.done()") == "(2, [1, True], True, 7, True)"
    assert notebook.value("sorted(train.vars)") == "['also', 'new', 'time', 'total', 'x']"
    assert "✓ ran" in notebook.value("train")


def test_it_comes_by_itself_with_the_next_cell_and_what_it_prints_is_under_the_cell_that_began_it(
    notebook: Notebook, tmp_path: Path
) -> None:
    opened = _gate(notebook, tmp_path, "b")
    begun = notebook.start(f"%%gpu --background early\n{_UNTIL}print('from', 'there')\nmade = 3")
    notebook.collect(begun)
    waits = notebook.start(f"{opened}\nearly._is_over.wait()")
    shown = []
    while not shown or shown[-1] != (waits, "idle"):
        told = notebook.client.get_iopub_msg(timeout=PATIENCE_S)
        content = told["content"]
        shown.append((told["parent_header"].get("msg_id"), content.get("text") or content.get("execution_state")))
    assert (begun, "from there\n") in shown
    assert notebook.client.get_shell_msg(timeout=PATIENCE_S)["parent_header"]["msg_id"] == waits
    assert notebook.value("made") == "3"


def test_what_the_notebook_changed_meanwhile_is_not_overwritten(notebook: Notebook, tmp_path: Path) -> None:
    opened = _gate(notebook, tmp_path, "c")
    notebook.run("box = [0]\nown = 1\nfree = 1")
    notebook.run(f"%%gpu --background other\n{_UNTIL}box.append('there')\nown = free = 2")
    notebook.run("box.append('here')\nown = 'mine'")
    told = notebook.run(f"{opened}\nother.result()")
    assert "box and own were changed in the notebook while other ran, and stay as the notebook has it" in told.shown
    assert notebook.value("box, own, free") == "([0, 'here'], 'mine', 2)"
    assert notebook.value("other.vars['box'], other.vars['own']") == "([0, 'there'], 2)"


def test_its_value_is_shown_under_its_cell_without_a_number_of_the_notebook(notebook: Notebook, tmp_path: Path) -> None:
    opened = _gate(notebook, tmp_path, "f")
    begun = notebook.start(f"%%gpu --background valued\n{_UNTIL}6 * 6")
    assert notebook.collect(begun).of("execute_result") == []
    waits = notebook.start(f"{opened}\nvalued.result()")
    shown: dict[str, list[dict[str, object]]] = {begun: [], waits: []}
    while {"execution_state": "idle"} not in shown[waits]:
        told = notebook.client.get_iopub_msg(timeout=PATIENCE_S)
        shown[told["parent_header"]["msg_id"]].append(told["content"])
    assert notebook.client.get_shell_msg(timeout=PATIENCE_S)["parent_header"]["msg_id"] == waits
    under_its_cell = [one for one in shown[begun] if one.get("data") == {"text/plain": "36"}]
    assert ["execution_count" in one for one in under_its_cell] == [False]
    asked_for = [one for one in shown[waits] if one.get("data") == {"text/plain": "36"}]
    assert ["execution_count" in one for one in asked_for] == [True]


def test_a_failure_is_told_and_raised_where_it_is_asked_for(notebook: Notebook) -> None:
    notebook.run("%%gpu --background bad\nhalf = 1\n1 / 0")
    notebook.run("bad._is_over.wait()")
    told = notebook.run("half")
    assert "bad failed: ZeroDivisionError: division by zero. bad.result() raises it." in told.shown
    assert told.result == "1"
    raised = notebook.run("bad.result()")
    assert raised.error is not None
    assert raised.error["ename"] == "ZeroDivisionError"
    assert "----> 3 1 / 0" in raised.shown


def test_it_can_be_cancelled(notebook: Notebook, tmp_path: Path) -> None:
    _gate(notebook, tmp_path, "d")
    notebook.run(f"%%gpu --background slow\n{_UNTIL}")
    notebook.run("while 'running' not in slow.status: pass")
    stopped = notebook.run("slow.cancel()\nslow.result()")
    assert stopped.error is not None
    assert stopped.error["ename"] == "KeyboardInterrupt"


def test_it_cannot_ask(notebook: Notebook) -> None:
    notebook.run("%%gpu --background asks\ninput('Who? ')")
    assert "A cell in the background cannot ask: 'Who?' has nobody to answer it." in notebook.run("asks.result()").shown


def test_several_at_once_and_one_without_a_name(notebook: Notebook) -> None:
    notebook.run("%%gpu --background one\na = 1")
    notebook.run("%%gpu --background two\nb = 2")
    assert notebook.value("one.result(), two.result(), a, b") == "(None, None, 1, 2)"
    assert "background" in notebook.value("%%gpu --background\n5")
    assert notebook.value("_.result()") == "5"


def test_what_cannot_be_sent_is_told_at_once(notebook: Notebook) -> None:
    refused = notebook.run("file = open('/dev/null')")
    refused = notebook.run("%%gpu --background never\nfile.read()")
    assert refused.shown.startswith("CannotSend: %%gpu cannot send 'file'")
    assert notebook.value("'never' in globals()") == "False"


def test_a_function_for_many_values(notebook: Notebook) -> None:
    notebook.run("import os\nhere = os.getpid()\nk, seen = 3, []")
    notebook.run("def f(x):\n    seen.append(x)\n    return x * k, len(seen), os.getpid() != here")
    mapped = notebook.run("gpu.map(f, range(5))")
    assert mapped.result == "[(0, 1, True), (3, 1, True), (6, 1, True), (9, 1, True), (12, 1, True)]"
    assert "5 of 5 done" in mapped.shown
    assert notebook.value("seen") == "[]"


def test_the_last_of_many_values_costs_what_the_first_does(notebook: Notebook) -> None:
    """What both sides know of a value that is done is forgotten: else each is looked through for every one to come."""
    notebook.run(
        "import gc\ndef note(item):\n"
        "    return max(len(one.objects) for one in gc.get_objects() if type(one).__name__ == 'Table')"
    )
    notebook.run("known = gpu.map(note, [[number] for number in range(40)], parallel=1)")
    assert notebook.value("known[-1] - known[1] < 5") == "True"


def test_what_cannot_be_sent_of_an_item_is_called_so(notebook: Notebook) -> None:
    notebook.run("import threading\nlock, file = threading.Lock(), open('/dev/null')")
    assert "cannot send 'item': it is an open file" in notebook.run("gpu.map(len, [file])").shown
    assert "item[1]" in notebook.run("gpu.map(lambda item: item[1].name, [[1, file]])").shown


def test_one_failing_element_does_not_stop_the_others(notebook: Notebook) -> None:
    notebook.run("def g(x):\n    return 1 / x")
    failed = notebook.run("gpu.map(g, [1, 0, 2])")
    assert (
        "SomeFailed: 1 of 3 elements failed; at first number 1, with ZeroDivisionError: division by zero."
        in failed.shown
    )
    assert "bulletin" not in failed.shown
    assert (
        notebook.value("gpu.map(g, [1, 0, 2], errors='return')") == "[1.0, ZeroDivisionError('division by zero'), 0.5]"
    )
    assert notebook.value("import sys\nsys.last_value.results") == "[1.0, ZeroDivisionError('division by zero'), 0.5]"


def test_nobody_can_be_had(notebook: Notebook) -> None:
    refused = notebook.run("gpu(gpus=99).map(abs, range(4))")
    assert refused.error is not None
    assert refused.error["ename"] == "Refused"
    assert notebook.value("gpu.map(abs, [])") == "[]"


def test_a_cell_for_each_element(notebook: Notebook) -> None:
    notebook.run("lr = 'mine'\nparams = [{'lr': 1, 'n': 1}, {'lr': 2, 'n': 0}, {'lr': 3, 'n': 3}]")
    swept = notebook.run("%%gpu --each params\nloss = lr / n\nloss, each['lr']")
    assert swept.result == "[(1.0, 1), ZeroDivisionError('division by zero'), (1.0, 3)]"
    assert "1 of 3 elements failed; at first number 1: ZeroDivisionError" in swept.shown
    assert len(swept.of("execute_result")) == 1
    assert notebook.value("lr, 'loss' in globals(), 'each' in globals()") == "('mine', False, False)"
    assert "there is no variable 'nope'" in notebook.run("%%gpu --each nope\n1").shown
    notebook.run("values = (4, 5)")
    assert notebook.value("%%gpu --each values\neach + 1") == "[5, 6]"
    remote = notebook.run("%%remote --each values\neach + 2")
    assert remote.result == "[6, 7]"
    assert "%%remote --each values ████████████████████ 2 of 2 done" in remote.shown
    (receipts,) = notebook.run("%gpu receipts 1").of("display_data")
    assert "] 2 elements  returned" in receipts["data"]["text/plain"]


def test_a_cell_in_the_background_has_a_receipt_under_its_own_number(notebook: Notebook) -> None:
    begun = notebook.run("%%gpu --background job\nmade = 1")
    notebook.run("job.result()")
    notebook.run("%%gpu\nmade")
    number = begun.reply["execution_count"]
    (receipts,) = notebook.run("%gpu receipts 2").of("display_data")
    rows = [line.split()[:2] for line in receipts["data"]["text/plain"].splitlines() if line.startswith("[")]
    assert rows == [[f"[{number}]", "returned"], [f"[{number + 2}]", "returned"]]


def test_the_stop_button_ends_them_all(notebook: Notebook, tmp_path: Path) -> None:
    _gate(notebook, tmp_path, "e")
    notebook.run(f"def wait(x):\n    print('begun')\n    {_UNTIL.replace(chr(10), chr(10) + '    ')}\n    return x")
    stopped = notebook.run_until("gpu.map(wait, range(3))", "begun", notebook.interrupt)
    assert stopped.error is not None
    assert stopped.error["ename"] == "KeyboardInterrupt"
    shown = "\n".join(stopped.error["traceback"])
    assert "gpu.map(wait, range(" in shown
    assert "bulletin_magic" not in shown, "the frames of a cell are its user's own"
    assert notebook.value("%%gpu\n1 + 1") == "2"


def test_the_stop_button_ends_each_element_of_a_cell_and_says_so_in_a_line(notebook: Notebook, tmp_path: Path) -> None:
    _gate(notebook, tmp_path, "each")
    notebook.run("elements, seen = [1, 2, 3], []")
    cell = f"%%gpu --each elements\nseen.append(each)\nprint('begun')\n{_UNTIL}"
    stopped = notebook.run_until(cell, "begun", notebook.interrupt)
    assert stopped.error is not None
    assert stopped.error["traceback"] == [
        "CellStopped: The cell was stopped, and all of its elements with it. Your variables are as before the cell."
    ]
    assert notebook.value("seen") == "[]"
    assert notebook.value("%%gpu\n1 + 1") == "2"
