"""The endpoints of *Quotas*: the quota file, changes of it, previews and versions; all in the caller's name."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import msgspec

from bulletin.ids import UserName
from bulletin.wire import page_requests as page
from bulletin.wire.messages import quota_edits as quotas
from bulletin_spawner.service.api_endpoints import ApiCall, Endpoint, Words
from bulletin_spawner.service.api_problems import ApiProblem, ApiRefused


class EditsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes of settings, all or none, of the version that was seen."""

    edits: quotas.Edits
    version: Words
    why: Words = ""


class EditsTried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes of settings, of the version that was seen, to be looked at and not made."""

    edits: quotas.Edits
    version: Words


class UndoWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which version is to be there again, empty for the one before; of the version that was seen."""

    version: Words
    to: Words = ""
    why: Words = ""


class SettingsRefused(ApiProblem, frozen=True, kw_only=True):
    """Nothing was changed: with these changes the file would have errors, each at its setting."""

    errors: tuple[quotas.SettingError, ...]


class ChangedMeanwhile(ApiProblem, frozen=True, kw_only=True):
    """Nothing was changed: the file is another one than that which was seen; what is new, and who made it so."""

    version: str
    by: UserName
    changes: tuple[str, ...]


_NotChanged = quotas.QuotaErrors | quotas.QuotasChangedMeanwhile
_REFUSES: dict[int, type[ApiProblem]] = {
    HTTPStatus.UNPROCESSABLE_ENTITY: SettingsRefused,
    HTTPStatus.CONFLICT: ChangedMeanwhile,
}


def _refused(answer: _NotChanged) -> ApiRefused:
    """Make of what the broker says what the API answers."""
    code = answer.__struct_config__.tag
    assert isinstance(code, str)
    if isinstance(answer, quotas.QuotaErrors):
        said = (f"{'.'.join(one.path)}: {one.sentence}" if one.path else one.sentence for one in answer.errors)
        refused = SettingsRefused(code=code, sentence=" ".join(("Nothing was changed.", *said)), errors=answer.errors)
        return ApiRefused.with_details(HTTPStatus.UNPROCESSABLE_ENTITY, refused)
    sentence = f"Nothing was changed: {answer.by} has changed the quota file since."
    changed = ChangedMeanwhile(
        code=code, sentence=sentence, version=answer.version, by=answer.by, changes=answer.changes
    )
    return ApiRefused.with_details(HTTPStatus.CONFLICT, changed)


def _asking(question: Callable[[Any], quotas.QuotaQuestion], kind: Any) -> Callable[[ApiCall], Awaitable[Any]]:
    """Make what asks the broker in the caller's name, given the body; the broker says what they may."""

    async def ask(call: ApiCall) -> Any:
        asked = page.OnBehalf(reader=call.viewer.reader, question=question(call.body))
        answer = await call.pool.change(asked, kind)
        if isinstance(answer, _NotChanged):
            raise _refused(answer)
        # The wire leaves out what is at its default: the API says all that its document names.
        return {"kind": answer.__struct_config__.tag, **msgspec.structs.asdict(answer)}

    return ask


QUOTA_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="quotas",
        path="/quotas",
        summary="The quota file: what stands in it that you may see, and what may stand there",
        role="lead",
        answers=quotas.QuotaFileReport,
        run=_asking(lambda _: quotas.AskQuotaFile(), quotas.QuotaFileReport),
    ),
    Endpoint(
        name="quotaVersions",
        path="/quotas/versions",
        summary="Who changed the quota file, when and why",
        role="lead",
        answers=quotas.QuotaLog,
        run=_asking(lambda _: quotas.AskQuotaLog(), quotas.QuotaLog),
    ),
    Endpoint(
        name="editQuotas",
        method="POST",
        path="/quotas/edits",
        summary="Change settings, all or none; in force at once. Errors are told with their setting",
        role="lead",
        body=EditsWanted,
        answers=quotas.QuotasEdited,
        refuses=_REFUSES,
        run=_asking(
            lambda body: quotas.EditQuotas(edits=body.edits, version=body.version, why=body.why),
            quotas.QuotasEdited | _NotChanged,
        ),
    ),
    Endpoint(
        name="previewQuotas",
        method="POST",
        path="/quotas/previews",
        summary="What the last week would have been with these changes; while that is worked out, ask again",
        role="lead",
        body=EditsTried,
        answers=quotas.QuotaPreview,
        refuses=_REFUSES,
        run=_asking(
            lambda body: quotas.PreviewQuotas(edits=body.edits, version=body.version),
            quotas.QuotaPreview | _NotChanged,
        ),
    ),
    Endpoint(
        name="undoQuotas",
        method="POST",
        path="/quotas/undo",
        summary="Put the quota file back to the version before, or to another one",
        role="lead",
        body=UndoWanted,
        answers=quotas.QuotasEdited,
        refuses=_REFUSES,
        run=_asking(
            lambda body: quotas.UndoQuotas(to=body.to, version=body.version, why=body.why),
            quotas.QuotasEdited | _NotChanged,
        ),
    ),
)
