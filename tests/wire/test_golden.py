"""Golden frames: what a released version has said, every later one reads. A change here is a new protocol."""

import json
from typing import Any

import msgspec
import pytest

from bulletin.wire import frames, messages as wire
from tests.wire.golden import FILE, UNIONS, kinds, make_frame

GOLDEN = json.loads(FILE.read_text())
#: Words of the frames that no version ever said: the codes had no type when the frames were made.
MADE_UP = {"code-1", "outcome-1"}


def known(said: Any, fields: Any) -> Any:
    """Of what was said, what was known when the frame was made: structs grow by fields with defaults."""
    if isinstance(said, dict) and isinstance(fields, dict):
        return {name: known(said.get(name), fields[name]) for name in fields}
    if isinstance(said, list) and isinstance(fields, list) and len(said) == len(fields):
        return [known(one, field) for one, field in zip(said, fields, strict=True)]
    is_made_up = isinstance(fields, str) and fields in MADE_UP
    return fields if is_made_up and said == "unrecognized" else said


@pytest.mark.parametrize("link", list(UNIONS))
def test_every_golden_frame_is_still_read_and_means_the_same(link: str) -> None:
    unpacker: frames.Unpacker[wire.Message] = frames.Unpacker(UNIONS[link])
    for entry in GOLDEN[link]:
        message, _ = unpacker.unpack([bytes.fromhex(entry["mark"]), bytes.fromhex(entry["frame"])])
        said = json.loads(msgspec.json.encode(message))
        assert known(said, entry["fields"]) == entry["fields"]


@pytest.mark.parametrize("link", list(UNIONS))
def test_every_kind_of_message_has_a_golden_frame(link: str) -> None:
    assert set(kinds(link)) == {one["kind"] for one in GOLDEN[link]}, "run: python -m tests.wire.golden"


@pytest.mark.parametrize("link", list(UNIONS))
def test_a_frame_can_be_made_for_every_kind_of_message(link: str) -> None:
    unpacker: frames.Unpacker[wire.Message] = frames.Unpacker(UNIONS[link])
    for kind in kinds(link).values():
        made = make_frame(kind)
        message, _ = unpacker.unpack([bytes.fromhex(str(made["mark"])), bytes.fromhex(str(made["frame"]))])
        assert type(message) is kind
