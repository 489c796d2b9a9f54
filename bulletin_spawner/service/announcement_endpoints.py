"""The endpoints of what is announced to everybody: read it, and as an admin write it; in the caller's name."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec

from bulletin.wire import page_requests as page
from bulletin.wire.messages import announcements
from bulletin_spawner.service.api_endpoints import ApiCall, Endpoint


class AnnouncementWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sentence, and for how long it is told."""

    sentence: Annotated[str, msgspec.Meta(min_length=1, max_length=announcements.SENTENCE_LIMIT)]
    for_ms: Annotated[int, msgspec.Meta(ge=60_000, le=31 * 86_400_000)]


class AnnouncedNow(msgspec.Struct, frozen=True, kw_only=True):
    """What is announced; empty where nothing is."""

    sentence: str = ""
    by: str = ""
    left_ms: int = 0


async def _read(call: ApiCall) -> AnnouncedNow:
    report, _ = await call.sight()
    return _now(report.announcement)


def _changing(question: Callable[[Any], announcements.Announce]) -> Callable[[ApiCall], Awaitable[AnnouncedNow]]:
    async def change(call: ApiCall) -> AnnouncedNow:
        asked = page.OnBehalf(reader=call.viewer.reader, question=question(call.body))
        return _now((await call.pool.change(asked, announcements.AnnouncementReport)).announcement)

    return change


def _now(found: announcements.Announcement | None) -> AnnouncedNow:
    if found is None:
        return AnnouncedNow()
    return AnnouncedNow(sentence=found.sentence, by=found.by, left_ms=found.left_ms)


ANNOUNCEMENT_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="announcement",
        path="/announcement",
        summary="What is announced to everybody, and for how long yet",
        answers=AnnouncedNow,
        run=_read,
    ),
    Endpoint(
        name="announce",
        method="POST",
        path="/announcement",
        summary="Tell everybody one sentence for so long: cells that wait say it, too",
        role="admin",
        body=AnnouncementWanted,
        answers=AnnouncedNow,
        run=_changing(lambda body: announcements.Announce(sentence=body.sentence, for_ms=body.for_ms)),
    ),
    Endpoint(
        name="unannounce",
        method="DELETE",
        path="/announcement",
        summary="Take back what is announced",
        role="admin",
        answers=AnnouncedNow,
        run=_changing(lambda _: announcements.Announce(is_undone=True)),
    ),
)
