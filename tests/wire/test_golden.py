"""Golden frames: what a released version has said, every later one reads. A change here is a new protocol."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bulletin.wire import console, frames, messages as wire

FILE = Path(__file__).with_name("golden.json")
UNIONS = {
    "FromKernel": wire.FromKernel,
    "ToKernel": wire.ToKernel,
    "FromConsole": console.FromConsole,
    "ToConsole": console.ToConsole,
    "FromAgent": wire.FromAgent,
    "ToAgent": wire.ToAgent,
    "KernelToAgent": wire.KernelToAgent,
    "AgentToKernel": wire.AgentToKernel,
    "ToExecutor": wire.ToExecutor,
    "FromExecutor": wire.FromExecutor,
    "ToZygote": wire.ToZygote,
    "FromZygote": wire.FromZygote,
}
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
    union = UNIONS[link]
    kinds = {kind.__struct_config__.tag for kind in getattr(union, "__args__", (union,))}
    assert kinds == {entry["kind"] for entry in GOLDEN[link]}
