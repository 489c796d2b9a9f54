"""The words for why something ended or was refused: each is read by every version, whoever says it."""

from typing import Any

import msgspec
import pytest

from bulletin.codes import EARLIER_WORDS, CellOutcome, LeaseEnd, RefusalCode
from bulletin.wire import frames, messages as wire


def read(link: Any, message: wire.Message, **fields: object) -> Any:
    """A message as it arrives from a version that puts these fields into it."""
    said = msgspec.json.decode(msgspec.json.encode(message)) | fields
    unpacker: frames.Unpacker[Any] = frames.Unpacker(link)
    return unpacker.unpack([frames.MARK, msgspec.msgpack.encode(said)])[0]


OVER = wire.LeaseOver(lease="l", code=LeaseEnd.EVICTED, sentence="A sentence.")  # type: ignore[arg-type]
LOST = wire.Lost(cell="c", code=CellOutcome.STOPPED, sentence="A sentence.")  # type: ignore[arg-type]
REFUSED = wire.Refusal(code=RefusalCode.QUEUE_FULL, sentence="A sentence.")
GONE = wire.Gone(code=RefusalCode.NOT_FREE, sentence="A sentence.")


@pytest.mark.parametrize("code", [LeaseEnd, CellOutcome, RefusalCode])
def test_each_code_travels_as_its_word_and_says_what_it_means(code: type[LeaseEnd | CellOutcome | RefusalCode]) -> None:
    for member in code:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(member)) == member.value
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(member), type=code) is member
        assert member.__doc__ is not None
        assert member.__doc__.endswith(".")


@pytest.mark.parametrize(
    ("link", "message", "expected"),
    [
        (wire.FromAgent, OVER, LeaseEnd.UNRECOGNIZED),
        (wire.AgentToKernel, LOST, CellOutcome.UNRECOGNIZED),
        (wire.AgentToKernel, GONE, RefusalCode.UNRECOGNIZED),
        (wire.ToKernel, REFUSED, RefusalCode.UNRECOGNIZED),
    ],
)
def test_a_word_of_a_newer_version_is_read_as_unrecognized_with_its_sentence(
    link: Any, message: wire.Message, expected: object
) -> None:
    got = read(link, message, code="cosmic-ray")
    assert (type(got), got.code, got.sentence) == (type(message), expected, "A sentence.")


def test_the_words_of_earlier_versions_are_read_as_what_they_meant() -> None:
    assert read(wire.FromAgent, OVER, code="session-over").code is LeaseEnd.EXECUTOR_DIED
    assert read(wire.FromAgent, OVER, code="unknown").code is LeaseEnd.NO_SUCH_LEASE
    assert read(wire.AgentToKernel, LOST, code="died").code is CellOutcome.EXECUTOR_DIED
    assert {CellOutcome(word) for word in EARLIER_WORDS} == {CellOutcome.EXECUTOR_DIED, CellOutcome.NO_SUCH_LEASE}


def test_what_ends_a_lease_ends_its_cell_with_the_same_word() -> None:
    assert {end: end.outcome.value for end in LeaseEnd} == {end: end.value for end in LeaseEnd}


@pytest.mark.parametrize("code", [7, None, ["left"], {"left": 1}])
def test_a_code_that_is_no_word_is_malformed(code: object) -> None:
    with pytest.raises(frames.MalformedMessage):
        read(wire.FromAgent, OVER, code=code)
