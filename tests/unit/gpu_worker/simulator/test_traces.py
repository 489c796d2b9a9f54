"""Traces as files, what their notebooks would reserve, what the made-up weeks look like, and traces of a ledger."""

import hashlib
from pathlib import Path

import pytest

from bulletin.errors import BadConfig
from gpu_worker.broker.ledger import CellRecord
from gpu_worker.simulator import traces
from gpu_worker.simulator.reservations import ReservedGpus, reserved_gpus
from gpu_worker.simulator.traces import (
    MINUTE_MS,
    Trace,
    TraceCell,
    TraceNotebook,
    TraceOrigin,
)
from gpu_worker.simulator.workloads import RUN, WORKLOADS, RandomDraws, generate
from tests.unit.gpu_worker.simulator.trace_statistics import statistics_of

ORIGIN = TraceOrigin(made_by="hand")


def notebook(session: str, opened_ms: int, *cells: TraceCell, first_ms: int = 0) -> TraceNotebook:
    return TraceNotebook(session, "ann", "ml", opened_ms, first_ms, cells)  # type: ignore[arg-type]


# Files


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_trace_is_read_as_it_was_written(name: str, tmp_path: Path) -> None:
    trace = generate(name, seed=3, people=5)
    traces.write(trace, tmp_path / "week.jsonl")
    assert traces.read(tmp_path / "week.jsonl") == trace


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "at line 1"),
        (b'{"made_by": "hand"}\n{"session": "s"}\n', "at line 2"),
        (b'{"made_by": "hand"}\n\xff\n', "at line 2"),
        (b'{"made_by": "hand", "format": 2}\n', "format 2"),
        (
            b'{"made_by":"x"}\n{"session":"s","user":"u","project":"p","opened_ms":0,"first_ms":0,"cells":[%b]}\n'
            % b'{"run_ms":-1,"think_ms":0}',
            "cells[0].run_ms",
        ),
        (
            b'{"made_by":"x"}\n'
            + 2 * b'{"session":"s","user":"u","project":"p","opened_ms":0,"first_ms":0,"cells":[]}\n',
            "same session",
        ),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "week.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadConfig) as caught:
        traces.read(path)
    assert said in str(caught.value)


def test_a_trace_that_is_not_there_is_bad_configuration(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot be read: No such file"):
        traces.read(tmp_path / "week.jsonl")


# What notebooks would reserve


def test_what_notebooks_would_reserve_is_what_a_hand_finds() -> None:
    notebooks = [
        notebook(
            "a",
            0,
            TraceCell(MINUTE_MS, 3 * MINUTE_MS),
            TraceCell(3 * MINUTE_MS, 30 * MINUTE_MS),  # a rest, not a gap
            TraceCell(6 * MINUTE_MS, 10 * MINUTE_MS),  # stays open
            first_ms=MINUTE_MS,
        ),
        notebook(
            "b", 54 * MINUTE_MS, TraceCell(10 * MINUTE_MS, 4 * MINUTE_MS, gpus=2)
        ),  # opened as the other one is closed
        notebook("c", 60 * MINUTE_MS),
    ]
    found, statistics = reserved_gpus(notebooks), statistics_of(notebooks)
    assert (statistics.share_under_2_min, statistics.share_under_5_min) == (0.25, 0.5)
    assert (statistics.median_run_ms, statistics.longest_run_ms) == (6 * MINUTE_MS, 10 * MINUTE_MS)
    assert statistics.median_gap_ms == 3 * MINUTE_MS
    assert statistics.used_gpu_ms == (10 + 2 * 10) * MINUTE_MS
    assert found.gpu_ms == (54 + 2 * 14) * MINUTE_MS
    assert found.most_at_once == 2
    assert statistics.idle_share == pytest.approx(1 - 30 / 82)


# Made-up weeks


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("course", "2dab3e5f4e3b2f7530926cbdb7aeffa4c78dc94b2685bf2d8f9d767547b6e954"),
        ("deadline", "b8021bcea6fb66f01eaf503a2bf15afb9c4ad8b5f9b44de0f5d7055d7f53b399"),
        ("lesson", "d405e3eb2b722968770afc68a5b62475165064c90d5a0b0b5187a41ac61b960f"),
        ("research", "d74b621f2332e4d7831815d12a9c27c57754b8a68d948cefb2889318920428c0"),
        ("mix", "d2e0e5a0f388049ba9c7c01a45a8b6c3787cf7717a44040c2c90fbb4aa54d0ae"),
    ],
)
def test_a_version_and_a_seed_give_the_same_bytes_for_ever(name: str, digest: str) -> None:
    trace = generate(name, seed=1)
    assert trace.origin.version == 1, "another version: pin its bytes here"
    assert hashlib.sha256(traces.encode(trace)).hexdigest() == digest


def test_another_seed_gives_another_week() -> None:
    assert generate("course", seed=1, people=3).notebooks != generate("course", seed=2, people=3).notebooks


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "tolerance"), [("course", 0.02), ("mix", 0.02), ("research", 0.05)])
def test_who_looks_on_works_as_published_of_notebook_clusters(name: str, seed: int, tolerance: float) -> None:
    week = generate(name, seed)
    interactive = [one for one in week.notebooks if all(cell.qos == "interactive" for cell in one.cells)]
    found = statistics_of(interactive)
    assert found.share_under_2_min == pytest.approx(0.50, abs=tolerance)
    assert found.share_under_5_min == pytest.approx(0.75, abs=tolerance)
    assert found.longest_run_ms > 25 * MINUTE_MS
    assert found.median_gap_ms == pytest.approx(5 * MINUTE_MS, rel=0.1)
    assert found.idle_share == pytest.approx(0.81, abs=tolerance)


def test_a_course_has_so_many_people_and_comes_to_class_in_class_hours() -> None:
    week = generate("course", seed=1)
    assert len({one.user for one in week.notebooks}) == 500
    monday = [one.opened_ms / (60 * MINUTE_MS) for one in week.notebooks]
    in_class = sum(10 <= hour < 10.5 for hour in monday)
    assert in_class == pytest.approx(85, abs=15)  # one section of 100, of whom 85% come
    assert sum(11 <= hour < 11.5 for hour in monday) < 10


def test_before_a_deadline_all_sit_down_in_the_last_two_hours() -> None:
    week = generate("deadline", seed=1)
    late = [one for one in week.notebooks if 7 * 24 - 2 <= one.opened_ms / (60 * MINUTE_MS) < 7 * 24]
    assert len(late) == pytest.approx(450, abs=25)
    assert (
        reserved_gpus(week.notebooks).most_at_once > 1.5 * reserved_gpus(generate("course", 1).notebooks).most_at_once
    )


def test_a_lesson_is_an_hour_of_a_class_and_a_lab_that_would_fill_any_pool() -> None:
    week = generate("lesson", seed=1)
    students = [one for one in week.notebooks if one.project == "class"]
    assert len({one.user for one in students}) == 16
    assert all(10 <= one.opened_ms / (60 * MINUTE_MS) <= 10.5 for one in students)
    lab = [one for one in week.notebooks if one.project == "lab"]
    assert len(lab) == 32
    assert all(one.opened_ms == 9 * 60 * MINUTE_MS and one.closed_ms >= 11 * 60 * MINUTE_MS for one in lab)


def test_a_group_has_sweeps_of_hundreds_of_cells_and_long_trainings() -> None:
    cells = [cell for one in generate("research", seed=1).notebooks for cell in one.cells]
    assert sum(cell.walltime_ms == 60 * MINUTE_MS for cell in cells) > 1000
    assert max(cell.run_ms for cell in cells) > 24 * 60 * MINUTE_MS
    assert max(cell.gpus for cell in cells) == 4
    assert all(cell.walltime_ms is None or cell.run_ms < cell.walltime_ms for cell in cells)


def test_draws_follow_their_table() -> None:
    draws = RandomDraws(7)
    drawn = sorted(draws.draw_ms(RUN) for _ in range(10_000))
    for part, value_ms in RUN[1:-1]:
        assert sum(one < value_ms for one in drawn) / 10_000 == pytest.approx(part, abs=0.02)
    assert RUN[0][1] <= drawn[0]
    assert drawn[-1] < RUN[-1][1]


@pytest.mark.parametrize("arguments", [("nothing", 1, 3), ("course", 1, 0), ("course", -1, 3)])
def test_a_week_that_cannot_be_made_is_bad_configuration(arguments: tuple[str, int, int]) -> None:
    with pytest.raises(BadConfig):
        generate(*arguments)


# Ledgers


def test_a_ledger_becomes_a_trace_with_its_pauses() -> None:
    def record(cell: str, session: str, started_at_ms: int, held_ms: int, slots: tuple[str, ...]) -> CellRecord:
        return CellRecord(
            cell=cell, lease="l", session=session, user=session, project="ml", qos="batch", node="n", slots=slots,
            kind="gpu", gpus=len(slots), started_at_ms=started_at_ms, ended_at_ms=started_at_ms + held_ms,
            held_ms=held_ms, ran_ms=held_ms - 1, outcome="returned",
        )  # type: ignore[arg-type]  # fmt: skip

    found = traces.trace_of_ledger(
        [
            record("c3", "s1", 10_000, 500, ("g0",)),
            record("c2", "s2", 6_000, 7_000, ("g1", "g2")),
            record("c1", "s1", 5_000, 2_000, ("g0",)),
        ]
    )
    assert found.notebooks == (
        TraceNotebook("s1", "s1", "ml", 0, 0, (TraceCell(2_000, 3_000, 1, "batch"), TraceCell(500, 0, 1, "batch"))),  # type: ignore[arg-type]
        TraceNotebook("s2", "s2", "ml", 1_000, 0, (TraceCell(7_000, 0, 2, "batch"),)),  # type: ignore[arg-type]
    )


def test_an_empty_ledger_is_an_empty_trace() -> None:
    assert traces.trace_of_ledger([]).notebooks == ()
    assert reserved_gpus(()) == ReservedGpus(gpu_ms=0, most_at_once=0, most_notebooks=0)


def test_equal_traces_are_equal_bytes_and_a_plain_cell_is_short() -> None:
    trace = Trace(ORIGIN, (notebook("a", 0, TraceCell(1, 2)),))
    assert traces.encode(trace).splitlines()[1].endswith(b'"cells":[{"run_ms":1,"think_ms":2}]}')
