"""An engine and its pool's broker: who waits for room that no agent has, and what became of the agents it started.

It comes to the kernels' door, with the pool's own token.
"""

from typing import Annotated

import msgspec

from bulletin.wire.messages.every_link import Message, Name

#: Of agents in one message: no engine runs more.
_MOST = 10_000


class EndedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is gone for certain: nothing of it runs any more. Its users are told the sentence."""

    node: Name
    sentence: Name


class NodeTime(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose host is taken from it, and how long until its agent has to leave for that; NEVER_MS is never."""

    node: Name
    leaves_in_ms: Annotated[int, msgspec.Meta(ge=0)]


class EngineNews(Message, frozen=True, kw_only=True, tag="engine-news"):
    """Say what the agents of an engine do, and ask for Demand. All of it holds until it is said otherwise."""

    #: What who waits for room is told of agents that are to come; empty is nothing.
    words: Name = ""
    #: Nodes that are to be given nothing more: they are to end.
    leaving: Annotated[tuple[Name, ...], msgspec.Meta(max_length=_MOST)] = ()
    ended: Annotated[tuple[EndedNode, ...], msgspec.Meta(max_length=_MOST)] = ()
    times: Annotated[tuple[NodeTime, ...], msgspec.Meta(max_length=_MOST)] = ()


class RoomNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """A request that waits for room alone: a node that has it would serve it."""

    slots: int
    walltime_ms: int
    waited_ms: int
    #: Only a node with just as many slots would, and nothing else on it.
    is_exclusive: bool = False


class NodeLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A node, and how many of its slots are used or kept ready."""

    node: str
    slots: int
    used: int
    hot: int
    #: It is given nothing more.
    is_drained: bool
    #: When it leaves by itself; None is never.
    leaves_in_ms: int | None = None


class Demand(Message, frozen=True, kw_only=True, tag="demand"):
    """The answer: who waits for room, those first who are first in line, and the nodes that are there."""

    waiting: tuple[RoomNeeded, ...]
    nodes: tuple[NodeLoad, ...]
