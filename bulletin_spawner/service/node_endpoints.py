"""The endpoints of nodes: empty one, now or at a time, and take it back; in the caller's name."""

from typing import Annotated

import msgspec

from bulletin.pool_words import describe_drained
from bulletin.units import show_duration
from bulletin.wire import console, page_requests as page
from bulletin_spawner.service.api_endpoints import ApiCall, Endpoint, Word, Words

#: No drain is planned for later.
_LONGEST_MS = 366 * 86_400_000


class NodeNamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node, by its name or its agent's."""

    node: Word


class NodeGivenBack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node that is to have cells again, and why."""

    node: Word
    why: Words = ""


class DrainWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a node is to be drained, from now on, and why; without a time, now."""

    in_ms: Annotated[int, msgspec.Meta(ge=1, le=_LONGEST_MS)] | None = None
    why: Words = ""


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of a node from now on: with how many cells that still run there, and the same in a sentence."""

    node: str
    is_drained: bool
    in_ms: int | None
    cells: int
    sentence: str


async def _drain(call: ApiCall) -> NodeState:
    return await _change(call, console.Drain(node=call.asked.node, in_ms=call.body.in_ms, why=call.body.why))


async def _undrain(call: ApiCall) -> NodeState:
    return await _change(call, console.Drain(node=call.asked.node, is_undone=True, why=call.asked.why))


async def _change(call: ApiCall, question: console.Drain) -> NodeState:
    answer = await call.pool.change(page.OnBehalf(reader=call.viewer.reader, question=question), console.Drained)
    cells = sum(row.state in ("granted", "busy", "reclaiming") for row in answer.running)
    sentence = describe_drained(
        answer.node,
        is_drained=answer.is_drained,
        cells=cells,
        idle=len(answer.running) - cells,
        when="" if answer.in_ms is None else f"in {show_duration(answer.in_ms)}",
    )
    return NodeState(node=answer.node, is_drained=answer.is_drained, in_ms=answer.in_ms, cells=cells, sentence=sentence)


NODE_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="drain",
        method="POST",
        path="/nodes/{node}/drain",
        summary="Give a node nothing more, from now on or from a time on: running cells end as they would",
        role="admin",
        asks=NodeNamed,
        body=DrainWanted,
        answers=NodeState,
        run=_drain,
    ),
    Endpoint(
        name="undrain",
        method="DELETE",
        path="/nodes/{node}/drain",
        summary="Give a node cells again that is drained, or is to be",
        role="admin",
        asks=NodeGivenBack,
        answers=NodeState,
        run=_undrain,
    ),
)
