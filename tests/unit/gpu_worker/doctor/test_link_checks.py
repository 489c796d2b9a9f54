"""What is wrong with a pool that runs, by what its broker shows of it."""

from bulletin.ids import SlotId
from bulletin.wire import messages as wire
from gpu_worker.doctor.link_checks import judge_picture

SOUND = wire.Picture(
    slots=(wire.SlotPicture(node="node1", slot=SlotId("gpu-0"), name="A100", state="free"),),
    waiting=(),
    recent=(),
    counters={},
    uptime_ms=1,
    slot_word="GPU",
)


def test_clocks_that_differ_are_said_with_by_how_much_and_what_follows() -> None:
    assert list(judge_picture(SOUND)) == []
    apart = wire.Picture(
        slots=SOUND.slots,
        waiting=(),
        recent=(),
        counters={},
        uptime_ms=1,
        slot_word="GPU",
        clocks_ahead_ms={"node1": 180_000, "node2": -7_200_000},
    )
    ahead, behind = map(str, judge_picture(apart))
    assert "advice: The clock of node1 is 3 min ahead of the broker's." in ahead
    assert "its agent leaves 3 min too early" in ahead
    assert "The clock of node2 is 2 h behind the broker's." in behind
    assert "its agent leaves 2 h too late" in behind
