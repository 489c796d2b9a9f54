"""What else a cell can show and ask: help, the text of the next cell, tracebacks that it chose to show."""

from tests.integration.conftest import Notebook


def test_a_thread_that_has_ended_comes_back_alone(notebook: Notebook) -> None:
    shown = notebook.run(
        "%%gpu\nimport threading\nthread = threading.Thread(target=print, args=('in a thread',))\n"
        "thread.start()\nthread.join()\nip = get_ipython()"
    )
    assert shown.stream() == "in a thread\n"
    assert "stays on the pool" not in shown.shown
    assert notebook.value("(thread.is_alive(), ip is get_ipython())") == "(False, True)"
    assert notebook.run("%%gpu\nprint(ip is get_ipython())").stream() == "True\n"
