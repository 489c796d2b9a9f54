"""The endpoint of who used how much, for a spreadsheet: for admins, as it names everybody."""

from http import HTTPStatus
from typing import Annotated, Literal

import msgspec

from bulletin.wire import page_requests as page
from bulletin_spawner.service.api_endpoints import ApiCall, Endpoint
from bulletin_spawner.service.api_problems import ApiRefused

_DAY_MS = 86_400_000
#: More of the ledger is not read for a page: `bulletin usage` reads all of it.
_LONGEST_MS = 400 * _DAY_MS
_Moment = Annotated[int, msgspec.Meta(ge=0, le=2**52)]


class UsageAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose sums, of which stretches, between two times in milliseconds since 1970, UTC."""

    since_ms: _Moment
    until_ms: _Moment
    by: Literal["user", "project", "qos", "label"] = "user"
    period: Literal["all", "day", "week", "month"] = "all"


class UsageFile(msgspec.Struct, frozen=True, kw_only=True):
    """Comma-separated values: a head, and a row for each sum. Of very many, the first are there."""

    csv: str
    has_more: bool


async def _usage(call: ApiCall) -> UsageFile:
    asked: UsageAsked = call.asked
    if not 0 < asked.until_ms - asked.since_ms <= _LONGEST_MS:
        sentence = "Between the two times is no day, or more than 400 days: `bulletin usage` reads all of the ledger."
        raise ApiRefused(HTTPStatus.BAD_REQUEST, "bad-request", sentence)
    table = await call.pool.fetch_usage(
        page.AskUsage(
            by=asked.by,
            period=None if asked.period == "all" else asked.period,
            since_ms=asked.since_ms,
            until_ms=asked.until_ms,
        )
    )
    return UsageFile(csv=table.csv, has_more=table.has_more)


USAGE_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="usage",
        path="/usage",
        summary="Who used how much, as comma-separated values: by user, project, class of service or label",
        role="admin",
        asks=UsageAsked,
        answers=UsageFile,
        run=_usage,
    ),
)
