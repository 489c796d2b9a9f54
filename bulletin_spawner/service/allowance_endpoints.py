"""The endpoints of asking for more: what is asked for, and decisions; all in the caller's name."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec

from bulletin.wire import page_requests as page
from bulletin.wire.messages import allowance_requests as allowances
from bulletin_spawner.service.api_endpoints import ApiCall, CellNamed, Endpoint, Word, Words

_Duration = Annotated[int, msgspec.Meta(ge=60_000, le=366 * 86_400_000)]


class AllowanceSelection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether those are told, too, that are long over."""

    is_all: bool = False
    behind: Words = ""  #: those that come behind this one, of many


class AllowanceWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody needs in a project, for how long, and why."""

    project: Word
    why: Annotated[str, msgspec.Meta(min_length=1, max_length=allowances.WHY_LIMIT)]
    walltime_ms: _Duration | None = None
    gpus: Annotated[int, msgspec.Meta(ge=1, le=allowances.MOST_GPUS)] | None = None
    is_exclusive: bool = False
    #: More of the project's budget, in GPU-milliseconds, in the period that runs; asked for alone.
    budget_ms: Annotated[int, msgspec.Meta(ge=1, le=allowances.MOST_BUDGET_MS)] | None = None
    #: Whose budget: the project's, or that of one which it is in; empty is the one that leaves least.
    budget_of: Words = ""
    for_ms: _Duration | None = None


class GrantWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For how long it is granted, and a sentence for who asked."""

    for_ms: _Duration | None = None
    sentence: allowances.Words = ""


class DeclineWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence for who asked."""

    sentence: allowances.Words = ""


def _asking(question: Callable[[ApiCall], allowances.AllowanceQuestion]) -> Callable[[ApiCall], Awaitable[Any]]:
    async def ask(call: ApiCall) -> Any:
        asked = page.OnBehalf(reader=call.viewer.reader, question=question(call))
        is_look = isinstance(asked.question, allowances.AskAllowances)
        ask_pool = call.pool.fetch_for if is_look else call.pool.change
        answer = await ask_pool(asked, allowances.AllowanceReport)
        # The wire leaves out what is at its default: the API says all that its document names.
        return {
            "kind": answer.__struct_config__.tag,
            "rows": answer.rows,
            "slot_word": answer.slot_word,
            "has_more": answer.has_more,
        }

    return ask


ALLOWANCE_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="allowances",
        path="/allowances",
        summary="What you asked for beyond the rules, and what you may decide",
        asks=AllowanceSelection,
        answers=allowances.AllowanceReport,
        run=_asking(lambda call: allowances.AskAllowances(is_all=call.asked.is_all, behind=call.asked.behind)),
    ),
    Endpoint(
        name="requestAllowance",
        method="POST",
        path="/allowances",
        summary="Ask for longer cells, more GPUs in a cell and at once, a node alone, or more budget, for so long",
        body=AllowanceWanted,
        answers=allowances.AllowanceReport,
        run=_asking(
            lambda call: allowances.RequestAllowance(
                project=call.body.project,
                walltime_ms=call.body.walltime_ms,
                gpus=call.body.gpus,
                is_exclusive=call.body.is_exclusive,
                budget_ms=call.body.budget_ms,
                budget_of=call.body.budget_of,
                for_ms=call.body.for_ms,
                why=call.body.why,
            )
        ),
    ),
    Endpoint(
        name="grantAllowance",
        method="POST",
        path="/allowances/{id}/grant",
        summary="Grant what somebody asks for",
        role="lead",
        asks=CellNamed,
        body=GrantWanted,
        answers=allowances.AllowanceReport,
        run=_asking(
            lambda call: allowances.DecideAllowance(
                id=call.asked.id, is_granted=True, for_ms=call.body.for_ms, sentence=call.body.sentence
            )
        ),
    ),
    Endpoint(
        name="declineAllowance",
        method="POST",
        path="/allowances/{id}/decline",
        summary="Decline what somebody asks for, end what was granted, or take back what you asked for",
        asks=CellNamed,
        body=DeclineWanted,
        answers=allowances.AllowanceReport,
        run=_asking(
            lambda call: allowances.DecideAllowance(id=call.asked.id, is_granted=False, sentence=call.body.sentence)
        ),
    ),
)
