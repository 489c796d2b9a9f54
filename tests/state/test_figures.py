"""Figures of matplotlib that pyplot knows: by the same numbers on both sides, and as long as on the other."""

from collections.abc import Iterator

import pytest

from tests.state.notebook import Notebook

pytest.importorskip("matplotlib")


@pytest.fixture
def plots(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook.local("import os; os.environ['MPLBACKEND'] = 'agg'; import matplotlib.pyplot as plt; plt.close('all')")
    notebook.gpu("import matplotlib.pyplot as plt; plt.close('all')")
    yield notebook
    notebook.local("plt.close('all')")


def test_a_figure_keeps_its_number_whichever_side_changes_it(plots: Notebook) -> None:
    plots.local("fig, ax = plt.subplots(); other = plt.figure(7); _ = plt.figure(fig)")
    ask = "other.number, fig.number, plt.gcf() is fig, sorted(plt.get_fignums())"
    assert plots.gpu(f"ax.plot([1, 2]); {ask}").extra["result"] == (7, 1, True, [1, 7])
    assert plots.local(f"ax.set_title('t'); {ask}") == (7, 1, True, [1, 7])
    assert plots.gpu(f"plt.figure(other); ax.set_title('u'); {ask}").extra["result"] == (7, 1, False, [1, 7])
    assert plots.local(ask) == (7, 1, False, [1, 7])


def test_a_figure_that_a_cell_closes_is_closed_on_both_sides(plots: Notebook) -> None:
    plots.local("fig = plt.figure()")
    plots.gpu("plt.close(fig)")
    assert plots.local("plt.get_fignums()") == []
    plots.gpu("late = plt.figure()")
    assert plots.local("plt.gcf() is late, plt.get_fignums()") == (True, [1])
    plots.local("plt.close(late)")
    assert plots.gpu("plt.get_fignums()").extra["result"] == []
