"""`bulletin request`: what people ask for beyond the rules; leads and admins list, grant and decline it."""

from traitlets import Bool, Unicode

from bulletin.errors import BadConfig
from bulletin.units import parse_duration_ms
from bulletin.wire import console, messages as wire
from bulletin.wire.messages.allowance_requests import (
    WHY_LIMIT,
    AllowanceReport,
    AskAllowances,
    DecideAllowance,
)
from gpu_worker.console.query_commands import QueryCommand, checked
from gpu_worker.console.request_sentences import as_csv

_MOST_MS = 366 * 86_400_000


class RequestCommand(QueryCommand):
    """`bulletin request`: list, grant, decline."""

    name = "bulletin-request"
    description = (
        "What people ask for beyond the rules (%gpu request): list shows it with the reasons, grant ID allows it for "
        "so long as was asked or --for says, decline ID says no, and ends what was granted. Leads of the project and "
        "admins decide; others list, and take back with decline, what is their own."
    )
    usage = (
        "request list [--all] [--csv] [--json]\n"
        "       bulletin request grant ID [--for=2d] [--say=TEXT] [--json]\n"
        "       bulletin request decline ID [--say=TEXT] [--json]"
    )
    words = 2
    least_words = 1
    all = Bool(False, help="Those that are long over, too.").tag(config=True)
    writes_csv = Bool(False, help="Write a table that spreadsheets read.").tag(config=True)
    for_time = Unicode("", help="For how long it is granted: 4h, 2d.").tag(config=True)
    say = Unicode("", help="A sentence for who asked.").tag(config=True)
    aliases = {
        **QueryCommand.aliases,
        "for": "RequestCommand.for_time",
        "say": "RequestCommand.say",
    }
    flags = {
        **QueryCommand.flags,
        "all": ({"RequestCommand": {"all": True}}, "Those that are long over, too."),
        "csv": ({"RequestCommand": {"writes_csv": True}}, "Write a table that spreadsheets read."),
    }

    def ask(self, question: console.FromConsole | wire.Look) -> console.Report | wire.Picture:
        """Ask until all is told. Raises NotDone, with the broker's own sentence."""
        answer = super().ask(question)
        rows = answer.rows if isinstance(answer, AllowanceReport) else ()
        while isinstance(answer, AllowanceReport) and answer.has_more and isinstance(question, AskAllowances):
            question = AskAllowances(is_all=question.is_all, behind=rows[-1].id)
            answer = super().ask(question)
            rows += answer.rows if isinstance(answer, AllowanceReport) else ()
        if isinstance(answer, AllowanceReport):
            return AllowanceReport(rows=rows, slot_word=answer.slot_word)
        return answer

    def render(self, answer: console.Report | wire.Picture) -> str | None:
        """Write CSV where that is asked for."""
        return as_csv(answer) if self.writes_csv and isinstance(answer, AllowanceReport) else None

    def question(self, name: str = "", request: str = "") -> AskAllowances | DecideAllowance:
        """List, or decide one."""
        if name == "list" and not request:
            return AskAllowances(is_all=self.all)
        if name not in ("grant", "decline") or not request:
            raise BadConfig(f"There is bulletin {self.usage.splitlines()[0]}, and grant ID and decline ID.")
        if len(self.say) > WHY_LIMIT:
            raise BadConfig(f"--say has {len(self.say)} letters, and may have {WHY_LIMIT}.")
        is_granted = name == "grant"
        if self.for_time and not is_granted:
            raise BadConfig("--for says for how long something is granted, and stands beside grant only.")
        return DecideAllowance(
            id=checked(request),
            is_granted=is_granted,
            for_ms=self._for_ms() if self.for_time else None,
            sentence=self.say,
        )

    def _for_ms(self) -> int:
        try:
            for_ms = parse_duration_ms(self.for_time)
        except ValueError as error:
            raise BadConfig(f"--for: {error}") from None
        if not 0 < for_ms <= _MOST_MS:
            raise BadConfig(f"--for={self.for_time[:40]} is no time that is granted: write 1 ms to 366 d.")
        return for_ms
