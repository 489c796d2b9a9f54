"""What is kept of a cell's outputs: the same to read, without what a screen has forgotten, and never too much."""

from typing import Any

import pytest

from bulletin_magic.output.cell_outputs import CellOutputs, overwritten


def showing(*messages: tuple[str, dict[str, Any]]) -> CellOutputs:
    cell = CellOutputs(3, "train()", "page", began_ms=0)
    for number, (kind, message) in enumerate(messages):
        cell.add(kind, message, size=len(str(message)), now_ms=number)
    return cell


def text(name: str, text: str) -> tuple[str, dict[str, Any]]:
    return "stream", {"name": name, "text": text}


def display(text: str, name: str, *, update: bool = False) -> tuple[str, dict[str, Any]]:
    kind = "update_display_data" if update else "display_data"
    return kind, {"data": {"text/plain": text}, "metadata": {}, "transient": {"display_id": name}}


def test_texts_are_merged_and_stay_in_order_with_the_rest() -> None:
    first = text("stdout", "a\nb"), text("stdout", "c")
    cell = showing(*first, display("d", ""), text("stderr", "e"), text("stdout", "f"))
    kept = [(kind, message.get("text")) for kind, message in cell.messages()]
    assert kept == [("stream", "a\nbc"), ("display_data", None), ("stream", "e"), ("stream", "f")]


def test_many_lines_come_back_byte_for_byte() -> None:
    lines = [f"{number} ünïcode {'x' * (number % 90)}\n" for number in range(5_000)]
    cell = showing(*(text("stdout", line) for line in lines))
    assert "".join(message["text"] for _, message in cell.messages()) == "".join(lines)
    assert cell.size_bytes >= len("".join(lines).encode())


@pytest.mark.parametrize("form", ["\r{}%", "{}%\r"])
def test_a_bar_of_many_steps_takes_the_room_of_one(form: str) -> None:
    cell = showing(*(text("stderr", form.format(step)) for step in range(2_000)))
    ((_, message),) = cell.messages()
    assert message["text"].strip("\r") == "1999%"
    assert cell.size_bytes < 1_000


@pytest.mark.parametrize(
    ("line", "short"),
    [
        ("plain", "plain"),
        ("10%\r20%", "20%"),
        ("\r10%\r20%", "\r20%"),
        ("done\r50", "done\r50"),  # the cursor is behind the 50, and "ne" is to be seen
        ("long text\rab\rc", "abng text\rc"),
        ("text\r", "text\r"),
        ("\x1b[31mred\x1b[0m\r\x1b[32mgreen\x1b[0m", "\x1b[31mred\x1b[0m\r\x1b[32mgreen\x1b[0m"),
    ],
)
def test_a_line_that_was_overwritten_is_short(line: str, short: str) -> None:
    assert overwritten(line) == short


def test_a_line_break_after_a_carriage_return_is_one() -> None:
    cell = showing(text("stdout", "a\r\n"), text("stdout", "b\r\n"))
    assert [message["text"] for _, message in cell.messages()] == ["a\r\nb\r\n"]


def test_what_is_updated_is_shown_as_it_was_last() -> None:
    steps = [display(str(step), "bar", update=step > 0) for step in range(1_000)]
    cell = showing(*steps, display("other", "elsewhere", update=True), display("more", "elsewhere", update=True))
    kept = [(kind, message["data"]["text/plain"]) for kind, message in cell.messages()]
    assert kept == [("display_data", "999"), ("update_display_data", "more")]
    assert cell.size_bytes < 2_000


def test_what_was_cleared_is_gone_at_once_or_with_the_next() -> None:
    cell = showing(text("stdout", "a"), ("clear_output", {"wait": False}), text("stdout", "b"))
    assert [message["text"] for _, message in cell.messages()] == ["b"]
    cell.add("clear_output", {"wait": True}, 2, 5)
    assert [message["text"] for _, message in cell.messages()] == ["b"]
    cell.add(*text("stdout", "c"), 1, 6)
    assert [message["text"] for _, message in cell.messages()] == ["c"]


@pytest.mark.parametrize("at_once", [1, 7_000, 20_000])
def test_the_oldest_go_and_how_much_is_known(at_once: int) -> None:
    lines = [f"{number:08}\n" for number in range(20_000)]
    printed = ("".join(lines[begin : begin + at_once]) for begin in range(0, len(lines), at_once))
    cell = showing(*(text("stdout", part) for part in printed))
    before = cell.size_bytes
    cell.shrink(100_000)
    left = "".join(message["text"] for _, message in cell.messages())
    assert cell.size_bytes <= 100_000
    assert cell.dropped_bytes == before - cell.size_bytes
    assert 40_000 < len(left) <= 100_000
    assert "".join(lines).endswith("\n" + left)


def test_a_long_line_that_came_at_once_is_cut_too() -> None:
    cell = showing(text("stdout", "x" * 1_000_000 + "end"))
    cell.shrink(300_000)
    left = "".join(message["text"] for _, message in cell.messages())
    assert 100_000 < len(left) <= 300_000
    assert left.endswith("xend")
