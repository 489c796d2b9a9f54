"""`%debug` after a %%gpu cell that failed."""

from tests.integration.conftest import Notebook, Output

FAILS = """%%gpu
class Held:
    def __del__(self):
        print('freed')
def divide(n):
    held, double = Held(), 2 * n
    return 1 / (n - n)
outer = 5
divide(21)"""


def talk(notebook: Notebook, code: str, *commands: str) -> Output:
    """Run a cell that asks, and answer."""
    message_id = notebook.start(code)
    for command in commands:
        notebook.answer(command)
    return notebook.collect(message_id)


def test_debug_opens_the_frames_of_the_failed_cell_where_they_are(notebook: Notebook) -> None:
    failed = notebook.run(FAILS)
    assert failed.error is not None
    assert failed.error["ename"] == "ZeroDivisionError"
    for code in ("%%gpu\n%debug", "%debug"):
        debugged = talk(notebook, code, "p double", "up", "p outer + 1", "q")
        assert debugged.reply["status"] == "ok", debugged.shown
        assert "\n42\n" in debugged.stream()
        assert "\n6\n" in debugged.stream()
        assert "freed" not in debugged.shown
    # The next cell lets them go.
    assert notebook.run("%%gpu\nprint('next')").stream() == "freed\nnext\n"


def test_debug_says_so_when_the_frames_are_gone_and_is_the_notebooks_own_for_its_own_errors(notebook: Notebook) -> None:
    notebook.run(FAILS)
    notebook.run("%gpu stop")
    assert "are gone with the process" in notebook.run("%debug").shown
    notebook.run("here = 3\n1 / 0")
    assert "\n3\n" in talk(notebook, "%debug", "p here", "q").stream()
