"""All that happens in a simulation at a planned time."""

import msgspec

from bulletin.ids import CellId, LeaseId, SessionId
from gpu_worker.simulator.played_cells import PlayedOutcome
from gpu_worker.simulator.simulated_nodes import (
    AgentReport,
    ExecutorReady,
    GraceOver,
    NodeFault,
    RequestRefused,
    SlotsFreed,
)
from gpu_worker.simulator.traces import TraceNotebook


class TraceNotebookOpened(msgspec.Struct, frozen=True):
    """A notebook is opened, and its kernel starts."""

    notebook: TraceNotebook


class TraceCellSubmitted(msgspec.Struct, frozen=True):
    """A notebook's next cell is submitted."""

    session: SessionId


class TraceCellFinished(msgspec.Struct, frozen=True):
    """A cell that runs in a lease has come to its end, or to its walltime."""

    lease: LeaseId
    cell: CellId
    end: PlayedOutcome


class TraceNotebookClosed(msgspec.Struct, frozen=True):
    """A notebook is closed, and gives back what it has."""

    session: SessionId


class NodeFaultBegun(msgspec.Struct, frozen=True):
    """A node is lost."""

    fault: NodeFault


class NodeFaultOver(msgspec.Struct, frozen=True):
    """A node that was lost is back."""

    fault: NodeFault


class TickDue(msgspec.Struct, frozen=True):
    """The time has come for which the scheduler asked for a Tick."""


SimulationEvent = (
    TraceNotebookOpened
    | TraceCellSubmitted
    | ExecutorReady
    | TraceCellFinished
    | SlotsFreed
    | GraceOver
    | TraceNotebookClosed
    | AgentReport
    | RequestRefused
    | NodeFaultBegun
    | NodeFaultOver
    | TickDue
)
