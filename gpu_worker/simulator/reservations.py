"""What notebooks would reserve if each had GPUs of its own while it is open: the pool's alternative, culled or not."""

from collections.abc import Iterator, Sequence

import msgspec

from gpu_worker.simulator.traces import TraceNotebook


class ReservedGpus(msgspec.Struct, frozen=True, kw_only=True):
    """What it would take to give each open notebook GPUs of its own, as many as its largest cell uses."""

    gpu_ms: int  #: GPUs times milliseconds, from each notebook's opening until it is closed or culled
    most_at_once: int  #: GPUs at the worst moment
    most_notebooks: int  #: open notebooks at the worst moment
    reopened: int = 0  #: how often somebody came back to a notebook that had been culled, and found no variables


def reserved_gpus(notebooks: Sequence[TraceNotebook], cull_ms: int | None = None) -> ReservedGpus:
    """Add up what notebooks would reserve if each kept its GPUs while it is open, and nobody ever waited.

    With `cull_ms`, a notebook in which nothing ran for so long is closed, and opened again when its next cell comes.
    """
    held = [(notebook, list(_held(notebook, cull_ms))) for notebook in notebooks]
    return ReservedGpus(
        gpu_ms=sum((to_ms - from_ms) * notebook.gpus for notebook, spans in held for from_ms, to_ms in spans),
        most_at_once=_most([(span, notebook.gpus) for notebook, spans in held for span in spans]),
        most_notebooks=_most([(span, 1) for _, spans in held for span in spans]),
        reopened=sum(len(spans) - 1 for _, spans in held),
    )


def _held(notebook: TraceNotebook, cull_ms: int | None) -> Iterator[tuple[int, int]]:
    """Yield from when to when a notebook holds its GPUs."""
    if cull_ms is None:
        yield notebook.opened_ms, notebook.closed_ms
        return
    from_ms = idle_ms = notebook.opened_ms  # it is open since, and nothing has run in it since
    next_ms = notebook.opened_ms + notebook.first_ms
    for cell in notebook.cells:
        if next_ms - idle_ms > cull_ms:
            yield from_ms, idle_ms + cull_ms
            from_ms = next_ms
        idle_ms = next_ms + cell.run_ms
        next_ms = idle_ms + cell.think_ms
    yield from_ms, min(next_ms, idle_ms + cull_ms)


def _most(spans: Sequence[tuple[tuple[int, int], int]]) -> int:
    """Count what all spans hold at the worst moment; who closes makes room for who opens then."""
    changes = [(from_ms, amount) for (from_ms, _), amount in spans]
    changes += [(to_ms, -amount) for (_, to_ms), amount in spans]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
