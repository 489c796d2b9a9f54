"""What a page says of the user's cells: the words of the pool, and nothing for the page to count."""

import msgspec
import pytest

from bulletin.codes import CellOutcome
from bulletin.ids import AgentId, CellId, KernelId, LeaseId, ProjectId, SlotId, UserName
from bulletin.kept_time import make_kept_cell
from bulletin.wire.messages import CellNote
from bulletin.wire.messages.own_cells import OwnEnded, OwnProject, OwnReport, OwnRunning, OwnWaiting
from bulletin_lab.page_view import PageView, describe
from bulletin_lab.pool_link import OwnCells

KERNEL = "0e0f8a3c-1234-4bcd-9abc-0123456789ab"
NOBODY = OwnReport(slot_word="GPU", total=8, free=3, ready=1, waiting_count=0)
RUNNING = OwnRunning(
    lease=LeaseId("l"),
    cell=CellId("cell-0123456789"),
    kernel=KernelId(f"{KERNEL}-77"),
    label="big run",
    node="n1",
    slots=(SlotId("a"), SlotId("b")),
    state="busy",
    qos="interactive",
    project=ProjectId("maths"),
    for_ms=90_000,
    walltime_ms=1_800_000,
    in_quota=False,
)
WAITING = OwnWaiting(
    lease=LeaseId("w"),
    kernel=KernelId(f"{KERNEL}-77-background-2"),
    position=2,
    gpus=1,
    qos="batch",
    project=ProjectId("maths"),
    label="",
    reason="others are before you",
    waited_ms=3_000,
    wait_ms=720_000,
)
NOTE = CellNote(
    cell=CellId("0123456789abcdef"),
    agent=AgentId("a"),
    node="n2",
    state="running",
    line="model.fit(images, labels)",
    since_ms=60_000,
)
ENDED = OwnEnded(
    cell=CellId("c"),
    lease=LeaseId("l"),
    label="big run",
    user=UserName("ann"),
    project=ProjectId("maths"),
    qos="interactive",
    node="n1",
    outcome=CellOutcome.RETURNED,
    ended_at_ms=7,
    ran_ms=12_000,
    gpu_ms=12_000,
    peak_memory_bytes=2_000_000_000,
    mean_utilization=0.8,
)


def view(notes: tuple[CellNote, ...] = (), **changes: object) -> PageView:
    return describe(OwnCells(report=msgspec.structs.replace(NOBODY, **changes), notes=notes, is_whole=True))


def test_what_is_kept_ready_for_somebody_counts_as_free_and_is_named() -> None:
    said = view()
    assert said.brief == "4 of 8 GPUs free"
    assert said.summary == "4 of 8 GPUs free, 1 of them kept ready for somebody's next cell; nobody waits."
    hot = msgspec.structs.replace(RUNNING, state="hot")
    assert "2 of them kept ready for your next cell;" in view(ready=2, running=(hot,)).summary


def test_what_is_announced_to_everybody_is_shown_as_it_is() -> None:
    said = "Announcement by root: it ends at six"
    assert view(announcement=said).announcement == said
    assert view().announcement == ""


def test_a_pool_without_a_slot_says_so() -> None:
    assert (view(total=0).brief, view(total=0).summary) == ("no GPU", "The pool has no GPU at this moment.")


def test_a_cell_in_line_has_its_place_the_wait_and_the_reason() -> None:
    (said,) = view(waiting=(WAITING,), own_waiting_count=1).waiting
    assert said.sentence == (
        "Waiting for a GPU: 2nd in line, at most about 12 min. Others are before you. Waited 3.0 s."
    )
    assert (said.brief, said.kernel, said.kind) == ("2nd in line", KERNEL, "background")


def test_a_cell_that_waits_for_nobody_is_being_got_ready() -> None:
    (said,) = view(waiting=(msgspec.structs.replace(WAITING, position=0, reason=""),)).waiting
    assert (said.brief, said.sentence) == ("getting ready", "Getting a GPU ready. Waited 3.0 s.")


@pytest.mark.parametrize(
    ("state", "sentence", "is_cell"),
    [
        ("busy", "Running for 90 s on 2 GPUs of n1, borrowed; at most 30 min.", True),
        ("granted", "2 GPUs of n1: starting.", True),
        ("reclaiming", "Running on 2 GPUs of n1, which is to be given back to its owner.", True),
        ("hot", "2 GPUs of n1 kept ready for the next cell, or given to who needs it.", False),
        ("leaving", "2 GPUs of n1: being cleared.", False),
    ],
)
def test_what_is_held_is_told_by_what_it_does(state: str, sentence: str, is_cell: bool) -> None:
    (said,) = view(running=(msgspec.structs.replace(RUNNING, state=state),)).running
    assert (said.sentence, said.is_cell, said.title) == (sentence, is_cell, "big run" if is_cell else "")
    assert said.place == ("On 2 GPUs of n1; at most 30 min." if is_cell else "")


def test_a_place_that_is_kept_between_cells_says_so() -> None:
    (said,) = view(running=(msgspec.structs.replace(RUNNING, state="busy", cell=make_kept_cell()),)).running
    assert said.sentence == "2 GPUs of n1 kept between cells, and charged as if one ran; at most 30 min in all."


def test_a_cell_without_a_label_is_known_by_its_first_line() -> None:
    unlabelled = msgspec.structs.replace(RUNNING, label="", cell=NOTE.cell)
    long = msgspec.structs.replace(NOTE, line="x" * 200, is_attended=True)
    (said,) = view(notes=(long,), running=(unlabelled,)).running
    assert (len(said.title), said.title[-1]) == (60, "…")


def test_a_cell_whose_notebook_is_gone_has_the_command_that_brings_it() -> None:
    theirs = msgspec.structs.replace(NOTE, cell=CellId("ffff"), is_attended=True)
    (said,) = view(notes=(NOTE, theirs)).detached
    assert said.command == "%gpu attach 01234567"
    assert said.sentence == "Its notebook is gone: running on n2, began 60 s ago."
    (later,) = describe(OwnCells(report=NOBODY, notes=(NOTE,), notes_age_ms=15_000, is_whole=True)).detached
    assert later.sentence.endswith("began 75 s ago.")
    (lost,) = view(notes=(msgspec.structs.replace(NOTE, state="lost"),)).detached
    assert lost.sentence == "Its process on n2 died, and its notebook is gone; it began 60 s ago."


def test_a_receipt_says_what_a_cell_cost_and_how_it_ended_where_that_is_news() -> None:
    well, badly = view(ended=(ENDED, msgspec.structs.replace(ENDED, outcome=CellOutcome.MEMORY_LIMIT))).ended
    assert (well.outcome, well.is_well) == ("", True)
    assert well.sentence == "ran 12 s on n1 · peak 2 GB · GPU 80% busy"
    assert (badly.outcome, badly.is_well) == ("used too much memory", False)


def test_what_a_project_has_left_is_said() -> None:
    project = OwnProject(
        project=ProjectId("maths"),
        used_milli=2_000,
        guaranteed_milli=1_000,
        limit_milli=4_000,
        budget_ms=100 * 3_600_000,
        budget_left_ms=12 * 3_600_000,
        period="month",
    )
    assert view(project=project).project == (
        "Your project 'maths' uses 2, has 1 GPU guaranteed and may use 4. "
        "12 GPU-hours of its budget are left this month."
    )
    plain = msgspec.structs.replace(project, guaranteed_milli=0, limit_milli=None, budget_left_ms=None)
    assert view(project=plain).project == ""


def test_nothing_of_the_pool_is_shown_but_sentences() -> None:
    """Ids of cells and sessions stay with the server, but for the name by which the page cancels."""
    shown = msgspec.json.encode(view(notes=(NOTE,), waiting=(WAITING,), running=(RUNNING,), ended=(ENDED,)))
    for hidden in (NOTE.cell, RUNNING.cell or "", "agent"):
        assert hidden.encode() not in shown


def test_a_place_that_was_kept_is_no_cell_that_failed() -> None:
    kept = msgspec.structs.replace(ENDED, label="kept between cells", outcome=CellOutcome.KEPT, ran_ms=0)
    kept = msgspec.structs.replace(kept, peak_memory_bytes=None, mean_utilization=None)
    (said,) = view(ended=(kept,)).ended
    assert (said.title, said.outcome, said.is_well) == ("", "kept between cells", True)
    assert said.sentence == "a place on n1, no cell ran"
