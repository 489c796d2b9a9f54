"""`bulletin` itself: what it says of its commands, and of what is none."""

import pytest

from bulletin import __version__
from gpu_worker import cli


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as exit_:
        cli.main(list(words))
    said = capsys.readouterr()
    return exit_.value.code, said.out, said.err


def test_a_word_that_is_no_command_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "bulletin: there is no command 'statsu'. Did you mean 'status'? `bulletin --help` lists the commands.\n"
    assert _said(capsys, "statsu") == (2, "", sentence)
    assert "mean" not in _said(capsys, "zzz")[2]


def test_the_version_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(capsys, "--version") == (0, f"bulletin {__version__}\n", "")


def test_help_lists_every_command_in_lines_that_fit_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    status, text, _ = _said(capsys, "--help")
    assert status == 0
    assert all(f"  bulletin {name}" in text for name in cli.COMMANDS)
    assert max(map(len, text.splitlines())) <= 100
    assert _said(capsys) == (2, "", text)
