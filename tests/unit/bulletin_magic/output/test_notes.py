"""What Bulletin says of its own: the queue line, notes, receipts, the status of the pool."""

import pytest
from msgspec import structs

from bulletin.ids import LeaseId, ProjectId, SlotId, UserName
from bulletin.wire.messages import (
    CellUsage,
    Ended,
    ErrorText,
    Parcel,
    Picture,
    ProjectPicture,
    SlotPicture,
    WaitingPicture,
)
from bulletin_magic.commands.panel import describe_panel, describe_pool
from bulletin_magic.connection.deliveries import CellFinished, PoolStatus, QueuePosition
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.output.notes import describe_queue_position, dim
from bulletin_magic.output.receipts import ReceiptList, advise, describe_receipt, describe_receipts, receipt_of
from bulletin_magic.running.outcome import RemoteError, describe_lost_result, describe_stayed, error_to_raise

LEASE_INFO = LeaseInfo(lease_id=LeaseId("l"), node="node1", slots=("GPU-0",), slot_word="GPU")


def waiting(
    position: int = 2,
    wait_ms: int | None = 240_000,
    gpus: int = 1,
    reason: str = "",
    slot_word: str = "GPU",
    usual_ms: int | None = None,
) -> QueuePosition:
    return QueuePosition(
        position=position,
        reason=reason,
        wait_ms=wait_ms,
        in_quota=True,
        gpus=gpus,
        slot_word=slot_word,
        usual_ms=usual_ms,
    )


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (
            waiting(reason="The only GPU is busy; 1 request is before yours."),
            "⏳ Waiting for a GPU: 2nd in line, at most about 4 min. The only GPU is busy; 1 request is before yours.",
        ),
        (waiting(1, None, 2), "⏳ Waiting for 2 GPUs: 1st in line."),
        (waiting(1, None, reason="all are busy"), "⏳ Waiting for a GPU: 1st in line. All are busy."),
        (waiting(11, None, slot_word="CPU slot"), "⏳ Waiting for a CPU slot: 11th in line."),
        (waiting(1, None, 0), "⏳ Waiting for a CPU slot: 1st in line."),
        (waiting(1, 999), "⏳ Waiting for a GPU: 1st in line."),
        (
            waiting(usual_ms=30_000),
            "⏳ Waiting for a GPU: 2nd in line, usually about 30 s, at most about 4 min.",
        ),
        (waiting(1, None, usual_ms=30_000), "⏳ Waiting for a GPU: 1st in line, usually about 30 s."),
        (waiting(1, 20_000, usual_ms=30_000), "⏳ Waiting for a GPU: 1st in line, at most about 20 s."),
        (waiting(1, 20_000, usual_ms=900), "⏳ Waiting for a GPU: 1st in line, at most about 20 s."),
        (waiting(1, 999, usual_ms=900), "⏳ Waiting for a GPU: 1st in line."),
        (waiting(0, None), "⏳ Getting a GPU ready."),
    ],
)
def test_the_queue_line_says_what_where_how_long_and_why(told: QueuePosition, line: str) -> None:
    assert describe_queue_position(told) == line


def test_a_note_cannot_smuggle_markup_into_the_notebook() -> None:
    bundle = dim("<script>x</script>", role="status")
    assert bundle["text/plain"] == "<script>x</script>"
    assert "<script>" not in bundle["text/html"]
    assert 'role="status"' in bundle["text/html"]


def finished(ran_ms: int, waited_ms: int = 0, peak: int | None = None, outcome: str = "returned") -> CellFinished:
    usage = CellUsage(outcome=outcome, ran_ms=ran_ms, held_ms=ran_ms, peak_memory_bytes=peak)
    return CellFinished(
        ended=Ended(cell="c", outcome=outcome, parcel=Parcel(), ran_ms=ran_ms, usage=usage),  # type: ignore[arg-type]
        parts=(),
        lease=LEASE_INFO,
        waited_ms=waited_ms,
        sent_bytes=12_000_000,
        returned_bytes=1_200_000,
    )


def shown(done: CellFinished) -> list[str]:
    return ReceiptList().add(receipt_of(done, 4))


def test_a_receipt_says_what_a_cell_cost() -> None:
    cost = "ran 4.2 s on GPU-0 of node1 · waited 3.0 s · sent 12 MB · returned 1.2 MB"
    assert shown(finished(4_200, 3_000)) == [cost]
    assert shown(finished(4_200, 3_000, peak=3_100_000_000)) == [f"{cost} · peak 3.1 GB"]
    assert len(shown(finished(5, 1_500))) == 1
    used = structs.replace(receipt_of(finished(4_200), 4), mean_utilization=0.42)
    assert describe_receipt(used).endswith(" · GPU 42% busy")
    borrowed = structs.replace(finished(4_200), lease=structs.replace(LEASE_INFO, is_in_quota=False))
    assert shown(borrowed)[0].endswith(" · borrowed")
    dear = structs.replace(LEASE_INFO, slots=("GPU-0", "GPU-1"), price_percent=250, is_in_quota=True)
    assert shown(structs.replace(finished(4_200), lease=dear))[0].endswith(" · charged as 5 GPUs · in quota")
    alone = structs.replace(dear, is_exclusive=True)
    assert shown(structs.replace(finished(4_200), lease=alone))[0].startswith("ran 4.2 s on all of node1 (2 GPUs) · ")
    usual = structs.replace(alone, price_percent=None)
    assert shown(structs.replace(finished(4_200), lease=usual))[0].endswith(" · charged as 2 GPUs · in quota")


def test_a_receipt_leaves_out_what_is_not_worth_its_words() -> None:
    plain = structs.replace(
        finished(4_200, 300),
        sent_bytes=3_860,
        returned_bytes=220,
        lease=structs.replace(LEASE_INFO, slots=("CPU slot",), slot_word="CPU slot"),
    )
    assert shown(plain) == ["ran 4.2 s on a CPU slot of node1"]


def test_a_quick_cell_has_no_receipt_and_is_in_the_list() -> None:
    receipts = ReceiptList()
    assert receipts.add(receipt_of(finished(2_000, 1_000, peak=5), 4)) == []
    (row, total) = describe_receipts(receipts.last(5))["text/plain"].splitlines()[1::2]
    assert " ".join(row.split()) == "[4] returned 2.0 s 1.0 s 12 MB 1.2 MB 5 B GPU-0 of node1"
    assert total == "1 cell: ran 2.0 s and waited 1.0 s in all."
    assert "No cell" in describe_receipts(receipts.last(0))["text/plain"]


def test_the_blocks_of_a_cell_are_one_in_the_list() -> None:
    receipts = ReceiptList()
    receipts.add(receipt_of(finished(100), 2))
    for ran_ms, peak, busy in ((1_000, 9, 0.2), (3_000, 5, 0.6), (1, None, None)):
        receipts.add(structs.replace(receipt_of(finished(ran_ms, 20, peak=peak), 3), mean_utilization=busy))
    first, second = receipts.last(2)
    assert (first.number, first.parts) == (2, 1)
    assert (second.number, second.parts, second.waited_ms, second.sent_bytes) == (3, 3, 60, 36_000_000)
    assert describe_receipt(second) == (
        "3 blocks · ran 4.0 s on GPU-0 of node1 · sent 36 MB · returned 3.6 MB · peak 9 B · GPU 50% busy"
    )
    listed = describe_receipts([first, second])["text/plain"].splitlines()
    assert " ".join(listed[2].split()).startswith("[3] 3 blocks returned 4.0 s 60 ms 36 MB")
    assert listed[-1].startswith("2 cells: ran 4.1 s")


SIZES = (10 * 10**9, 20 * 10**9, 80 * 10**9)


@pytest.mark.parametrize(
    ("ran_ms", "peak", "busy", "outcome", "words"),
    [
        (60_000, 3 * 10**9, 0.9, "returned", "used 3 GB of the GPU's 80 GB: a GPU or slice of 10 GB would do"),
        (60_000, 9 * 10**9, 0.9, "returned", "slice of 20 GB"),  # libraries need room beside it
        (60_000, 70 * 10**9, 0.9, "returned", None),
        (60_000, 3 * 10**9, 0.03, "returned", "idle 97% of the time"),
        (60_000, 3 * 10**9, 0.001, "returned", "belongs in one with it"),
        (60_000, None, None, "returned", None),
        (9_000, 3 * 10**9, 0.03, "returned", None),  # too short to tell
        (60_000, 3 * 10**9, 0.03, "raised", None),
    ],
)
def test_advice_is_given_where_there_is_some(
    ran_ms: int, peak: int | None, busy: float | None, outcome: str, words: str | None
) -> None:
    lease = structs.replace(LEASE_INFO, memory_bytes=80 * 10**9, sizes=SIZES)
    receipt = receipt_of(structs.replace(finished(ran_ms, peak=peak, outcome=outcome), lease=lease), 1)
    advice = [text for _, text in advise(structs.replace(receipt, mean_utilization=busy))]
    assert len(advice) == (words is not None)
    assert words is None or words in advice[0]


def test_the_same_advice_is_given_once() -> None:
    receipts, receipt = ReceiptList(), structs.replace(receipt_of(finished(60_000), 1), mean_utilization=0.0)
    assert [len(receipts.add(receipt)) for _ in range(3)] == [2, 1, 1]


def test_the_pool_is_described_in_a_few_lines() -> None:
    slot = SlotPicture(
        node="node1", slot=SlotId("GPU-0"), name="H100", state="busy", user=UserName("ada"), memory_bytes=80 * 10**9
    )
    line = WaitingPicture(
        position=1, user=UserName("bob"), qos="batch", gpus=2, reason="All are busy.", waited_ms=5_000, wait_ms=60_000
    )
    picture = Picture(slots=(slot,), waiting=(line,), recent=(), counters={}, uptime_ms=7_200_000, slot_word="GPU")
    assert describe_pool(PoolStatus(picture=picture, lease=LEASE_INFO), "of this hub").splitlines() == [
        "The pool of this hub: 1 GPU (1 running a cell), up 2 h.",
        "This notebook holds GPU-0 of node1.",
        "  node1 H100, 80 GB: running a cell, ada",
        "Waiting: 1.",
        "  1st: bob, 2 GPUs, batch, waited 5.0 s; from now on at most about 60 s. All are busy.",
    ]


def test_the_panel_says_when_cells_will_go_to_the_users_own_node() -> None:
    ada, bob = UserName("ada"), UserName("bob")
    held = SlotPicture(node="node1", slot=SlotId("GPU-0"), name="H100", state="hot", user=ada)
    others = structs.replace(held, slot=SlotId("GPU-1"), user=bob)
    own = SlotPicture(node="ada-box", slot=SlotId("GPU-0"), name="A100", state="free", owner=ada)

    def says(*slots: SlotPicture) -> bool:
        picture = Picture(slots=slots, waiting=(), recent=(), counters={}, uptime_ms=1, slot_word="GPU")
        return "ada-box (ada's own) has room. Cells of this notebook stay on node1, where its session is" in (
            describe_pool(PoolStatus(picture=picture, lease=LEASE_INFO), "of this hub")
        )

    assert says(held, others, own)
    assert not says(held, structs.replace(own, state="busy"))
    assert not says(structs.replace(held, user=bob), structs.replace(others, user=ada), own), "an admin sees others'"


def test_the_panel_says_what_is_ones_own_and_what_happened_last() -> None:
    project = ProjectPicture(project=ProjectId("ml"), used_milli=2_500, guaranteed_milli=2_000, limit_milli=4_000)
    picture = Picture(slots=(), waiting=(), recent=(), counters={}, uptime_ms=1, slot_word="GPU", project=project)
    lease = structs.replace(LEASE_INFO, is_in_quota=False)
    last = [receipt_of(finished(4_200), 7)]
    shown = describe_panel(PoolStatus(picture=picture, lease=lease), "of <this> hub", "--gpus 1", last)
    assert shown["text/plain"].splitlines() == [
        "The pool of <this> hub: 0 GPUs (none yet), up 1 ms.",
        "This notebook holds GPU-0 of node1, borrowed: it goes back when its owner needs it.",
        "Every cell runs on the pool with --gpus 1; %gpu off ends this.",
        "Your project 'ml' uses 2.5, has 2 GPUs guaranteed and may use 4.",
        "Last cells:",
        "  [7] ran 4.2 s on GPU-0 of node1 · sent 12 MB · returned 1.2 MB",
    ]
    assert "&lt;this&gt;" in shown["text/html"]
    assert "<this>" not in shown["text/html"]


def test_the_panel_says_when_class_hours_are() -> None:
    project = ProjectPicture(
        project=ProjectId("cs101"), used_milli=0, guaranteed_milli=0, class_hours="class hours begin at 10:00, in 3 h"
    )
    picture = Picture(slots=(), waiting=(), recent=(), counters={}, uptime_ms=1, slot_word="GPU", project=project)
    shown = describe_panel(PoolStatus(picture=picture, lease=None), "of this hub", None, [])
    assert shown["text/plain"].splitlines()[-1] == (
        "Your project 'cs101' uses 0, has nothing guaranteed; class hours begin at 10:00, in 3 h."
    )


def test_a_column_of_memory_is_there_where_a_slot_has_some() -> None:
    none = SlotPicture(node="node1", slot=SlotId("s"), name="CPU slot", state="idle", user=None, memory_bytes=0)

    def shown(*slots: SlotPicture) -> str:
        picture = Picture(slots=slots, waiting=(), recent=(), counters={}, uptime_ms=1, slot_word="GPU")
        return describe_panel(PoolStatus(picture=picture, lease=None), "of this hub", None, [])["text/html"]

    assert "memory" not in shown(none)
    assert "80 GB</td>" in shown(none, structs.replace(none, memory_bytes=80 * 10**9))


# --- errors ----------------------------------------------------------------------------------------------------------

TEXT = ErrorText(name="MyError", value="no", traceback=("line 1", "line 2"))


class MyError(Exception):
    pass


class Closed(Exception):
    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


def raised(text: ErrorText | None = TEXT, outcome: str = "raised") -> CellFinished:
    return CellFinished(
        ended=Ended(cell="c", outcome=outcome, parcel=Parcel(), ran_ms=1, error=text),  # type: ignore[arg-type]
        parts=(),
        lease=LEASE_INFO,
        waited_ms=0,
        sent_bytes=0,
        returned_bytes=0,
    )


def test_an_exception_that_travelled_is_raised_itself_with_its_own_traceback() -> None:
    error = MyError("no")
    assert error_to_raise(raised(), error) is error
    assert error._render_traceback_() == ["line 1", "line 2"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("travelled", [None, Closed("no"), "not an exception"])
def test_an_exception_that_did_not_travel_keeps_its_name_and_message(travelled: object) -> None:
    error = error_to_raise(raised(), travelled)
    assert isinstance(error, RemoteError)
    assert (type(error).__name__, str(error)) == ("MyError", "no")
    assert error._render_traceback_() == ["line 1", "line 2"]  # type: ignore[attr-defined]


def test_an_interrupt_is_a_keyboard_interrupt_even_if_none_travelled() -> None:
    error = error_to_raise(raised(outcome="interrupted"), None)
    assert type(error) is KeyboardInterrupt
    assert error._render_traceback_() == ["line 1", "line 2"]  # type: ignore[attr-defined]


def test_a_syntax_error_is_shown_without_our_frames() -> None:
    error = error_to_raise(raised(ErrorText(name="SyntaxError", value="x", traceback=("t",))), SyntaxError("x"))
    assert not isinstance(error, SyntaxError)
    assert type(error).__name__ == "SyntaxError"


def test_what_stayed_behind_is_told_honestly() -> None:
    assert describe_stayed("gen", "generator") == (
        "gen is a generator, which cannot come to the notebook. It stays on the pool, for %%gpu cells to use."
    )
    assert "is an _io" not in describe_stayed("f", "_io.TextIOWrapper")
    assert describe_lost_result("ValueError: not here") == (
        "The value of the cell's last line fails to load here (ValueError: not here), and Out has a handle in its "
        "place. All else of the cell has come. With a name such a value stays on the pool, for %%gpu cells to use."
    )
