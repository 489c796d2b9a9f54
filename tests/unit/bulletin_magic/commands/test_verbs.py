"""What a %gpu line that is not understood is answered."""

import pytest

from bulletin_magic.commands.options import parse
from bulletin_magic.commands.verbs import suggest


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("stopp", "Did you mean `%gpu stop`?"),
        ("pus x", "Did you mean `%gpu push NAMES`?"),
        ("--gpus 2", "write `%%gpu --gpus 2` in its first line"),
        ("connect", "needs the path of a connection file"),
        ("shell", "Each %%gpu cell is one: `!nvidia-smi`"),
        ("SSH node1", "Each %%gpu cell is one: `!nvidia-smi`"),
        ("ps", "`%gpu` alone shows the pool"),
        ("free", "`%gpu` alone shows the pool"),
        ("scancel 12", "The stop button stops the cell that runs or waits"),
        ("release", "`%gpu stop` gives the GPU back"),
        ("debug", "`%debug`, in the next cell"),
        ("xyzzy", "There are `%gpu status`"),
    ],
)
def test_what_is_typed_from_habit_is_answered_with_what_there_is(line: str, says: str) -> None:
    answer = suggest(line)
    assert answer.startswith(("There is no `%gpu", "%gpu "))
    assert says in answer


def test_nothing_that_ends_a_process_is_proposed_for_a_look() -> None:
    for word in ("ps", "free", "queue", "list", "info", "show", "usage", "quota"):
        assert "reset" not in suggest(word)
        assert "push" not in suggest(word)


def test_options_that_are_proposed_are_options() -> None:
    assert parse("--keep 20min --exclusive --gpus 4").resources is not None
    assert "`%gpu on --keep 20min`" in suggest("shell")
    assert "`--exclusive --gpus N`" in suggest("shell")
