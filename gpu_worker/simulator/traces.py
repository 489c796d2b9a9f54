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
from bulletin.units import MINUTE_MS

if TYPE_CHECKING:
    from gpu_worker.broker.ledger import CellRecord

FORMAT = 1
#: No time in a trace is longer: a year.
_Time = Annotated[int, msgspec.Meta(ge=0, le=366 * 24 * 60 * MINUTE_MS)]


class TraceCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cell of a notebook in a trace: what it takes, and the pause behind it."""

    run_ms: _Time  #: how long it runs once it has its GPUs
    think_ms: _Time  #: from its end to the submission of the next one; after the last, until the notebook is closed
    gpus: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1
    qos: str = "interactive"
    walltime_ms: _Time | None = None  #: what it asks for; None is all that the QoS gives


class TraceNotebook(msgspec.Struct, frozen=True):
    """A notebook, from when it is opened until it is closed. It runs one cell at a time."""

    session: SessionId
    user: UserName
    project: ProjectId
    opened_ms: _Time  #: since the start of the trace
    first_ms: _Time  #: from its opening to the submission of its first cell
    cells: tuple[TraceCell, ...]

    @property
    def closed_ms(self) -> int:
        """When it would be closed if no cell ever waited, since the start of the trace."""
        return self.opened_ms + self.first_ms + sum(cell.run_ms + cell.think_ms for cell in self.cells)

    @property
    def gpus(self) -> int:
        """How many GPUs would have to be reserved for it: those of its largest cell, and one at least."""
        return max((cell.gpus for cell in self.cells), default=1)


class TraceOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a trace comes from: enough to make it again, where it was made."""

    format: int = FORMAT
    made_by: str  #: a workload's name, or "ledger"
    version: int = 0
    seed: int | None = None
    people: int | None = None


class Trace(msgspec.Struct, frozen=True):
    """What happened, or might, in a pool's notebooks. Closed loop: who waits longer submits the next cell later."""

    origin: TraceOrigin
    notebooks: tuple[TraceNotebook, ...]


_Line = TypeVar("_Line", TraceOrigin, TraceNotebook)


def write(trace: Trace, path: Path) -> None:
    """Write a trace as JSON lines: equal traces are equal bytes."""
    path.write_bytes(encode(trace))


def encode(trace: Trace) -> bytes:
    """Return a trace as the bytes of its file, one JSON object a line."""
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
    origin = _read_line(path, 1, lines[0] if lines else b"", TraceOrigin)
    if origin.format != FORMAT:
        raise BadConfig(f"The trace {path} has format {origin.format}, and this Bulletin reads format {FORMAT}.")
    notebooks = [_read_line(path, number, line, TraceNotebook) for number, line in enumerate(lines[1:], 2)]
    if len({notebook.session for notebook in notebooks}) < len(notebooks):
        raise BadConfig(f"The trace {path} has two notebooks with the same session. Give each its own name.")
    return Trace(origin, in_order(notebooks))


def _read_line(path: Path, number: int, line: bytes, kind: type[_Line]) -> _Line:
    """Decode one line; `number` is for the sentence of BadConfig."""
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError as error:
        raise BadConfig(f"The trace {path} is not one, at line {number}: {error}.") from None


def in_order(notebooks: Iterable[TraceNotebook]) -> tuple[TraceNotebook, ...]:
    """Sort notebooks by their opening, and by session where two are opened at the same time."""
    return tuple(sorted(notebooks, key=lambda notebook: (notebook.opened_ms, notebook.session)))


def trace_of_ledger(records: Sequence["CellRecord"]) -> Trace:
    """Make a trace of what a pool has recorded: each session is a notebook, open from its first cell to its last.

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
            TraceNotebook(
                session=session,
                user=cells[0].user,
                project=cells[0].project,
                opened_ms=cells[0].started_at_ms - start_ms,
                first_ms=0,
                cells=tuple(
                    TraceCell(run_ms=one.held_ms, think_ms=pause_ms, gpus=max(1, len(one.slots)), qos=one.qos)
                    for one, pause_ms in zip(cells, [*pauses, 0], strict=True)
                ),
            )
        )
    return Trace(TraceOrigin(made_by="ledger"), in_order(notebooks))
