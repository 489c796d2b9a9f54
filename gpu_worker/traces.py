"""Traces: who had which notebooks open, and what they ran in them, as data that a simulation can play.

On disk a trace is JSON lines: first its origin, then one notebook a line, in the order in which they were opened.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from bulletin.errors import BadConfig
from bulletin.ids import ProjectId, SessionId, UserName

if TYPE_CHECKING:
    from gpu_worker.broker.ledger import CellRecord

FORMAT = 1
MINUTE_MS = 60_000
#: A longer pause between two cells is not part of one burst of work.
BURST_GAP_MS = 20 * MINUTE_MS
#: No time in a trace is longer: a year.
_Time = Annotated[int, msgspec.Meta(ge=0, le=366 * 24 * 60 * MINUTE_MS)]


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cell of a notebook."""

    run_ms: _Time  #: how long it runs once it has its GPUs
    think_ms: _Time  #: from its end to the submission of the next one; after the last, until the notebook is closed
    gpus: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1
    qos: str = "interactive"
    walltime_ms: _Time | None = None  #: what it asks for; None is all that the QoS gives


class Notebook(msgspec.Struct, frozen=True):
    """A notebook, from when it is opened until it is closed. It runs one cell at a time."""

    session: SessionId
    user: UserName
    project: ProjectId
    opened_ms: _Time  #: since the start of the trace
    first_ms: _Time  #: from its opening to the submission of its first cell
    cells: tuple[Cell, ...]

    @property
    def closed_ms(self) -> int:
        """When it would be closed if no cell ever waited, since the start of the trace."""
        return self.opened_ms + self.first_ms + sum(cell.run_ms + cell.think_ms for cell in self.cells)

    @property
    def gpus(self) -> int:
        """How many GPUs would have to be reserved for it: those of its largest cell, and one at least."""
        return max((cell.gpus for cell in self.cells), default=1)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a trace comes from: enough to make it again, where it was made."""

    format: int = FORMAT
    made_by: str  #: a workload's name, or "ledger"
    version: int = 0
    seed: int | None = None
    people: int | None = None


class Trace(msgspec.Struct, frozen=True):
    """What happened, or might, in a pool's notebooks. Closed loop: who waits longer submits the next cell later."""

    origin: Origin
    notebooks: tuple[Notebook, ...]


_Line = TypeVar("_Line", Origin, Notebook)


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """A trace in numbers, as studies of notebook clusters publish them. If nobody ever waited."""

    notebooks: int
    users: int
    cells: int
    median_run_ms: int
    share_under_2_min: float
    share_under_5_min: float
    longest_run_ms: int
    median_gap_ms: int  #: between a cell's end and the next submission, within a burst of work
    used_gpu_ms: int  #: by cells
    reserved_gpu_ms: int  #: by open notebooks, each with the GPUs of its largest cell
    most_open: int  #: GPUs that are reserved at once, at the worst moment

    @property
    def idle_share(self) -> float:
        """What part of the reserved GPU time no cell would use."""
        return 1 - self.used_gpu_ms / self.reserved_gpu_ms if self.reserved_gpu_ms else 0.0


def write(trace: Trace, path: Path) -> None:
    """Write a trace as JSON lines: equal traces are equal bytes."""
    path.write_bytes(encode(trace))


def encode(trace: Trace) -> bytes:
    """The bytes of a trace as a file."""
    encoder = msgspec.json.Encoder()
    return b"".join(encoder.encode(line) + b"\n" for line in (trace.origin, *trace.notebooks))


def read(path: Path) -> Trace:
    """Read a trace from JSON lines.

    Raises
    ------
    BadConfig
        If there is no such file, or with the first line that is not what it should be.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadConfig(f"The trace {path} cannot be read: {error.strerror}.") from None
    origin = _read_line(path, 1, lines[0] if lines else b"", Origin)
    if origin.format != FORMAT:
        raise BadConfig(f"The trace {path} has format {origin.format}, and this Bulletin reads format {FORMAT}.")
    notebooks = [_read_line(path, number, line, Notebook) for number, line in enumerate(lines[1:], 2)]
    if len({notebook.session for notebook in notebooks}) < len(notebooks):
        raise BadConfig(f"The trace {path} has two notebooks with the same session. Give each its own name.")
    return Trace(origin, in_order(notebooks))


def _read_line(path: Path, number: int, line: bytes, kind: type[_Line]) -> _Line:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError as error:
        raise BadConfig(f"The trace {path} is not one, at line {number}: {error}.") from None


def in_order(notebooks: Iterable[Notebook]) -> tuple[Notebook, ...]:
    """Notebooks by their opening, and by session where two are opened at the same time."""
    return tuple(sorted(notebooks, key=lambda notebook: (notebook.opened_ms, notebook.session)))


def of_ledger(records: Sequence["CellRecord"]) -> Trace:
    """A trace of what a pool has recorded: each session is a notebook, open from its first cell until its last ended.

    The ledger knows when a cell had its slots, not when it was submitted. So a wait of then is part of the pause
    before the cell, as if the user had thought so long; and how long a notebook stayed open before and after its cells
    nobody knows. A CPU slot counts as a GPU.
    """
    by_session: dict[SessionId, list[CellRecord]] = {}
    for record in sorted(records, key=lambda record: (record.started_at_ms, record.cell)):
        by_session.setdefault(record.session, []).append(record)
    start_ms = min((record.started_at_ms for record in records), default=0)
    notebooks = []
    for session, cells in by_session.items():
        pauses = [max(0, later.started_at_ms - one.started_at_ms - one.held_ms) for one, later in pairwise(cells)]
        notebooks.append(
            Notebook(
                session=session,
                user=cells[0].user,
                project=cells[0].project,
                opened_ms=cells[0].started_at_ms - start_ms,
                first_ms=0,
                cells=tuple(
                    Cell(run_ms=one.held_ms, think_ms=pause_ms, gpus=max(1, len(one.slots)), qos=one.qos)
                    for one, pause_ms in zip(cells, [*pauses, 0], strict=True)
                ),
            )
        )
    return Trace(Origin(made_by="ledger"), in_order(notebooks))


def measure(notebooks: Sequence[Notebook]) -> Measures:
    """Lengths, gaps and idleness of notebooks, before anything is simulated."""
    cells = [cell for notebook in notebooks for cell in notebook.cells]
    runs = sorted(cell.run_ms for cell in cells)
    gaps = sorted(
        cell.think_ms for notebook in notebooks for cell in notebook.cells[:-1] if cell.think_ms <= BURST_GAP_MS
    )
    number = max(1, len(runs))
    return Measures(
        notebooks=len(notebooks),
        users=len({notebook.user for notebook in notebooks}),
        cells=len(cells),
        median_run_ms=runs[len(runs) // 2] if runs else 0,
        share_under_2_min=sum(run_ms < 2 * MINUTE_MS for run_ms in runs) / number,
        share_under_5_min=sum(run_ms < 5 * MINUTE_MS for run_ms in runs) / number,
        longest_run_ms=max(runs, default=0),
        median_gap_ms=gaps[len(gaps) // 2] if gaps else 0,
        used_gpu_ms=sum(cell.run_ms * cell.gpus for cell in cells),
        reserved_gpu_ms=sum((notebook.closed_ms - notebook.opened_ms) * notebook.gpus for notebook in notebooks),
        most_open=_most_open(notebooks),
    )


def _most_open(notebooks: Sequence[Notebook]) -> int:
    """The GPUs of all open notebooks together, at the worst moment; who closes makes room for who opens then."""
    changes = [(notebook.opened_ms, notebook.gpus) for notebook in notebooks]
    changes += [(notebook.closed_ms, -notebook.gpus) for notebook in notebooks]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
