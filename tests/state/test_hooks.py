"""What the notebook gives Python to call is called on both sides: handlers of signals, hooks for errors."""

import builtins
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bulletin.state.hooks import set_hook
from bulletin.state.library_places import LibraryPlace
from tests.state.notebook import Notebook

HANDLE = """
import signal
class Late(Exception): pass
heard = []
def handler(number, frame):
    heard.append(number)
    raise Late
before = signal.signal(signal.SIGUSR1, handler)
"""
RAISE = """
try:
    signal.raise_signal(signal.SIGUSR1)
except Exception as error:
    caught = type(error).__name__
"""
WARN = """
import warnings
told = []
def show(message, *args, **options): told.append(str(message))
before, warnings.showwarning = warnings.showwarning, show
warnings.simplefilter("always")
"""
THREAD = """
import threading
told = []
def hook(args): told.append(args.exc_type.__name__)
threading.excepthook = hook
def fail(): raise KeyError(1)
"""
FAIL = "thread = threading.Thread(target=fail); thread.start(); thread.join(); del thread"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR1), warnings.showwarning, threading.excepthook, sys.excepthook
    add, alarm = sum, signal.getsignal(signal.SIGALRM)
    with warnings.catch_warnings():
        yield
    vars(builtins)["sum"] = add
    signal.signal(signal.SIGALRM, alarm)
    signal.signal(signal.SIGUSR1, before[0])
    warnings.showwarning, threading.excepthook, sys.excepthook = before[1:]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    yield interactive.instance(history_length=0)
    interactive.clear_instance()


@pytest.mark.parametrize("is_gpu", [True, False])
def test_a_handler_of_a_signal_is_called_where_the_signal_comes(is_gpu: bool, notebook: Notebook) -> None:
    here, there = (notebook.gpu, notebook.local) if is_gpu else (notebook.local, notebook.gpu)
    here(HANDLE)
    there(RAISE)
    assert notebook.local("caught, heard == [signal.SIGUSR1]") == ("Late", True)
    here(RAISE)
    assert notebook.local("caught, len(heard), signal.getsignal(signal.SIGUSR1) is handler") == ("Late", 2, True)
    there("signal.signal(signal.SIGUSR1, before); del handler")
    here("ends = signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL")
    assert notebook.local("ends") is True


def test_a_handler_that_an_earlier_gpu_cell_has_set_finds_what_it_looks_up(notebook: Notebook) -> None:
    notebook.gpu(HANDLE)
    notebook.gpu(RAISE)
    assert notebook.local("caught, heard == [signal.SIGUSR1]") == ("Late", True)


def test_a_function_that_shows_warnings_is_called_on_both_sides_until_it_is_taken_out(notebook: Notebook) -> None:
    notebook.local(WARN)
    notebook.gpu("warnings.warn('there')")
    notebook.local("warnings.warn('here'); warnings.showwarning = before")
    notebook.gpu("is_out = warnings.showwarning is not show")
    assert notebook.local("told, is_out") == (["there", "here"], True)


def test_errors_of_threads_are_told_to_the_hook_of_a_gpu_cell(notebook: Notebook) -> None:
    notebook.gpu(THREAD)
    notebook.local(FAIL)
    notebook.gpu(FAIL)
    assert notebook.local("told") == ["KeyError", "KeyError"]


def test_a_function_among_the_built_ins_is_there_on_both_sides_until_it_is_taken_out(notebook: Notebook) -> None:
    notebook.gpu("import builtins\ndef shout(text): return text.upper() + end\nend = '!'\nbuiltins.louder = shout")
    assert notebook.local("louder('a')") == "A!"
    notebook.gpu("r = louder('b'); del builtins.louder")
    assert notebook.local("r, hasattr(builtins, 'louder')") == ("B!", False)


def test_a_built_in_that_the_notebook_puts_back_is_pythons_own_on_the_other_side_too(notebook: Notebook) -> None:
    as_python_has_it = sum
    notebook.gpu("import builtins\ndef add(values): return 'mine'\nbuiltins.sum = add")
    assert notebook.local("sum([1, 2])") == "mine"
    vars(builtins)["sum"] = as_python_has_it
    notebook.gpu("r = sum([1, 2])")
    assert notebook.local("r") == 3


@pytest.mark.parametrize("is_gpu", [True, False])
def test_a_hook_for_errors_that_is_taken_back_on_the_other_side_is_gone_on_both(
    is_gpu: bool, notebook: Notebook
) -> None:
    here, there = (notebook.gpu, notebook.local) if is_gpu else (notebook.local, notebook.gpu)
    here("import sys\ndef hook(*error): ...\nsys.excepthook = hook")
    there("was = sys.excepthook is hook; sys.excepthook = sys.__excepthook__")
    here("is_left = sys.excepthook is hook")
    there("is_back = sys.excepthook is hook")
    assert notebook.local("was, is_left, is_back") == (True, False, False)


@pytest.mark.parametrize("is_gpu", [True, False])
def test_a_signal_that_is_to_be_ignored_ends_nobody(is_gpu: bool, notebook: Notebook) -> None:
    here, there = (notebook.gpu, notebook.local) if is_gpu else (notebook.local, notebook.gpu)
    here(HANDLE)
    there(RAISE)
    here("ignored = signal.signal(signal.SIGUSR1, signal.SIG_IGN) is handler")
    there("signal.raise_signal(signal.SIGUSR1); is_alive = signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN")
    here("signal.signal(signal.SIGUSR1, signal.SIG_DFL)")
    there("ends = signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL")
    assert notebook.local("caught, ignored, len(heard), is_alive, ends") == ("Late", True, 1, True, True)


def test_a_timer_is_off_where_nobody_handles_its_signal_any_more(notebook: Notebook) -> None:
    notebook.gpu("import signal\ndef late(*_): ...\nsignal.signal(signal.SIGALRM, late); signal.setitimer(0, 1000)")
    notebook.local("signal.signal(signal.SIGALRM, signal.SIG_DFL)")
    notebook.gpu("r = signal.getsignal(signal.SIGALRM) == signal.SIG_DFL, signal.getitimer(signal.ITIMER_REAL)")
    assert notebook.local("r") == (True, (0.0, 0.0))


def test_a_dict_of_a_library_that_is_called_as_one_of_ipythons_is_the_librarys(
    notebook: Notebook, install: Callable[[str, str], Path]
) -> None:
    folder = install("prints_much", "printers, magics = {}, {}")
    notebook.local("import prints_much\ndef show(value): return f'<{value}>'\nprints_much.printers[int] = show")
    notebook.gpu(
        f"import sys; sys.path.append({str(folder)!r})\nimport prints_much\n"
        f"r = prints_much.printers[int](3); sys.path.remove({str(folder)!r})"
    )
    assert notebook.local("r") == "<3>"


def test_a_magic_and_a_printer_of_ipythons_are_back_once_the_notebooks_own_are_gone(shell: Any) -> None:
    lines = shell.magics_manager.magics["line"]
    printers = shell.display_formatter.formatters["text/plain"].type_printers
    before = lines["pwd"], printers[list], "fly" in lines
    hooks = [("magics", ("line", "pwd")), ("magics", ("line", "fly")), ("printers", ("text/plain", list))]
    places = [LibraryPlace("IPython", "", kind, (key,)) for kind, key in hooks]

    def own(*_: object) -> None: ...

    own.__module__ = "__main__"
    for place in places * 2:  # a second one of the notebook's own is not what was there either
        set_hook(place, own)
    assert lines["pwd"] is lines["fly"] is printers[list] is own
    for place in places:
        set_hook(place, None)
    assert (lines["pwd"], printers[list], "fly" in lines) == before
