"""How long cells ran, as their node says: no longer than it is one, and never less than nothing. Pure."""

from msgspec import structs

from bulletin.units import DAY_MS
from bulletin.wire import messages as wire

#: Where nobody knows since when it is there: no cell is older.
_LONGEST_MS = 10 * 366 * DAY_MS
#: What two looks at a clock may differ by.
_SLACK_MS = 60_000


def longest_ms(now_ms: int, added_ms: int | None) -> int:
    """Return for how long a cell may have run by now on a node that was registered then; None is nobody knows when."""
    return _LONGEST_MS if added_ms is None else min(max(0, now_ms - added_ms) + _SLACK_MS, _LONGEST_MS)


def limit_claims(message: wire.FromAgent, most_ms: int) -> wire.FromAgent:
    """Cut what a node says of times to what can be: by them its users, and budgets of projects, are charged."""

    def limit(claimed_ms: int) -> int:
        return min(max(0, claimed_ms), most_ms)

    match message:
        case wire.Register():
            held = tuple(
                structs.replace(
                    one,
                    running_ms=limit(one.running_ms),
                    held_ms=limit(one.held_ms),
                    walltime_ms=min(max(0, one.walltime_ms), _LONGEST_MS),
                    more_ms=min(max(0, one.more_ms), _LONGEST_MS),
                )
                for one in message.held
            )
            return structs.replace(message, held=held)
        case wire.CellBegan():
            return structs.replace(message, running_ms=limit(message.running_ms))
        case wire.CellDone(usage=usage):
            usage = structs.replace(usage, held_ms=limit(usage.held_ms), ran_ms=limit(usage.ran_ms))
            return structs.replace(message, usage=usage, ended_ago_ms=limit(message.ended_ago_ms))
        case _:
            return message
