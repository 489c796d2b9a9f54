"""A cell's Jupyter messages, shown through a plain IPython shell's own hooks."""

import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from bulletin_magic.output.notes import StatusLine, show_note
from bulletin_magic.output.output_writer import OutputWriter, remember_result
from bulletin_magic.output.widget_comms import WidgetComms


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def show(shell: InteractiveShell, kind: str, content: dict[str, Any]) -> None:
    outputs = OutputWriter(shell, WidgetComms(shell, lambda _: False))
    outputs.show(kind, json.dumps(content).encode())
    outputs.flush()


def test_printed_text_goes_where_stdout_goes_now(shell: InteractiveShell) -> None:
    with redirect_stdout(StringIO()) as caught:
        show(shell, "stream", {"name": "stdout", "text": "50%\r100%"})
    assert caught.getvalue() == "50%\r100%"


def test_what_was_printed_to_one_stream_is_flushed_before_the_other_is_printed_to(shell: InteractiveShell) -> None:
    """Both collect text, as a kernel's streams do."""
    shown: list[str] = []

    class Stream(StringIO):
        def flush(self) -> None:
            shown.append(self.getvalue())
            self.truncate(self.seek(0))

    outputs = OutputWriter(shell, WidgetComms(shell, lambda _: False))
    with redirect_stdout(Stream()), redirect_stderr(Stream()):
        for name, text in (("stderr", "1"), ("stdout", "2"), ("stdout", "3"), ("stderr", "4")):
            outputs.show("stream", json.dumps({"name": name, "text": text}).encode())
        outputs.flush()
    assert shown == ["1", "23", "4"]


def test_everything_is_captured_by_the_capture_magic(shell: InteractiveShell) -> None:
    with capture_output() as caught:
        show(shell, "stream", {"name": "stderr", "text": "e"})
        show(shell, "display_data", {"data": {"text/plain": "d"}, "metadata": {}})
        show(shell, "execute_result", {"data": {"text/plain": "r"}, "metadata": {}})
    assert caught.stderr == "e"
    assert [output.data["text/plain"] for output in caught.outputs] == ["d", "r"]


def test_clear_output_clears_what_was_shown(shell: InteractiveShell) -> None:
    with capture_output() as caught:
        show(shell, "display_data", {"data": {"text/plain": "d"}})
        show(shell, "clear_output", {"wait": False})
    assert caught.outputs == []


def test_messages_that_have_no_place_here_are_dropped(shell: InteractiveShell) -> None:
    with capture_output() as caught:
        show(shell, "comm_msg", {"data": {}})
    assert (caught.stdout, caught.stderr, caught.outputs) == ("", "", [])


def test_a_result_is_remembered_as_a_local_one(shell: InteractiveShell) -> None:
    shell.run_cell("'local'")  # type: ignore[no-untyped-call]  # IPython's
    remember_result(shell, "remote")
    remember_result(shell, None)
    assert (shell.user_ns["_"], shell.user_ns["__"]) == ("remote", "local")
    assert "remote" in shell.user_ns["Out"].values()


def test_a_line_that_never_waited_shows_nothing(shell: InteractiveShell) -> None:
    with capture_output() as caught:
        line = StatusLine(shell)
        assert line.due_in_s is None
        line.say("Waiting.")
        assert line.due_in_s is not None
        line.clear()
        line.show_now()
    assert line.due_in_s is None
    assert (caught.stdout, caught.outputs) == ("", [])


def test_a_note_is_plain_text_and_html(shell: InteractiveShell) -> None:
    with capture_output() as caught:
        show_note(shell, "Hello.")
    assert caught.outputs[0].data["text/plain"] == "Hello."
    assert "Hello." in caught.outputs[0].data["text/html"]
