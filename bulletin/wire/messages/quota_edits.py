"""The quota file of a pool, and changes of it: what people ask who answer for quotas, at a command line or on the page.

A change names the version of the file that its person saw. Where the file is another one by now, nothing is changed,
and the answer says what is new. Each question has one answer: what stands beside it, or Refusal.
"""

from typing import Annotated, Literal

import msgspec

from bulletin.ids import UserName
from bulletin.wire.messages.every_link import Message, Name

#: So deep is a setting in its tables, and so much is changed at once.
_DEPTH, _MOST_EDITS, _MOST_NAMES = 5, 100, 1000
#: What a frame can hold of whole numbers; those that a setting may have are far fewer.
LARGEST_NUMBER = 2**63 - 1
_WholeNumber = Annotated[int, msgspec.Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
_Names = Annotated[tuple[Name, ...], msgspec.Meta(max_length=_MOST_NAMES)]
#: What a setting may be given; None takes it out, or a table with all that is in it.
SettingValue = str | bool | _WholeNumber | float | _Names | None
SettingPath = Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=_DEPTH)]


class SettingEdit(msgspec.Struct, frozen=True):
    """One setting of the quota file, by the tables that it is in, and what it is to be."""

    path: SettingPath
    value: SettingValue = None


Edits = Annotated[tuple[SettingEdit, ...], msgspec.Meta(max_length=_MOST_EDITS)]


class AskQuotaFile(Message, frozen=True, kw_only=True, tag="ask-quota-file"):
    """Ask what stands in the quota file: QuotaFileReport."""


class QuotaFileReport(Message, frozen=True, kw_only=True, tag="quota-file"):
    """The quota file as it is now, of what its reader may change."""

    file: str
    version: str
    #: All of it; empty for who may change a part.
    text: str
    #: A table with nothing in it, as a project that is only named, has no value.
    settings: tuple[SettingEdit, ...]
    #: What may stand there, as JSON schema, with what each setting means.
    schema: str
    #: Why the broker cannot change it, with what to do; empty where it can.
    obstacle: str = ""
    #: Why the file as it is now is not in force, each error one; then what was in force before still is.
    errors: tuple[str, ...] = ()
    #: In which projects the reader may change something; None is in all.
    projects: tuple[str, ...] | None = None


class EditQuotas(Message, frozen=True, kw_only=True, tag="edit-quotas"):
    """Change settings of the quota file, all of them or none: QuotasEdited, QuotaErrors or QuotasChangedMeanwhile."""

    edits: Edits
    #: That it began from; empty is whatever is there.
    version: Name = ""
    why: Name = ""


class UndoQuotas(Message, frozen=True, kw_only=True, tag="undo-quotas"):
    """Put the file back to what it was before its last change, or to that version: answers as of EditQuotas."""

    to: Name = ""
    version: Name = ""
    why: Name = ""


class QuotasEdited(Message, frozen=True, kw_only=True, tag="quotas-edited"):
    """It is done, and in force."""

    version: str
    before: str
    changes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    #: Of the text, as diff -u writes it.
    diff: str = ""


class SettingError(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with one setting; without a path, with the file as a whole."""

    path: tuple[str, ...]
    sentence: str


class QuotaErrors(Message, frozen=True, kw_only=True, tag="quota-errors"):
    """Nothing was changed: with these changes the file would have errors."""

    errors: tuple[SettingError, ...]


class QuotasChangedMeanwhile(Message, frozen=True, kw_only=True, tag="quotas-changed-meanwhile"):
    """Nothing was changed: the file is another one than that which was seen."""

    version: str
    by: UserName
    #: What is other now than in the version that was seen, of what its reader sees.
    changes: tuple[str, ...]


class AskQuotaLog(Message, frozen=True, kw_only=True, tag="ask-quota-log"):
    """Ask for the versions of the quota file that are kept: QuotaLog."""


class QuotaVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version: who made it of the one before, when, why, and what was changed. Milliseconds since 1970, UTC."""

    version: str
    at_ms: int
    by: UserName
    why: str
    changes: tuple[str, ...]
    is_in_force: bool = False


class QuotaLog(Message, frozen=True, kw_only=True, tag="quota-log"):
    """The versions, the last one first."""

    versions: tuple[QuotaVersion, ...]


class PreviewQuotas(Message, frozen=True, kw_only=True, tag="preview-quotas"):
    """Ask what the last days would have been with these changes. Asked again, it is not begun again: QuotaPreview."""

    edits: Edits
    version: Name = ""


class PreviewRow(msgspec.Struct, frozen=True, kw_only=True):
    """How the cells of a project would have fared: as things are, and with the change. Times in milliseconds."""

    project: str
    cells: int
    waited_now_ms: int
    waited_then_ms: int
    at_once_now: float
    at_once_then: float


class QuotaPreview(Message, frozen=True, kw_only=True, tag="quota-preview"):
    """The answer, or that it is being worked out: then ask again."""

    state: Literal["working", "done", "failed"]
    changes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    diff: str = ""
    #: What it comes to, or why it failed.
    sentence: str = ""
    #: Who would have waited less, and who more.
    by_project: str = ""
    rows: tuple[PreviewRow, ...] = ()
    reclaims_now: int = 0
    reclaims_then: int = 0
    refused_now: int = 0
    refused_then: int = 0
    #: Cells that would have been ended because they ran for all of their walltime.
    cut_now: int = 0
    cut_then: int = 0


QuotaQuestion = AskQuotaFile | EditQuotas | UndoQuotas | AskQuotaLog | PreviewQuotas
QuotaAnswer = QuotaFileReport | QuotasEdited | QuotaErrors | QuotasChangedMeanwhile | QuotaLog | QuotaPreview
