"""The lives of a request and of a lease, as tables. A move that is not here is a bug of ours, and raises.

                    GRANTED ──► BUSY ◄──► HOT
                       │       │  ▲        │
                       │       │  │        ▼
                       └───────┼► └──── EVICTING          each of them ──► ENDED
                               ▼           ▲
                          RECLAIMING ──────┘

A lease that an agent reports although its session went on elsewhere is ENDING at once, and waits for its end.
"""

from enum import Enum

from bulletin.errors import IllegalMove


class RequestStatus(Enum):
    """How far a request is, from its submission until it is granted, refused or withdrawn."""

    QUEUED = "queued"  #: in the line
    HELD = "held"  #: waits for the end of a lease that its own session still has; nobody waits behind it
    ON_HOLD = "on-hold"  #: a person wants it not to start yet
    GRANTED = "granted"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


class Phase(Enum):
    """What a lease is doing, from its grant until its slots are free; the moves between are in `LEASE_MOVES`."""

    GRANTED = "granted"  #: no cell has begun yet
    BUSY = "busy"  #: a cell runs; never evicted
    RECLAIMING = "reclaiming"  #: a cell runs, and its slots are wanted back by whom they are guaranteed to
    HOT = "hot"  #: no cell runs; the session may begin one at any time, and may be evicted
    EVICTING = "evicting"  #: the agent was asked to free the slots; a cell may still have been faster
    ENDING = "ending"  #: the agent was told to free the slots, whatever runs there
    ENDED = "ended"


REQUEST_MOVES: dict[RequestStatus, frozenset[RequestStatus]] = {
    RequestStatus.QUEUED: frozenset(
        {
            RequestStatus.HELD,
            RequestStatus.ON_HOLD,
            RequestStatus.GRANTED,
            RequestStatus.REFUSED,
            RequestStatus.WITHDRAWN,
        }
    ),
    RequestStatus.HELD: frozenset(
        {RequestStatus.QUEUED, RequestStatus.ON_HOLD, RequestStatus.REFUSED, RequestStatus.WITHDRAWN}
    ),
    RequestStatus.ON_HOLD: frozenset(
        {RequestStatus.QUEUED, RequestStatus.HELD, RequestStatus.REFUSED, RequestStatus.WITHDRAWN}
    ),
    RequestStatus.GRANTED: frozenset(),
    RequestStatus.REFUSED: frozenset(),
    RequestStatus.WITHDRAWN: frozenset(),
}

LEASE_MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.GRANTED: frozenset({Phase.BUSY, Phase.EVICTING, Phase.ENDED}),
    Phase.BUSY: frozenset({Phase.BUSY, Phase.HOT, Phase.RECLAIMING, Phase.ENDED}),  # the next cell of a kept place
    Phase.RECLAIMING: frozenset({Phase.EVICTING, Phase.ENDED}),
    Phase.HOT: frozenset({Phase.BUSY, Phase.EVICTING, Phase.ENDED}),
    Phase.EVICTING: frozenset({Phase.BUSY, Phase.ENDED}),
    Phase.ENDING: frozenset({Phase.ENDED}),
    Phase.ENDED: frozenset(),
}


def moved(was: Phase, to: Phase) -> Phase:
    """Return the phase moved to.

    Raises
    ------
    IllegalMove
        If the table does not have the move.
    """
    if to not in LEASE_MOVES[was]:
        raise IllegalMove(was.name, to.name)
    return to


def stood(was: RequestStatus, to: RequestStatus) -> RequestStatus:
    """Return the standing of a request after a move; raises `IllegalMove` as `moved` does."""
    if to not in REQUEST_MOVES[was]:
        raise IllegalMove(was.name, to.name)
    return to
