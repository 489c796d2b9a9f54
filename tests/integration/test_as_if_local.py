"""What a person sees of a cell is what it would have shown in the notebook itself."""

import pytest

from tests.integration.conftest import Notebook


def test_a_figure_that_nobody_names_is_shown(notebook: Notebook) -> None:
    pytest.importorskip("matplotlib")
    for _ in range(2):
        drawn = notebook.run("%%gpu\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);")
        figures = [message["content"]["data"] for message in drawn.own if message["msg_type"] == "display_data"]
        assert [sorted(figure) for figure in figures] == [["image/png", "text/plain"]]
    assert notebook.run("%%gpu\nprint(plt.get_fignums())").stream() == "[]\n"


def test_figures_look_as_the_notebook_has_set_them_up(notebook: Notebook) -> None:
    pytest.importorskip("matplotlib")
    notebook.run("import matplotlib.pyplot as plt\nplt.rcParams['figure.figsize'] = (2, 1)")
    notebook.run("%config InlineBackend.figure_format = 'svg'")
    shown = notebook.run("%%gpu\nplt.plot([1, 2]);").of("display_data")
    drawn = [content["data"] for content in shown if "image/svg+xml" in content["data"]]
    assert [data["text/plain"] for data in drawn] == ["<Figure size 200x100 with 1 Axes>"]
    notebook.run("%%gpu\n%config InlineBackend.figure_format = 'png'")
    assert "image/png" in notebook.run("plt.plot([1, 2]);").of("display_data")[0]["data"]


def test_settings_that_live_in_the_context_of_a_cell_go_there_and_back(notebook: Notebook) -> None:
    notebook.run("import decimal\ndecimal.getcontext().prec = 5")
    assert notebook.run("%%gpu\nprint(decimal.Decimal(1) / 3)\ndecimal.getcontext().prec = 3").stream() == "0.33333\n"
    assert notebook.value("decimal.Decimal(1) / 3") == "Decimal('0.333')"


def test_a_traceback_names_the_cells_that_its_functions_come_from(notebook: Notebook) -> None:
    notebook.run("def outer(x):\n    return inner(x)")
    failed = notebook.run("%%gpu\ndef inner(x):\n    return x / 0\nouter(1)")
    assert "in outer(x)" in failed.shown
    assert "ipykernel" not in failed.shown
    assert "ipython-input" not in notebook.run("outer(2)").shown


def test_a_magic_that_is_used_wrongly_is_told_once(notebook: Notebook) -> None:
    failed = notebook.run("%%gpu\n%no_such_magic")
    assert failed.reply["status"] == "error"
    assert failed.stream("stderr").count("no_such_magic") == 1


def test_what_with_open_leaves_over_is_a_closed_file_and_no_note(notebook: Notebook) -> None:
    wrote = notebook.run("%%gpu\nwith open('w.txt', 'w') as file:\n    file.write('hello')")
    assert "stayed" not in wrote.shown
    assert notebook.value("(file.closed, file.name, file.mode, open('w.txt').read())") == (
        "(True, 'w.txt', 'w', 'hello')"
    )


def test_cd_says_where_the_notebook_is(notebook: Notebook) -> None:
    folder = notebook.value("__import__('os').getcwd()").strip("'")
    assert notebook.run("%%gpu\n%cd no_such_folder").stream().endswith(f"{folder}\n")
