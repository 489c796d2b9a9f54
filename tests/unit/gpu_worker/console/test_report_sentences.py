"""Reports as people read them: one line first, aligned columns, nothing that moves the cursor."""

import io
import re

import msgspec
import pytest

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, SlotId, UserName
from bulletin.wire import console
from gpu_worker.console import layout, report_sentences

WAITING = console.WaitingRow(
    lease=LeaseId("l-75c88b1d1ce1bf8c"),
    position=1,
    user=UserName("eve"),
    project=ProjectId("guests"),
    qos="interactive",
    gpus=1,
    walltime_ms=1_800_000,
    waited_ms=12_000,
    reason="all 8 GPUs are busy; 3 requests are before yours",
    wait_ms=1_800_000,
    in_quota=False,
)
RUNNING = console.RunningRow(
    lease=LeaseId("l-86863ac1eac12b24"),
    cell=CellId("c9fdd0cf144a644cb2600e5bc273dc65"),
    user=UserName("ann"),
    project=ProjectId("lab"),
    qos="interactive",
    node="node-1",
    slots=(SlotId("gpu-0"), SlotId("gpu-1")),
    state="busy",
    for_ms=720_000,
    walltime_ms=1_800_000,
    in_quota=True,
)
PROJECT = console.ProjectRow(
    project=ProjectId("school"),
    parent=None,
    used_milli=2500,
    held_milli=3000,
    guaranteed_milli=2000,
    limit_milli=None,
    waiting=4,
    budget_ms=10 * 3_600_000,
    budget_left_ms=9 * 1_800_000,
    period="week",
    period_ends_ms=86_400_000,
    borrows_in_ms=60_000,
)


def said(report: console.Report) -> list[str]:
    return layout.plain_lines(report_sentences.show(report))


def test_a_project_whose_guarantee_is_scaled_down_says_from_what_and_why() -> None:
    scaled = msgspec.structs.replace(PROJECT, promised_milli=6000)
    (line,) = [one for one in said(console.ProjectReport(projects=(scaled,), slot_word="GPU")) if "school" in one]
    assert "guaranteed 6, scaled down: all guarantees are more than there is" in line


def test_projects_say_what_they_have_of_node_pools() -> None:
    use = console.PoolUse(name="h100", used_milli=2000, guaranteed_milli=8000)
    row = msgspec.structs.replace(PROJECT, node_pools=(use,))
    report = console.ProjectReport(projects=(row,), slot_word="GPU")
    assert any("h100: 2 of 8 guaranteed there" in one for one in said(report))


def test_the_queue() -> None:
    hot = msgspec.structs.replace(RUNNING, lease=LeaseId("l-2"), state="hot", in_quota=None, slots=(SlotId("gpu-3"),))
    report = console.QueueReport(waiting=(WAITING,), waiting_count=3, running=(RUNNING, hot), slot_word="GPU")
    assert said(report) == [
        "3 waiting, 1 running, 1 kept hot",
        "",
        "waiting",
        "  #  id          who  project  QoS          asks for  waited  usually    at most  pays",
        "  1  l-75c88b1d  eve  guests   interactive  1 GPU     12 s    not known  30 min   borrows",
        "       all 8 GPUs are busy; 3 requests are before yours",
        "  and 2 more",
        "",
        "running",
        "  id          who  project  QoS          node    slots         for     pays      state",
        "  l-86863ac1  ann  lab      interactive  node-1  gpu-0, gpu-1  12 min  in quota  running",
        "  l-2         ann  lab      interactive  node-1  gpu-3         12 min  -         kept hot",
    ]


def test_the_projects() -> None:
    inside = msgspec.structs.replace(
        PROJECT,
        project=ProjectId("maths"),
        parent=ProjectId("school"),
        limit_milli=500,
        budget_ms=None,
        budget_left_ms=None,
        borrows_in_ms=0,
        credits_ms=-9 * 600_000,
    )
    report = console.ProjectReport(projects=(PROJECT, inside), slot_word="GPU")
    assert said(report) == [
        "2 projects, 2.5 GPUs used, 4 waiting",
        "",
        "GPUs; budget and credits in GPU-hours",
        "  project  used  held  guaranteed  limit  budget left         credits  waiting",
        "  school   2.5   3     2           none   4.5 of 10.0 a week  0        4        behind others for 60 s",
        "    maths  2.5   3     2           0.5    none                -1.5     4",
    ]


def test_a_budget_of_less_than_an_hour_is_told_in_minutes() -> None:
    row = msgspec.structs.replace(PROJECT, budget_ms=1_800_000, budget_left_ms=600_000)
    assert "  10 min of 30 min a week  " in said(console.ProjectReport(projects=(row,), slot_word="GPU"))[-1]


def test_the_class_hours_of_a_project_stand_behind_it() -> None:
    row = msgspec.structs.replace(PROJECT, class_hours="class hours until 12:00, for another 40 min")
    later = msgspec.structs.replace(
        PROJECT, borrows_in_ms=0, class_hours="class hours begin on Wed at 10:00, in 2 days"
    )
    lines = said(console.ProjectReport(projects=(row, later), slot_word="GPU"))
    assert lines[-2].endswith("  4        class hours until 12:00, for another 40 min; behind others for 60 s")
    assert lines[-1].endswith("  4        class hours begin on Wed at 10:00, in 2 days")


def test_why_one_waits() -> None:
    node = console.NodeRow(
        node="n1", capacity=8, free=0, busy=7, hot=0, leaving=1, is_drained=False, is_large_enough=True
    )
    small = msgspec.structs.replace(node, node="n2", is_large_enough=False)
    drained = msgspec.structs.replace(node, node="n3", is_drained=True, why_drained="a new disk")
    about = console.AboutWaiting(
        request=msgspec.structs.replace(WAITING, label="train", usual_ms=30_000),
        projects=(PROJECT,),
        nodes=(node, small, drained),
        slot_word="GPU",
    )
    assert said(about) == [
        "l-75c88b1d of eve waits: all 8 GPUs are busy; 3 requests are before yours.",
        "",
        "  id        l-75c88b1d1ce1bf8c",
        "  place     1 in line, for 12 s; from now on usually about 30 s, at most about 30 min",
        "  asks for  1 GPU for 30 min, QoS interactive",
        "  pays      project guests, borrows: its guarantee does not cover it now",
        "  label     train",
        "",
        "what pays for it, from the inside out, in GPUs; budget and credits in GPU-hours",
        "  project  used  held  guaranteed  limit  budget left         credits  waiting",
        "  school   2.5   3     2           none   4.5 of 10.0 a week  0        4        behind others for 60 s",
        "",
        "nodes",
        "  node  GPUs  free  running  hot  leaving",
        "  n1    8     0     7        0    1",
        "  n2    8     0     7        0    1        is too small",
        "  n3    8     0     7        0    1        is being drained: a new disk",
    ]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("granted", "was granted 12 min ago on node-1 (gpu-0, gpu-1), and its cell has not begun."),
        ("busy", "runs a cell on node-1 (gpu-0, gpu-1) for 12 min, of 30 min at most."),
        ("reclaiming", "gives its place back to whom it is guaranteed."),
        ("hot", "no cell runs, and it goes when somebody needs the place."),
        ("leaving", "leaves its place on node-1 (gpu-0, gpu-1) since 12 min."),
    ],
)
def test_where_one_runs(state: str, words: str) -> None:
    lease = msgspec.structs.replace(RUNNING, state=state)
    lines = layout.plain_lines(
        report_sentences.show(console.AboutRunning(lease=lease, projects=(PROJECT,), cells=(), slot_word="GPU"))
    )
    assert lines[0].startswith("l-86863ac1 of ann ")
    assert " ".join(lines[:2]).strip().endswith(words)


def test_who_has_a_node_alone_is_said_in_the_queue_and_explained() -> None:
    lease = msgspec.structs.replace(RUNNING, is_exclusive=True)
    queue = console.QueueReport(waiting=(), waiting_count=0, running=(lease, RUNNING), slot_word="GPU")
    assert [line.rstrip().endswith("running, exclusive") for line in said(queue) if "node-1" in line] == [True, False]
    about = said(console.AboutRunning(lease=lease, projects=(PROJECT,), cells=(), slot_word="GPU"))
    assert any("it has all of node-1, and nobody else is there" in line for line in about)


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([], "nothing runs there"),
        (["hot"], "1 idle session leaves"),
        (["busy", "leaving", "leaving"], "1 cell still runs there, and 2 idle sessions leave"),
        (["busy", "reclaiming"], "2 cells still run there"),
    ],
)
def test_what_a_drained_node_still_holds(states: list[str], words: str) -> None:
    running = tuple(msgspec.structs.replace(RUNNING, state=state) for state in states)
    report = console.Drained(node="n1", agents=(AgentId("a"),), is_drained=True, running=running, slot_word="GPU")
    assert said(report)[0] == f"n1 is given nothing more; {words}. Undo: bulletin drain n1 --undo"


def test_names_cannot_move_the_cursor_and_long_reasons_are_folded() -> None:
    row = msgspec.structs.replace(WAITING, user=UserName("\x1b[2Jeve\n"), reason="a reason; " * 30)
    lines = layout.plain_lines(
        report_sentences.show(console.QueueReport(waiting=(row,), waiting_count=1, running=(), slot_word="GPU"))
    )
    assert "\N{REPLACEMENT CHARACTER}[2Jeve\N{REPLACEMENT CHARACTER}" in lines[4]
    assert all(line.isprintable() and len(line) <= layout.WIDTH for line in lines)
    assert len(lines) > 7


class Terminal(io.StringIO):
    """What a terminal is sent."""

    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_the_same_text_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = report_sentences.show(
        console.QueueReport(waiting=(WAITING,), waiting_count=1, running=(RUNNING,), slot_word="GPU")
    )
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "30", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    pipe = io.StringIO()
    layout.write(blocks, pipe)
    assert pipe.getvalue().splitlines() == layout.plain_lines(blocks)
    assert all(line.isprintable() for line in layout.plain_lines(blocks))


def test_on_a_narrow_terminal_sentences_are_folded_and_ids_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    blocks = report_sentences.show(
        console.QueueReport(waiting=(WAITING,), waiting_count=1, running=(), slot_word="GPU")
    )
    layout.write(blocks, terminal)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in terminal.getvalue().splitlines()]
    assert lines[4] == "  1  l-75c88b1d  eve  guests   interactive  1 GPU     12 s    not known  30 min   borrows"
    assert lines[5:] == ["       all 8 GPUs are busy; 3 requests", "       are before yours"]


def test_columns_stand_below_each_other_also_with_wide_letters() -> None:
    wide = msgspec.structs.replace(RUNNING, user=UserName("\u738b\u5c0f\u660e"))
    lines = said(console.QueueReport(waiting=(), waiting_count=0, running=(RUNNING, wide), slot_word="GPU"))
    assert lines[-2].index("lab") == lines[-1].index("lab") + 3


@pytest.mark.parametrize(
    ("what", "grace_ms", "words"),
    [
        ("held", 0, "l-75c88b1d of eve is held: it does not start before bulletin release l-75c88b1d"),
        (
            "released",
            0,
            "l-75c88b1d of eve is released: it has waited since it came, but not while its own user or a lead held it.",
        ),
        ("put-first", 0, "l-75c88b1d of eve is the first of project lab now; other projects stand where they stood."),
        (
            "requeued",
            30_000,
            "The cell of l-75c88b1d of eve has 30 s to end; if it has not by then, it runs again from its beginning.",
        ),
    ],
)
def test_what_was_changed_by_hand(what: console.Change, grace_ms: int, words: str) -> None:
    report = console.ChangedByHand(
        lease=WAITING.lease, user=UserName("eve"), project=ProjectId("lab"), what=what, grace_ms=grace_ms
    )
    assert said(report) == [words]
