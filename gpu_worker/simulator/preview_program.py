"""What the last days of a pool would have been with other quotas: `python -m gpu_worker.simulator.preview_program`.

A program of its own, for a broker: it reads one question as JSON from its standard input, and writes one answer. It is
bounded in memory and in time, and gives way to whatever else the host does.
"""

import os
import resource
import sys
from collections.abc import Iterator

import msgspec

from bulletin.units import DAY_MS, show_duration
from gpu_worker.broker.ledger import CellRecord, Ledger
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from gpu_worker.simulator.run_report import RunReport, simulate
from gpu_worker.simulator.traces import Trace, trace_of_ledger

#: So many cells of the last days are played, the latest of them.
_MOST_CELLS = 20_000
_MEMORY_BYTES, _CPU_S, _NICE = 4 * 2**30, 120, 10
#: Of who wins or loses, so many are named; by so much, at least, somebody's mean wait must change.
_MOST_NAMED, _NOTICED_MS = 3, 1000


class PreviewQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Which days, on which nodes, by which settings."""

    database: str
    since_ms: int  #: milliseconds since 1970, UTC
    until_ms: int
    sizes: tuple[int, ...]  #: GPUs of each node, or CPU slots where there is no GPU
    kind: str  #: "gpu" or "cpu"
    now: SchedulerSettings
    then: SchedulerSettings


class ProjectFares(msgspec.Struct, frozen=True, kw_only=True):
    """How the cells of a project would have fared, in milliseconds and as parts of 1."""

    project: str
    cells: int
    waited_now_ms: int
    waited_then_ms: int
    at_once_now: float
    at_once_then: float


class PreviewAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What it comes to."""

    sentence: str
    by_project: str = ""  #: who would have waited less, and who more
    rows: tuple[ProjectFares, ...] = ()
    reclaims_now: int = 0
    reclaims_then: int = 0
    refused_now: int = 0
    refused_then: int = 0
    cut_now: int = 0
    cut_then: int = 0


def work_out(question: PreviewQuestion) -> PreviewAnswer:
    """Play the days twice, and compare."""
    records = _records(question)
    days = show_duration(max(DAY_MS, question.until_ms - question.since_ms) // DAY_MS * DAY_MS)
    if not records:
        return PreviewAnswer(sentence=f"No cell ran in the last {days}: nothing is known of what this would change.")
    if not sum(question.sizes):
        return PreviewAnswer(sentence="No node is connected now: nobody can say what this would change.")
    trace, start_ms = trace_of_ledger(records), min(one.started_at_ms for one in records)
    now, then = (simulate(trace, question.sizes, one, start_ms=start_ms) for one in (question.now, question.then))
    return compare(trace, now, then, question.kind, f"in the last {days}")


def compare(trace: Trace, now: RunReport, then: RunReport, kind: str, when: str) -> PreviewAnswer:
    """Say what differs between two runs of one trace."""
    rows = tuple(
        ProjectFares(
            project=project,
            cells=waits.cells,
            waited_now_ms=round(waits.mean_ms),
            waited_then_ms=round(then.waits_by_project[project].mean_ms),
            at_once_now=waits.at_once,
            at_once_then=then.waits_by_project[project].at_once,
        )
        for project, waits in now.waits_by_project.items()
    )
    people = len({notebook.user for notebook in trace.notebooks})
    slot = "GPU" if kind == "gpu" else "CPU slot"
    of_all = f"{_many(now.cells, 'cell')} of {_many(people, 'user')} on {_many(now.gpus, slot)} {when}"
    waited = show_duration(round(now.waits.mean_ms)), show_duration(round(then.waits.mean_ms))
    if now == then:
        said = [f"Nothing would have been otherwise: {of_all} would have waited {waited[0]} on average, as without it."]
        return _answer(said, rows, now, then)
    said = [f"{of_all} would have waited {waited[1]} on average, instead of {waited[0]}."]
    by_change = sorted(rows, key=lambda row: row.waited_then_ms - row.waited_now_ms)
    sooner = [row for row in by_change if row.waited_then_ms <= row.waited_now_ms - _NOTICED_MS]
    later = [row for row in reversed(by_change) if row.waited_then_ms >= row.waited_now_ms + _NOTICED_MS]
    named = [f"{word}: {_named(some)}." for word, some in (("Sooner", sooner), ("Later", later)) if some]
    named = named or ["No project would have waited a second more or less."]
    for was, would, what in (
        (now.reclaims, then.reclaims, "taken back"),
        (now.refused, then.refused, "refused"),
        (now.cut_at_walltime, then.cut_at_walltime, "ended at their walltime"),
    ):
        if was != would:
            said.append(f"{_many(would, 'cell')} would have been {what}, instead of {was}.")
    return _answer(said, rows, now, then, " ".join(named))


def _answer(
    said: list[str], rows: tuple[ProjectFares, ...], now: RunReport, then: RunReport, by_project: str = ""
) -> PreviewAnswer:
    return PreviewAnswer(
        sentence=" ".join([*said, "It is a simulation of what ran."]),
        by_project=by_project,
        rows=rows,
        reclaims_now=now.reclaims,
        reclaims_then=then.reclaims,
        refused_now=now.refused,
        refused_then=then.refused,
        cut_now=now.cut_at_walltime,
        cut_then=then.cut_at_walltime,
    )


def _records(question: PreviewQuestion) -> list[CellRecord]:
    """Read the last run of each cell; what was taken back before ran again, and is no wish of its user's."""
    with Ledger.open(question.database, upgrade=False) as ledger:
        return list(_last_runs(ledger, question))[-_MOST_CELLS:]


def _last_runs(ledger: Ledger, question: PreviewQuestion) -> Iterator[CellRecord]:
    found: dict[str, CellRecord] = {}
    for record in ledger.each_record(question.since_ms, question.until_ms):
        if record.kind == question.kind and record.held_ms:
            found.pop(record.cell, None)
            found[record.cell] = record
            if len(found) > 2 * _MOST_CELLS:
                found = dict(list(found.items())[-_MOST_CELLS:])
    yield from found.values()


def _many(number: int, word: str) -> str:
    return f"1 {word}" if number == 1 else f"{number} {word}s"


def _named(rows: list[ProjectFares]) -> str:
    words = [
        f"{row.project} ({show_duration(row.waited_then_ms)}, instead of {show_duration(row.waited_now_ms)})"
        for row in rows[:_MOST_NAMED]
    ]
    more = [f"and {_many(len(rows) - _MOST_NAMED, 'other')}"] if len(rows) > _MOST_NAMED else []
    return ", ".join([*words, *more])


def main() -> None:
    """Answer one question."""
    os.nice(_NICE)
    for limit, most in ((resource.RLIMIT_AS, _MEMORY_BYTES), (resource.RLIMIT_CPU, _CPU_S)):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=PreviewQuestion)
    sys.stdout.buffer.write(msgspec.json.encode(work_out(question)))


if __name__ == "__main__":
    main()
