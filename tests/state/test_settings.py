"""How Python and its libraries are set up goes there with a cell, and comes back from it."""

import decimal
import importlib
import logging
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin import state
from bulletin.state import ambient, python_settings, settings

from .notebook import Notebook

#: set up by one side, seen by the other
ROWS: dict[str, tuple[str, str]] = {
    "warnings": (
        "import warnings\nwarnings.filterwarnings('ignore', 'mind', FutureWarning, module='m')",
        "import warnings\nstr(warnings.filters[0])",
    ),
    "the level of a log": (
        "import logging\nlogging.getLogger().setLevel(15)\nlogging.getLogger('far.away').setLevel(5)",
        "import logging\nlogging.getLogger().level, logging.getLogger('far.away').level",
    ),
    "a folder of modules": (
        "import sys\nsys.path.insert(0, '/first')\nsys.path.append('/last')",
        "import sys\n'/first' in sys.path[:2], sys.path[-1]",
    ),
    "recursion": ("import sys\nsys.setrecursionlimit(4321)", "import sys\nsys.getrecursionlimit()"),
    "time zone": (
        "import os, time\nos.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset()",
        "import time\ntime.localtime(0).tm_hour",
    ),
    "first day of the week": (
        "import calendar\ncalendar.setfirstweekday(6)",
        "import calendar\ncalendar.firstweekday()",
    ),
    "dialect of csv": (
        "import csv\ncsv.register_dialect('semi', delimiter=';')",
        "import csv\n'semi' in csv.list_dialects() and csv.get_dialect('semi').delimiter",
    ),
    "timeout of sockets": ("import socket\nsocket.setdefaulttimeout(9)", "import socket\nsocket.getdefaulttimeout()"),
    "digits": ("import sys\nsys.set_int_max_str_digits(5000)", "import sys\nsys.get_int_max_str_digits()"),
    "locale": (
        "import locale\nlocale.setlocale(locale.LC_NUMERIC, 'C.UTF-8')",
        "import locale\nlocale.setlocale(locale.LC_NUMERIC)",
    ),
    "decimal": ("import decimal\ndecimal.getcontext().prec = 5", "import decimal\ndecimal.Decimal(1) / 3"),
}
LIBRARY_ROWS: dict[str, tuple[str, str]] = {
    "numpy": (
        "import numpy as np\nnp.set_printoptions(precision=2)\nnp.seterr(divide='ignore')",
        "import numpy as np\nstr(np.array([1.2345])), np.geterr()['divide']",
    ),
    "pandas": (
        "import pandas as pd\npd.set_option('display.max_rows', 4, 'display.precision', 1)",
        "import pandas as pd\npd.get_option('display.max_rows'), pd.get_option('display.precision')",
    ),
    "matplotlib": (
        "import matplotlib as mpl\nmpl.rcParams['figure.figsize'] = (3, 2)\nmpl.rcParams['axes.grid'] = True",
        "import matplotlib as mpl\nlist(mpl.rcParams['figure.figsize']), mpl.rcParams['axes.grid']",
    ),
}


@pytest.fixture(autouse=True)
def _put_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    before = settings.read()
    with warnings.catch_warnings(), decimal.localcontext():
        yield
    monkeypatch.undo()
    time.tzset()
    settings._current, settings._settled = None, {}  # what an executor remembers; this process is a notebook
    settings.write(before, is_whole=True)
    settings._current, settings._settled = None, {}
    logging.getLogger("far.away").setLevel(logging.NOTSET)


@pytest.mark.parametrize("row", [*ROWS, *LIBRARY_ROWS])
def test_what_the_notebook_has_set_up_holds_in_the_cell(row: str, notebook: Notebook) -> None:
    setup, question = {**ROWS, **LIBRARY_ROWS}[row]
    if row in LIBRARY_ROWS:
        pytest.importorskip(row)
    notebook.local(setup)
    assert notebook.gpu(question).extra["result"] == notebook.local(question)


@pytest.mark.parametrize("row", [*ROWS, *LIBRARY_ROWS])
def test_what_a_cell_has_set_up_holds_in_the_notebook(row: str, notebook: Notebook) -> None:
    setup, question = {**ROWS, **LIBRARY_ROWS}[row]
    if row in LIBRARY_ROWS:
        pytest.importorskip(row)
    before = notebook.local(question)
    there = notebook.gpu(f"{setup}\n{question}").extra["result"]
    assert notebook.local(question) == there != before


def test_names_of_levels_are_known_on_both_sides(notebook: Notebook) -> None:
    notebook.local("import logging; logging.addLevelName(7, 'SEVEN')")
    assert notebook.gpu("logging.addLevelName(8, 'EIGHT'); logging.getLevelName('SEVEN')").extra["result"] == 7
    assert notebook.local("logging.getLevelName('EIGHT')") == 8


def test_what_the_notebook_sets_back_is_set_back_in_the_cell(notebook: Notebook) -> None:
    pytest.importorskip("pandas")
    notebook.local("import pandas as pd\npd.set_option('display.max_rows', 4)")
    assert notebook.gpu("pd.get_option('display.max_rows')").extra["result"] == 4
    notebook.local("pd.reset_option('display.max_rows')")
    assert notebook.gpu("pd.get_option('display.max_rows')").extra["result"] == 60


@pytest.mark.parametrize(
    ("setup", "question"),
    [
        ("import warnings\nwarnings.filterwarnings('ignore', 'lost')", "'lost' in str(warnings.filters)"),
        ("import logging\nlogging.getLogger().setLevel(7)", "logging.getLogger().level == 7"),
    ],
)
def test_what_the_notebook_did_not_take_over_is_taken_back_before_the_next_cell(
    setup: str, question: str, notebook: Notebook
) -> None:
    question = f"import logging, warnings\n{question}"
    notebook.gpu("import logging\nlogging.getLogger('far.away').setLevel(3)")
    assert notebook.gpu(question).extra["result"] is False
    lost = state.capture(notebook.ns, state.needs(setup, notebook.ns), table=notebook.table)
    notebook.executor.ask(setup, lost.parts)
    notebook.table.clear()
    assert notebook.gpu(question).extra["result"] is False


def test_a_cell_that_sets_up_nothing_sends_no_settings_back(notebook: Notebook) -> None:
    notebook.gpu("x = 1")
    before = settings.read()
    assert settings.difference(before, settings.read()) == {}


def test_a_log_that_prints_prints_there_too(notebook: Notebook) -> None:
    logging.getLogger().handlers, kept = [], logging.getLogger().handlers
    try:
        notebook.local("import logging\nlogging.basicConfig(format='%(levelname)s|%(message)s')")
        question = "import logging\n[(type(h).__name__, h.formatter._fmt) for h in logging.getLogger().handlers]"
        assert notebook.gpu(question).extra["result"] == [("StreamHandler", "%(levelname)s|%(message)s")]
    finally:
        logging.getLogger().handlers = kept


def test_a_filter_for_warnings_of_a_library_that_is_not_here_is_left_out() -> None:
    value = python_settings.read_filters(None)
    missing = ("ignore", None, ("no_such_library", "Warn"), None, 0)
    python_settings._write_filters(None, [missing, *value])
    assert python_settings.read_filters(None) == value


def test_a_setting_that_cannot_be_read_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    decimal_now = importlib.import_module("pickle").dumps((7, "ROUND_UP", -9, 9, 1, 0, [], []))
    settings.write({"warnings": b"no pickle", "decimal": decimal_now}, is_whole=False)
    assert decimal.getcontext().prec == 7


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_generator_is_set_also_where_the_cell_before_did_not_come_to_its_end(kind: str) -> None:
    pytest.importorskip(kind)
    library = importlib.import_module({"numpy": "numpy.random", "torch": "torch"}[kind])
    seed, draw = getattr(library, "manual_seed", None) or library.seed, library.rand
    seed(1)
    sent = {kind: ambient.snapshot()[kind]}
    expected = float(draw(1)[0])
    try:
        ambient.settle(sent, is_overlay=True)
        ambient.changed_since(ambient.snapshot(sent))  # a cell that draws nothing
        for _ in range(2):  # cells whose end nobody asks for
            ambient.settle(sent, is_overlay=True)
            ambient.snapshot(sent)
            assert float(draw(1)[0]) == expected
    finally:
        ambient._left.clear()


def test_a_library_that_sets_itself_up_as_values_arrive_undoes_no_setting(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loud_library.py").write_text(
        "import logging\nlogging.getLogger('loud').setLevel(30)\nclass Q: pass\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    notebook.local("import logging, loud_library\nlogging.getLogger('loud').setLevel(40)")
    try:
        notebook.gpu("import logging")
        notebook.local("q = loud_library.Q()")
        notebook.gpu("q.level = logging.getLogger('loud').level")
        assert (notebook["q"].level, logging.getLogger("loud").level) == (40, 40)
    finally:
        logging.getLogger("loud").setLevel(logging.NOTSET)
        sys.modules.pop("loud_library", None)
