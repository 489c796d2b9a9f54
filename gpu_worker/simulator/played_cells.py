"""One cell of a trace, as it went in a simulation."""

from typing import Literal

import msgspec

from bulletin.ids import CellId, ProjectId, UserName

PlayedOutcome = Literal["returned", "walltime", "refused", "lost"]


class PlayedCell(msgspec.Struct):
    """One cell of the trace, as it went: when it was submitted, began and ended, and how."""

    cell: CellId
    user: UserName
    project: ProjectId
    qos: str
    gpus: int
    submitted_ms: int
    started_ms: int | None = None  #: None while it waits, and where it was refused
    ended_ms: int | None = None  #: None while it waits or runs
    end: PlayedOutcome | None = None
    was_hot: bool = False  #: it began without a request, on the GPUs that its session had
    was_warm: bool = False  #: when it began, its session's memory was on the GPU
    reclaims: int = 0  #: how often it was ended for an owner, to run again

    @property
    def wait_ms(self) -> int | None:
        """From its submission until its code began to run; None for a cell that did not begin."""
        return None if self.started_ms is None else self.started_ms - self.submitted_ms
