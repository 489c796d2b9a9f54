"""The kinds of notebook of a hub's configuration, and how they are offered."""

import pytest

from bulletin.errors import BadConfig
from bulletin_magic.commands.options import parse
from bulletin_spawner.notebook_kinds import WHOLE_NOTEBOOK, NotebookKind, draw_form, read_kinds
from bulletin_spawner.reserved_place import ReservedPlace, make_request


@pytest.mark.parametrize("exclusive", [True, False])
def test_the_options_of_its_cells_are_those_that_the_notebook_reads_and_ask_for_the_same(exclusive: bool) -> None:
    kind = NotebookKind(
        name="big", title="", gpus=2, gpu_type="A100 80GB", keep="10 min", time="4 h", qos="q", exclusive=exclusive
    )
    asked, reserved = parse(kind.cell_options).resources, make_request(ReservedPlace("server-1"), kind)
    assert asked.is_exclusive is reserved.is_exclusive is exclusive
    assert (asked.gpus, asked.gpu_type, asked.qos) == (kind.gpus, kind.gpu_type, kind.qos)
    assert (asked.keep_ms, asked.walltime_ms) == (kind.keep_ms, kind.walltime_ms)


def test_what_an_admin_writes_is_text_in_the_form() -> None:
    form = draw_form(read_kinds([{"name": 'a"b', "title": "<i>x</i>", "description": "1 < 2"}]))
    assert 'value="a&quot;b"' in form
    assert "&lt;i&gt;x&lt;/i&gt;" in form
    assert "1 &lt; 2" in form
    assert form.index('value="cpu" checked') < form.index("a&quot;b"), "nobody gets a GPU who does not choose one"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([{"name": "a", "titel": "b"}], "number 1 cannot be read"),
        ([{"name": "a", "title": "b", "keep": "soon"}], "number 1 cannot be read"),
        ([WHOLE_NOTEBOOK, WHOLE_NOTEBOOK], "'gpu' needs a name of its own"),
        ([{"name": "cpu", "title": "b"}], "other than 'cpu'"),
        ([{"name": "a", "title": "b", "gpus": 0}], "at least one GPU"),
    ],
)
def test_a_kind_that_cannot_be_is_an_error_of_the_configuration(
    given: list[NotebookKind | dict[str, object]], sentence: str
) -> None:
    with pytest.raises(BadConfig, match=sentence):
        read_kinds(given)


def test_a_kind_with_groups_is_for_their_members() -> None:
    kind = NotebookKind(name="a", title="", groups=("lab", "club"))
    assert kind.is_for(["club", "other"])
    assert not kind.is_for(["other"])
    assert WHOLE_NOTEBOOK.is_for([])
