"""`%gpu push`, `%gpu pull` and `%gpu reset`, in a real kernel and on a real pool."""

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


def test_what_stayed_on_the_pool_is_pulled_once_it_can_come_and_says_why_it_cannot(notebook: Notebook) -> None:
    notebook.run(
        "class Shy:\n"
        "    may_come = False\n"
        "    def __reduce__(self):\n"
        "        if not Shy.may_come: raise TypeError('it is shy')\n"
        "        return Shy, ()"
    )
    notebook.run("%%gpu\nshy, numbers, plain = Shy(), (n for n in range(3)), 1\nbox = [shy, numbers]")
    assert "plain is in the notebook already." in notebook.run("%gpu pull plain").shown
    kept = notebook.run("%gpu pull box, shy").shown
    assert "box[0] is a Shy and stays on the pool: it is shy." in kept
    assert "shy is a Shy and stays on the pool: it is shy." in kept
    notebook.run("Shy.may_come = True")
    before = notebook.run("%gpu receipts").shown
    pulled = notebook.run("%gpu pull").shown
    assert "shy is in the notebook now; " in pulled
    assert notebook.run("%gpu receipts").shown == before, "it is no cell of the user's"
    assert "numbers is a generator and stays on the pool: Python has no way to send one." in pulled
    said = "(True, True, False)"
    assert notebook.value("type(shy) is Shy, box[0] is shy, '__bulletin_outcome__' in dir()") == said
    assert "There is no variable 'nothing'" in notebook.run("%gpu pull nothing").shown
    notebook.run("%gpu reset")
    lost = notebook.run("%gpu pull numbers")
    assert lost.error is not None
    said = "numbers is a generator and was lost with the process that held it. Run the cell that made it again."
    assert lost.error["evalue"] == said
