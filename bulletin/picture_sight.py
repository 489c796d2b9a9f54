"""What of the pool's picture is for everybody, and what for admins and whom it is about: one rule for all who draw."""

from msgspec import structs

from bulletin.ids import UserName
from bulletin.wire.messages import Picture, SlotPicture, WaitingPicture

#: Who may not know a name is told so.
SOMEONE = UserName("someone else")


def hide_others(picture: Picture, user: UserName) -> Picture:
    """Make of an admin's picture what this user may see: of others, only that they are there; of faults, nothing."""

    def named(slot: SlotPicture) -> SlotPicture:
        return slot if slot.user in (None, user) else structs.replace(slot, user=SOMEONE)

    def waiting(one: WaitingPicture) -> WaitingPicture:
        # Of others' projects, budgets and limits a reason may tell much.
        return one if one.user == user else structs.replace(one, user=SOMEONE, reason="")

    return structs.replace(
        picture,
        # What others have brought for themselves is none of the pool's.
        slots=tuple(named(slot) for slot in picture.slots if slot.owner in ("", user)),
        waiting=tuple(waiting(one) for one in picture.waiting if one.user == user or not one.is_for_own),
        recent=tuple(cell for cell in picture.recent if cell.user == user),
        counters={},
        # Addresses, and words of the database's driver and of agents.
        ledger_problem="",
        clocks_ahead_ms={},
        absent_nodes=tuple(structs.replace(one, problem="") for one in picture.absent_nodes),
    )
