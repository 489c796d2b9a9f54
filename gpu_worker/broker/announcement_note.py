"""What is announced to everybody, as the ledger keeps it and as it is read. Pure."""

import msgspec

from bulletin.ids import UserName


class AnnouncementNote(msgspec.Struct, frozen=True):
    """A sentence, its author and its end; an end at 0 is that it was taken back. In milliseconds since 1970, UTC."""

    sentence: str
    by: UserName
    until_ms: int

    def words_at(self, now_ms: int) -> str:
        """Say it, and who does, while it holds; then nothing."""
        return f"Announcement by {self.by}: {self.sentence}" if now_ms < self.until_ms else ""


NO_ANNOUNCEMENT = AnnouncementNote("", UserName(""), 0)
