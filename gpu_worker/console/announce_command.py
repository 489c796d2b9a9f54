"""`bulletin announce`: tell everybody one sentence, until a time."""

from traitlets import Bool, Unicode

from bulletin.errors import BadConfig
from bulletin.units import DAY_MS
from bulletin.wire.messages.announcements import SENTENCE_LIMIT, Announce, AnnouncementQuestion, AskAnnouncement
from gpu_worker.console.moments import ms_from_now
from gpu_worker.console.query_commands import QueryCommand

_MOST_MS = 366 * DAY_MS


class AnnounceCommand(QueryCommand):
    """`bulletin announce`: tell everybody something, take it back, or say what is announced."""

    name = "bulletin-announce"
    description = (
        "Tell everybody one sentence until a time: announce TEXT --until=2026-12-01T08:00 (or --until=+2h). Cells that "
        "wait say it once, the hub's pages and JupyterLab show it. It takes the place of the last one; --undo takes it "
        "back; without a TEXT, say what is announced. For admins."
    )
    usage = 'announce "TEXT" --until=TIME [--json]\n       bulletin announce [--undo] [--json]'
    words = 1
    least_words = 0
    until = Unicode("", help="Until when: 2026-12-01T08:00 by this computer's clock, or +2h.").tag(config=True)
    undo = Bool(False, help="Announce nothing more.").tag(config=True)
    aliases = {**QueryCommand.aliases, "until": "AnnounceCommand.until"}
    flags = {**QueryCommand.flags, "undo": ({"AnnounceCommand": {"undo": True}}, "Announce nothing more.")}

    def question(self, sentence: str = "") -> AnnouncementQuestion:
        """Have it announced, or ask what is."""
        if self.undo:
            return Announce(is_undone=True)
        if not sentence:
            return AskAnnouncement()
        if len(sentence) > SENTENCE_LIMIT:
            raise BadConfig(f"An announcement has {SENTENCE_LIMIT} letters at most, and this has {len(sentence)}.")
        if not self.until:
            raise BadConfig("Say until when: --until=2026-12-01T08:00, or --until=+2h.")
        return Announce(sentence=sentence, for_ms=min(ms_from_now(self.until, "--until"), _MOST_MS))
