"""`bulletin quota`: projects of a pool, its quota file and changes of it, and a quota file before it is used."""

import sys
import time
from pathlib import Path

from traitlets import Int, Unicode

from bulletin.errors import BadConfig
from bulletin.wire import console, messages as wire
from bulletin.wire.messages.quota_edits import (
    LARGEST_NUMBER,
    AskQuotaFile,
    AskQuotaLog,
    EditQuotas,
    PreviewQuotas,
    QuotaErrors,
    QuotaPreview,
    QuotasChangedMeanwhile,
    SettingEdit,
    SettingValue,
    UndoQuotas,
)
from gpu_worker.console.query_commands import QueryCommand

#: How often a preview is asked for, and how long it may take in all.
_LOOK_S, _PREVIEW_S = 0.5, 180.0
_USAGE = """quota [show] [--json]
       bulletin quota file [--json]
       bulletin quota set SETTING=VALUE... [--why=TEXT] [--version=VERSION]
       bulletin quota unset SETTING... [--why=TEXT] [--version=VERSION]
       bulletin quota preview SETTING=VALUE...
       bulletin quota undo [VERSION] [--why=TEXT]
       bulletin quota log [--json]
       bulletin quota check FILE [--gpus=N] [--group=NAME]"""


class QuotaCommand(QueryCommand):
    """`bulletin quota`: projects of a pool, its quota file, and changes of it."""

    name = "bulletin-quota"
    description = (
        "Show what each project uses, may use and waits for: quota. "
        "Change the pool's quota file, its comments kept, in force at once: quota set projects.lab.limit=8; a setting "
        "goes with quota unset, a project with all of its settings, too. Say before what the last week would have been "
        "with it: quota preview. Put it back to what it was: quota undo. Say who changed what: quota log. For admins, "
        "and leads of what is theirs. "
        "Say every error of a quota file with its line: quota check FILE; with --gpus=N also what N GPUs cannot keep, "
        "with --group=NAME what a hub group has by it. Exit status 1 is a file with errors, or a change that was not "
        "made."
    )
    usage = _USAGE
    gpus = Int(0, min=0, max=1_000_000, help="How many GPUs the pool has. 0: nobody knows.").tag(config=True)
    group = Unicode("", help="A hub group, of which to say what it has.").tag(config=True)
    why = Unicode("", help="Why, in a few words: the log keeps it.").tag(config=True)
    version = Unicode(
        "", help="Of the quota file, that the change is meant for: on another one nothing is changed."
    ).tag(config=True)
    aliases = {
        **QueryCommand.aliases,
        "gpus": "QuotaCommand.gpus",
        "group": "QuotaCommand.group",
        "why": "QuotaCommand.why",
        "version": "QuotaCommand.version",
    }

    _verb = "show"
    _words: tuple[str, ...] = ()

    def start(self) -> None:
        """Ask and print, or check a file; `status` is 1 for a file with errors, and for what was not changed."""
        words = tuple(self.extra_args)
        match self._verb:
            case "check" if len(words) == 1:
                self._check(words[0])
            case "show" | "file" | "log" if not words:
                super().start()
            case "undo" if len(words) <= 1:
                self._words, self.extra_args = words, []
                super().start()
            case "set" | "unset" | "preview" if words:
                self._words, self.extra_args = words, []
                super().start()
            case _:
                self.refuse()

    def parse_command_line(self, argv: list[str] | None = None) -> None:
        """Take the verb off: options may then stand before the file and after it."""
        words = list(sys.argv[1:] if argv is None else argv)
        self._verb = words.pop(0) if words and not words[0].startswith("-") else "show"
        super().parse_command_line(words)

    def question(self, _: str = "") -> console.FromConsole:
        """Make the question that the verb asks. Raises BadConfig."""
        if len(self.why) > wire.TEXT_LIMIT:
            raise BadConfig(f"--why has {len(self.why)} letters, and may have {wire.TEXT_LIMIT}.")
        match self._verb:
            case "file":
                return AskQuotaFile()
            case "log":
                return AskQuotaLog()
            case "undo":
                return UndoQuotas(to="".join(self._words), version=self.version, why=self.why)
            case "preview":
                return PreviewQuotas(edits=tuple(map(_edit, self._words)), version=self.version)
            case "set":
                return EditQuotas(edits=tuple(map(_edit, self._words)), version=self.version, why=self.why)
            case "unset":
                return EditQuotas(edits=tuple(map(_removal, self._words)), version=self.version, why=self.why)
        return console.AskProjects()

    def ask(self, question: console.FromConsole | wire.Look) -> console.Report | wire.Picture:
        """Ask; a preview until it is worked out."""
        until_s = time.monotonic() + _PREVIEW_S
        while True:
            answer = super().ask(question)
            if not (isinstance(answer, QuotaPreview) and answer.state == "working") or time.monotonic() > until_s:
                return answer
            time.sleep(_LOOK_S)

    def status_of(self, answer: console.Report | wire.Picture) -> int:
        """Return 1 where nothing was changed that should have been."""
        is_failed = isinstance(answer, QuotaPreview) and answer.state != "done"
        return 1 if is_failed or isinstance(answer, QuotaErrors | QuotasChangedMeanwhile) else 0

    def _check(self, file: str) -> None:
        """Print every error or warning of a quota file, and how much is in it where there is no error."""
        from gpu_worker.quotas import read_quotas
        from gpu_worker.quotas.group_words import describe_group
        from gpu_worker.scheduler.policy.projects import GPU_MILLI

        try:
            quotas, warnings = read_quotas(Path(file), self.gpus * GPU_MILLI or None)
        except BadConfig as error:
            sys.stderr.write(f"{error}\n")
            self.status = 1
            return
        sys.stderr.writelines(f"{warning}\n" for warning in warnings)
        projects = "1 project" if len(quotas.projects) == 1 else f"{len(quotas.projects)} projects"
        sys.stdout.write(f"ok: {projects}, {len(quotas.qos)} classes of service\n")
        if self.group:
            sys.stdout.write(f"{describe_group(quotas, self.group)}\n")


def _edit(words: str) -> SettingEdit:
    """Read SETTING=VALUE. Raises BadConfig."""
    from gpu_worker.quotas.edits import parse_path, parse_value

    name, is_given, value = words.partition("=")
    if not is_given or not value.strip():
        raise BadConfig(f"{words[:60]!r} gives no value: write SETTING=VALUE, as in projects.lab.limit=8.")
    path, read = parse_path(name.strip()), parse_value(value.strip())
    sent: SettingValue = read if isinstance(read, str | bool | int | tuple) or read is None else float(read)
    return _checked(SettingEdit(path, sent))


def _removal(words: str) -> SettingEdit:
    """Read SETTING, or the name of a table that goes with all that is in it. Raises BadConfig."""
    from gpu_worker.quotas.edits import parse_path

    return _checked(SettingEdit(parse_path(words)))


def _checked(edit: SettingEdit) -> SettingEdit:
    texts = [*edit.path, *(edit.value if isinstance(edit.value, tuple) else [])]
    if any(len(text) > wire.TEXT_LIMIT for text in texts):
        raise BadConfig(f"A name has {max(map(len, texts))} letters, and may have {wire.TEXT_LIMIT}.")
    if isinstance(edit.value, int) and abs(edit.value) > LARGEST_NUMBER:
        name = ".".join(edit.path)
        raise BadConfig(f"{name} is larger than any number that a setting may have. Write a smaller one.")
    return edit
