"""Arrays over memory that a library manages stay one with what the library makes of it."""

import pytest

from tests.state.notebook import Notebook


@pytest.mark.parametrize("storage", ["Double()", "Weight()"])
@pytest.mark.parametrize("flow", [True, False])
def test_a_view_of_a_histogram_shows_what_is_filled_in_on_either_side(
    notebook: Notebook, storage: str, flow: bool
) -> None:
    pytest.importorskip("boost_histogram")
    notebook.local(
        "import boost_histogram as bh\n"
        f"h = bh.Histogram(bh.axis.Regular(4, 0, 1), bh.axis.IntCategory([1, 2]), storage=bh.storage.{storage})\n"
        f"v = h.view({flow})\nraw = v['value'] if v.dtype.names else v"
    )
    notebook.gpu("h.fill([.1, .9], 1)")
    assert notebook.local("raw.sum()") == 2
    notebook.gpu("w = h.view(); u = w['value'] if w.dtype.names else w; raw[-1, -1] += 5")
    notebook.local("h.fill([.1] * 3, 2)")
    assert notebook.local("raw.sum() - u.sum()") == (5 if flow else 0)
    assert notebook.gpu("h.fill([.1], 1); raw.sum()").extra["result"] == 11
    assert notebook.local("raw.sum()") == 11


def test_a_histogram_that_got_other_axes_takes_the_place_of_the_one_before(notebook: Notebook) -> None:
    pytest.importorskip("boost_histogram")
    notebook.local("import boost_histogram as bh\nh = bh.Histogram(bh.axis.StrCategory([], growth=True)); held = [h]")
    notebook.gpu("h.fill(['a', 'b', 'a'])")
    assert notebook.local("held[0] is h, list(h.axes[0]), h.view().tolist()") == (True, ["a", "b"], [2.0, 1.0])


def test_an_array_of_awkward_over_one_of_numpys_sees_what_changes_there(notebook: Notebook) -> None:
    pytest.importorskip("awkward")
    notebook.local("import awkward as ak, numpy as np\na = np.arange(5.0)")
    notebook.gpu("k = ak.from_numpy(a)")
    notebook.local("a[1] = 8")
    notebook.gpu("a[0] = 9; lists = ak.Array([[1, 2], []])")
    assert notebook.local("k.to_list(), lists.to_list()") == ([9, 8, 2, 3, 4], [[1, 2], []])
