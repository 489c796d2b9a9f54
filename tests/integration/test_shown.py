"""What else a cell can show and ask: help, the text of the next cell, tracebacks that it chose to show."""

from tests.integration.conftest import Notebook


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
