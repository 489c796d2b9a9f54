"""`%gpu push` and `%gpu reset`, in a real kernel and on a real pool."""

import re

from tests.integration.conftest import Notebook


def test_what_is_pushed_is_not_sent_again(notebook: Notebook) -> None:
    notebook.run("import numpy\nbig = numpy.zeros(1_000_000)\nsmall = [1]")
    pushed = notebook.run("%gpu push big, small")
    assert re.search(r"big and small are on the pool now; 8(\.\d+)? MB were sent\.", pushed.shown)
    assert notebook.run("%%gpu --plan\nbig.sum(), small").shown.count("There already.") == 2
    assert "There is no variable 'bigger'" in notebook.run("%gpu push bigger").shown
    assert "'big-1' is none" in notebook.run("%gpu push big-1").shown
    notebook.run("import socket\nplug = socket.socket()")
    refused = notebook.run("%gpu push plug")
    assert refused.error is not None
    assert refused.error["ename"] == "CannotSend"


def test_a_reset_ends_the_process_and_keeps_the_notebooks_variables(notebook: Notebook) -> None:
    notebook.run("%%gpu\nimport os\nfirst = os.getpid()\ncounted = (n for n in range(3))\nmine = [1]")
    reset = notebook.run("%gpu reset")
    assert "has ended" in reset.shown
    assert "counted was only there, and is gone." in reset.shown
    assert notebook.run("%%gpu\nmine.append(2)\nos.getpid() != first, mine").result == "(True, [1, 2])"
    assert "the process" in notebook.run("%%gpu\nnext(counted)").shown
