"""What an admin tells everybody: one sentence, until a time. Asked at a command line or by the hub's page.

Each question has one answer, AnnouncementReport, or Refusal.
"""

from typing import Annotated

import msgspec

from bulletin.ids import UserName
from bulletin.wire.messages.every_link import Duration, Message

#: So many letters are one sentence.
SENTENCE_LIMIT = 256


class Announce(Message, frozen=True, kw_only=True, tag="announce"):
    """Tell everybody something for so long, in place of what is announced; or, undone, announce nothing more."""

    sentence: Annotated[str, msgspec.Meta(max_length=SENTENCE_LIMIT)] = ""
    for_ms: Duration | None = None
    is_undone: bool = False


class AskAnnouncement(Message, frozen=True, tag="ask-announcement"):
    """Ask what is announced. Everybody may."""


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """What is announced, by whom, and for how long yet."""

    sentence: str
    by: UserName
    left_ms: int


class AnnouncementReport(Message, frozen=True, kw_only=True, tag="announcement-report"):
    """The answer to both; without one, nothing is announced."""

    announcement: Announcement | None = None


AnnouncementQuestion = Announce | AskAnnouncement
