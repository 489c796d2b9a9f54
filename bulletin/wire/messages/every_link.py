"""What is said on every link, and what may be written into a control message."""

from typing import Annotated

import msgspec

from bulletin.units import DAY_MS

#: Grows when two versions can no longer understand each other.
PROTOCOL = 1

#: A time that is so far away is never: ten years. Who does not know that plans for it, which is as good.
NEVER_MS = 10 * 366 * DAY_MS

#: What people and programs may write into a control message: it is short, and numbers are of this world.
TEXT_LIMIT = 256
Name = Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)]
Secret = Annotated[str, msgspec.Meta(max_length=4096)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**6)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**50)]  # bytes
Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]  # of outputs, rounds, places: counted from 0 or 1 up
Duration = Annotated[int, msgspec.Meta(ge=1, le=NEVER_MS)]  # ms


class SlotUse(msgspec.Struct, frozen=True):
    """How busy a slot was of late, and what of its memory processes use."""

    slot: Name
    busy_percent: Annotated[int, msgspec.Meta(ge=0, le=100)]
    used_bytes: Size
    #: For how long it has done nothing.
    idle_ms: Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """A message of a link: its tag says which one."""


class Ping(Message, frozen=True, kw_only=True, tag="ping"):
    """Ask whether the other side is there. It answers with Pong, or with Unknown if it has forgotten the sender."""

    #: What an agent has turned away at its own socket so far.
    counters: Annotated[dict[Name, int], msgspec.Meta(max_length=256)] = {}
    #: What an agent's steady clock says.
    clock_ms: int | None = None
    #: What its clock of the day says, in ms since 1970.
    day_ms: int | None = None
    #: What an agent has measured of its slots since the last one; none where nothing can be measured.
    slots: Annotated[tuple[SlotUse, ...], msgspec.Meta(max_length=4096)] = ()
    #: In how long an agent leaves, where that is another time than when it registered; NEVER_MS is never.
    leaves_in_ms: int | None = None


class News(msgspec.Struct, frozen=True):
    """A sentence for a notebook's user, told once: what was said under an id already is not said again."""

    id: str
    sentence: str
    about: str = ""  #: the id of the request that was decided


class Pong(Message, frozen=True, tag="pong"):
    """The answer to Ping."""

    news: tuple[News, ...] = ()


class Unknown(Message, frozen=True, tag="unknown"):
    """Tell the sender to introduce itself again: this side does not know it, and may have been restarted."""


class Malformed(Message, frozen=True, tag="malformed"):
    """Tell the sender that its frames were not a message of this link. They were counted and dropped."""

    problem: str
