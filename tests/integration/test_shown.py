"""What else a cell can show and ask: help, the text of the next cell, tracebacks that it chose to show."""

from tests.integration.conftest import PATIENCE_S, Notebook, Output


def test_help_and_the_next_cells_text_come_with_the_reply(notebook: Notebook) -> None:
    payload = notebook.run("%%gpu\nlen?").reply["payload"]
    assert [one["source"] for one in payload] == ["page"]
    assert "container" in payload[0]["data"]["text/plain"]
    payload = notebook.run("%%gpu\nget_ipython().set_next_input('next')").reply["payload"]
    assert payload == [{"source": "set_next_input", "text": "next", "replace": False}]


def test_a_traceback_that_a_cell_shows_is_one(notebook: Notebook) -> None:
    shown = notebook.run("%%gpu\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()")
    assert [error["ename"] for error in shown.of("error")] == ["ZeroDivisionError"]
    assert shown.reply["status"] == "ok"


def test_a_thread_that_has_ended_comes_back_alone(notebook: Notebook) -> None:
    shown = notebook.run(
        "%%gpu\nimport threading\nthread = threading.Thread(target=print, args=('in a thread',))\n"
        "thread.start()\nthread.join()\nip = get_ipython()"
    )
    assert shown.stream() == "in a thread\n"
    assert "stays on the pool" not in shown.shown
    assert notebook.value("(thread.is_alive(), ip is get_ipython())") == "(False, True)"
    assert notebook.run("%%gpu\nprint(ip is get_ipython())").stream() == "True\n"


def test_what_a_thread_prints_goes_to_its_cell_also_when_that_has_ended(notebook: Notebook) -> None:
    started = notebook.start(
        "%%gpu\nimport os, sys, threading\nheld, go = os.pipe()\ndef work():\n    os.read(held, 1)\n"
        "    print('late')\n    display('shown late')\n    print('last', file=sys.stderr)\n"
        "threading.Thread(target=work).start()\nprint('early')"
    )
    assert notebook.collect(started).stream() == "early\n"
    went = notebook.start("%%gpu\nprint('other')\nsent = os.write(go, b'.')")
    heard: dict[str, list[str]] = {started: [], went: []}
    while "last\n" not in heard[started] or "other\n" not in heard[went]:
        message = notebook.client.get_iopub_msg(timeout=PATIENCE_S)
        shown = Output([message], {}).shown
        if shown and message["msg_type"] != "execute_input":
            heard[message["parent_header"]["msg_id"]].append(shown)
    assert heard[started] == ["late\n", "'shown late'", "last\n"]
    assert "late" not in "".join(heard[went])
    assert notebook.run("1").result == "1"


def test_a_task_that_outlives_its_cell_prints_to_it(notebook: Notebook) -> None:
    started = notebook.start(
        "%%gpu\nimport asyncio, os\nheld, go = os.pipe()\n"
        "async def later():\n    await asyncio.to_thread(os.read, held, 1)\n    print('task done')\n"
        "task = asyncio.ensure_future(later())\nprint('cell over')"
    )
    assert notebook.collect(started).stream() == "cell over\n"
    notebook.start("%%gpu\nsent = os.write(go, b'.')")
    heard = ""
    while "task done" not in heard:
        message = notebook.client.get_iopub_msg(timeout=PATIENCE_S)
        if message["msg_type"] == "stream":
            assert message["parent_header"]["msg_id"] == started
            heard += message["content"]["text"]


def test_what_a_thread_looks_up_is_no_result_of_a_later_cell(notebook: Notebook) -> None:
    notebook.run("big, small = [1], 2")
    notebook.run(
        "%%gpu\nimport os, threading\nheld, go = os.pipe()\ndef work():\n    os.read(held, 1)\n    print(small)\n"
        "threading.Thread(target=work).start()\nbig.append(small)\nmade = 3"
    )
    notebook.run("small = 5\ndel made")
    assert notebook.run("%%gpu\nprint('made' in dir())").stream() == "False\n"
    assert notebook.run("%%gpu\nnew = 1\nsent = os.write(go, b'.')").error is None
    assert notebook.value("(small, big, new, 'made' in dir())") == "(5, [1, 2], 1, False)"
