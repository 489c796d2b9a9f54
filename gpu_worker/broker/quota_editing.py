"""Changes of the quota file that people make through the broker: checked, written, in force, and undone in one step."""

import asyncio
import difflib
import itertools
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

import msgspec
import structlog

from bulletin.codes import RefusalCode
from bulletin.errors import BadConfig, NotDone
from bulletin.ids import ProjectId, UserName
from bulletin.wire.messages import quota_edits as wire
from gpu_worker.broker.identity import Person
from gpu_worker.broker.known_ids import CannotTell, for_leads
from gpu_worker.broker.ledger_notes import printable
from gpu_worker.broker.policy_follower import PolicyFollower
from gpu_worker.broker.quota_previews import QuotaPreviews
from gpu_worker.broker.quota_roles import inside, projects_led, refuse
from gpu_worker.broker.quota_versions import KeptVersion, before
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.quotas import Quotas, UnusableQuotas, difference, parse_quotas
from gpu_worker.quotas.edits import CannotEdit, QuotaEdit, edit_text, settings_in
from gpu_worker.quotas.quota_file import NewText, QuotaText, obstacle, read_text, version_of
from gpu_worker.quotas.schema import quota_schema
from gpu_worker.quotas.tree import KeyPath

#: How many versions are told of, and how many lines of a difference.
_MOST_TOLD, _MOST_LINES, _CONTEXT = 100, 400, 3
_ADMINS_MEND = "The quota file has errors, which an admin sees and corrects. Until then what was in force still is."
_ONE_TYPE = "The preview takes all GPUs to be of one type: what node pools and prices come to, it does not know."


class NewQuotas(msgspec.Struct, frozen=True):
    """A change that can be made: what stands in the file, what would, and what that means."""

    old: QuotaText
    content: bytes
    quotas: Quotas
    changes: tuple[str, ...]
    warnings: tuple[str, ...]
    is_all: bool  #: its reader sees all of the file, and not only the lines of the change

    @property
    def diff(self) -> str:
        """Show what would be other lines, as diff -u does; of a long one the beginning."""
        lines = difflib.unified_diff(
            self.old.content.decode("utf-8", "replace").splitlines(),
            self.content.decode().splitlines(),
            lineterm="",
            n=_CONTEXT if self.is_all else 0,
        )
        shown = [line for line in lines if not line.startswith(("--- ", "+++ "))]
        more = [f"… {len(shown) - _MOST_LINES} more lines"] if len(shown) > _MOST_LINES else []
        return "\n".join([*shown[:_MOST_LINES], *more])


#: Why nothing comes of a change: what is wrong with it, or that the file is another one.
NotChanged = wire.QuotaErrors | wire.QuotasChangedMeanwhile


class QuotaEditing:
    """Reads and changes the quota file for those who may. One at a time."""

    def __init__(
        self, shell: SchedulerShell, follower: PolicyFollower, previews: QuotaPreviews, now_ms: Callable[[], int]
    ) -> None:
        self._shell, self._follower, self._previews, self._now_ms = shell, follower, previews, now_ms
        self._versions, self._changing = follower.versions, asyncio.Lock()
        self._log = structlog.get_logger("broker")

    async def answer(self, person: Person, question: wire.QuotaQuestion) -> wire.QuotaAnswer:
        """Answer a question about the quota file. Raises CannotTell, LedgerAway."""
        match question:
            case wire.AskQuotaFile():
                return await self.report(person)
            case wire.AskQuotaLog():
                return await self.log(person)
            case wire.EditQuotas():
                return await self.edit(person, question)
            case wire.UndoQuotas():
                return await self.undo(person, question)
            case wire.PreviewQuotas():
                return await self.preview(person, question)

    # --- what stands there

    async def report(self, person: Person) -> wire.QuotaFileReport:
        """Tell what stands in the file, and whether it may be changed. Raises CannotTell."""
        text, led = await self._read(), self._check(person, "see and change the quota file")
        errors: list[str] = []
        settings: list[wire.SettingEdit] = []
        try:
            await asyncio.to_thread(self._parse, text.content)
            settings = [wire.SettingEdit(one.path, _to_wire(one.value)) for one in settings_in(text.content, self._end)]
        except UnusableQuotas as error:
            errors = [str(one) for one in error.findings]
        names = self._names(led)
        if not person.is_admin:
            settings = [one for one in settings if one.path[0] == "projects" and one.path[1] in names]
        return wire.QuotaFileReport(
            file=str(self._file),
            version=text.version,
            text=text.content.decode("utf-8", "replace") if person.is_admin else "",
            settings=tuple(settings),
            projects=None if person.is_admin else tuple(sorted(names)),
            schema=msgspec.json.encode(quota_schema()).decode(),
            obstacle=await asyncio.to_thread(obstacle, self._file),
            errors=tuple(errors) if person.is_admin else (_ADMINS_MEND,) * bool(errors),
        )

    async def log(self, person: Person) -> wire.QuotaLog:
        """Tell which versions the file had. Raises CannotTell, LedgerAway."""
        self._check(person, "see who changed the quotas")
        kept, text = await asyncio.to_thread(self._versions.log, _MOST_TOLD), await self._read()
        at = next((number for number, one in enumerate(kept) if one.version == text.version), None)
        return wire.QuotaLog(
            versions=tuple(
                wire.QuotaVersion(
                    version=one.version,
                    at_ms=one.at_ms,
                    by=one.who,
                    why=one.why,
                    changes=tuple(self._of(person, one.changes)),
                    is_in_force=number == at,
                )
                for number, one in enumerate(kept)
                if person.is_admin or self._of(person, one.changes)
            )
        )

    # --- what changes it

    async def edit(self, person: Person, asked: wire.EditQuotas) -> wire.QuotasEdited | NotChanged:
        """Change settings, all or none. Raises CannotTell, LedgerAway."""
        async with self._changing:
            new = await self.prepare(person, asked.edits, asked.version)
            return await self._make(person, new, printable(asked.why)) if isinstance(new, NewQuotas) else new

    async def undo(self, person: Person, asked: wire.UndoQuotas) -> wire.QuotasEdited | NotChanged:
        """Put an earlier version back, the one before where none is named. Raises CannotTell, LedgerAway."""
        self._check(person, "change quotas")
        async with self._changing:
            text = await self._read()
            kept = await asyncio.to_thread(self._versions.log, 10**6)
            if asked.version and asked.version != text.version:
                return await self._changed_meanwhile(person, asked.version, text)
            is_kept = any(one.version == text.version for one in kept)
            # One that is not kept has errors, or was written in this moment: what is in force is the one before.
            previous = before(kept, text.version) if is_kept else next(iter(kept), None)
            to = asked.to or (previous.version if previous is not None else "")
            content = await asyncio.to_thread(self._versions.content, to) if to else None
            if content is None:
                known = ", ".join(dict.fromkeys(one.version for one in kept[:5])) or "none"
                which = f"The version {to!r} is not kept." if to else "There is no version before this one."
                raise CannotTell(RefusalCode.UNKNOWN_ID, f"{which} The last ones: {known}. All: bulletin quota log")
            new = await self._examine(person, text, content, undoes_own=is_kept and _is_own(person, kept, to))
            why = printable(asked.why) or f"back to version {to}"
            return await self._make(person, new, why) if isinstance(new, NewQuotas) else new

    async def preview(self, person: Person, asked: wire.PreviewQuotas) -> wire.QuotaPreview | NotChanged:
        """Say what a change would come to. Raises CannotTell, LedgerAway."""
        new = await self.prepare(person, asked.edits, asked.version)
        if not isinstance(new, NewQuotas):
            return new
        policy = self._follower.policy
        played = self._previews.ask(
            (new.old.version, version_of(new.content)), policy.settings, policy.settings_of(new.quotas)
        )
        warnings = (*new.warnings, *([_ONE_TYPE] if new.quotas.node_pools or new.quotas.prices else []))
        if not person.is_admin:  # how others would fare is theirs to know
            names = self._names(self._check(person, "see quotas"))
            rows = tuple(row for row in played.rows if row.project in names)
            played = msgspec.structs.replace(played, rows=rows, by_project="")
        return msgspec.structs.replace(played, changes=new.changes, warnings=warnings, diff=new.diff)

    async def prepare(self, person: Person, edits: Sequence[wire.SettingEdit], version: str) -> NewQuotas | NotChanged:
        """Find what a change would come to, without making it. Raises CannotTell, LedgerAway."""
        self._check(person, "change quotas")
        text = await self._read()
        if version and version != text.version:
            return await self._changed_meanwhile(person, version, text)
        try:
            content = await asyncio.to_thread(self._edited, text.content, edits)
        except CannotEdit as error:
            return wire.QuotaErrors(errors=(wire.SettingError(path=error.path, sentence=error.sentence),))
        except UnusableQuotas as error:
            first = f"The file has errors already: correct them by hand. {error.findings[0]}"
            return wire.QuotaErrors(
                errors=(wire.SettingError(path=(), sentence=first if person.is_admin else _ADMINS_MEND),)
            )
        return await self._examine(person, text, content)

    def _check(self, person: Person, what: str) -> frozenset[ProjectId]:
        """Find of what a person is lead who is no admin. Raises CannotTell where that is nothing."""
        led = projects_led(person, self._follower.policy.quotas.projects)
        if not led and not person.is_admin:
            raise for_leads("leads of projects", what)
        return led

    def _names(self, led: frozenset[ProjectId]) -> frozenset[ProjectId]:
        """Add to projects those that are inside them."""
        return led | inside(led, self._follower.policy.quotas.projects)

    def _of(self, person: Person, sentences: Iterable[str]) -> list[str]:
        """Leave of sentences those that speak of a lead's own projects; to an admin, all."""
        if person.is_admin:
            return list(sentences)
        names = [repr(str(one)) for one in self._names(self._check(person, "see quotas"))]
        return [one for one in sentences if any(name in one for name in names)]

    def _edited(self, content: bytes, edits: Sequence[wire.SettingEdit]) -> bytes:
        self._parse(content)
        return edit_text(content, self._end, [QuotaEdit(one.path, _from_wire(one.path, one.value)) for one in edits])

    async def _examine(
        self, person: Person, old: QuotaText, content: bytes, *, undoes_own: bool = False
    ) -> NewQuotas | wire.QuotaErrors:
        """Read the text that would stand there, and say what it means, or each error at its setting."""
        try:
            quotas, warnings = await asyncio.to_thread(self._parse, content)
            self._follower.policy.settings_of(quotas)
        except UnusableQuotas as error:
            found = tuple(wire.SettingError(path=one.key, sentence=one.sentence) for one in error.findings)
            return wire.QuotaErrors(errors=found)
        except BadConfig as error:
            return wire.QuotaErrors(errors=(wire.SettingError(path=(), sentence=str(error)),))
        try:
            known, told = await asyncio.to_thread(self._parse, old.content)
        except UnusableQuotas:  # it is put right
            if not person.is_admin:  # what else was written there would be lost, and its lines be seen
                return wire.QuotaErrors(errors=(wire.SettingError(path=(), sentence=_ADMINS_MEND),))
            known, told = self._follower.policy.quotas, []
        told_before = {one.sentence for one in told}
        changes = difference(known, quotas)
        refused = refuse(person, known, quotas, changes, undoes_own=undoes_own)
        if refused:
            return wire.QuotaErrors(errors=refused)
        said = [one.sentence for one in warnings if one.sentence not in told_before]
        return NewQuotas(
            old, content, quotas, tuple(map(str, changes)), tuple(self._of(person, said)), is_all=person.is_admin
        )

    async def _make(self, person: Person, new: NewQuotas, why: str) -> wire.QuotasEdited:
        """Write the file and bring it into force. Who did it is noted before, and known if we die in between."""
        version = version_of(new.content)
        if new.content != new.old.content:
            kept = KeptVersion(version=version, at_ms=self._now_ms(), who=person.user, why=why, changes=new.changes)
            await asyncio.to_thread(self._write, new, kept)
            self._log.info("quota file changed", by=person.user, version=version, why=why)
            await self._follower.load(self._shell)
        return wire.QuotasEdited(
            version=version, before=new.old.version, changes=new.changes, warnings=new.warnings, diff=new.diff
        )

    def _write(self, new: NewQuotas, kept: KeptVersion) -> None:
        try:
            text = NewText(self._file, new.content)
        except NotDone as error:
            raise CannotTell(RefusalCode.NOT_WRITTEN, str(error)) from None
        try:
            self._keep_old(new.old)
            self._versions.keep(kept, new.content)
            text.put_in_place(new.old.version)
        except NotDone as error:
            back = msgspec.structs.replace(
                kept, version=new.old.version, why="the change before could not be written", changes=()
            )
            self._versions.keep(back, new.old.content)
            raise CannotTell(RefusalCode.NOT_WRITTEN, str(error)) from None
        finally:
            text.throw_away()

    def _keep_old(self, old: QuotaText) -> None:
        """Keep what stood there, where the follower has not seen it yet: somebody wrote it a moment ago."""
        last = next(iter(self._versions.log(1)), None)
        if last is None or last.version != old.version:
            owner = UserName(self._follower.policy.owner)
            self._versions.keep(KeptVersion(version=old.version, at_ms=self._now_ms(), who=owner), old.content)

    async def _changed_meanwhile(self, person: Person, seen: str, text: QuotaText) -> wire.QuotasChangedMeanwhile:
        """Say what is other than in the version that was seen, and who changed it last."""
        last = next(iter(await asyncio.to_thread(self._versions.log, 1)), None)
        content = await asyncio.to_thread(self._versions.content, seen)
        changes: tuple[str, ...] = ("What is new is not known any more: look at each setting.",)
        if content is not None:
            try:
                sides = [(await asyncio.to_thread(self._parse, one))[0] for one in (content, text.content)]
                changes = tuple(self._of(person, map(str, difference(*sides))))[:_MOST_TOLD]
            except BadConfig:
                changes = ("The file has errors now.",)
        by = last.who if last is not None and last.version == text.version else UserName(self._follower.policy.owner)
        return wire.QuotasChangedMeanwhile(version=text.version, by=by, changes=changes)

    # --- the file

    @property
    def _file(self) -> Path:
        file = self._follower.policy.file
        if file is None:
            raise CannotTell(
                RefusalCode.NOT_WRITTEN,
                "This pool has no quota file: each group is a project with an equal share. Write one, and name it in "
                "Pool.quota_file.",
            )
        return file

    @property
    def _end(self) -> str:
        return self._file.suffix.lower()

    async def _read(self) -> QuotaText:
        try:
            return await asyncio.to_thread(read_text, self._file)
        except BadConfig as error:
            raise CannotTell(RefusalCode.NOT_WRITTEN, str(error)) from None

    def _parse(self, content: bytes) -> tuple[Quotas, list]:  # type: ignore[type-arg]
        return parse_quotas(content, str(self._file), self._shell.capacity_milli, self._now_ms())


def _is_own(person: Person, kept: Sequence[KeptVersion], to: str) -> bool:
    """Whether all that was changed since this version, the last one first, was changed by this person."""
    since = itertools.takewhile(lambda one: one.version != to, kept)
    return all(one.who == person.user for one in since)


def _from_wire(path: KeyPath, value: wire.SettingValue) -> str | bool | int | Decimal | tuple[str, ...] | None:
    """Take numbers exactly, as they are shown. Raises CannotEdit."""
    if isinstance(value, float):
        try:
            number = Decimal(repr(value))
        except InvalidOperation:
            number = Decimal("nan")
        if not number.is_finite():
            raise CannotEdit(path, f"{value} is no number that a quota file may have.")
        return int(number) if number == number.to_integral_value() else number
    return value


def _to_wire(value: object) -> wire.SettingValue:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    assert value is None or isinstance(value, str | bool | int | tuple)
    return value
