"""What somebody asked for beyond the rules, as the ledger keeps it."""

import msgspec

from bulletin.ids import ProjectId, UserName
from bulletin.wire.messages.allowance_requests import AllowanceState
from gpu_worker.broker.allowance_limits import AllowanceTerms


class AllowanceNote(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger keeps of one, once for each thing that happens to it. In milliseconds since 1970, UTC."""

    id: str
    user: UserName
    project: ProjectId
    walltime_ms: int | None
    gpus: int | None
    is_exclusive: bool = False
    budget_ms: int | None = None
    budget_of: str = ""
    for_ms: int
    why: str
    asked_at_ms: int
    state: AllowanceState = "open"
    by: str = ""
    sentence: str = ""
    decided_at_ms: int | None = None
    until_ms: int | None = None
    #: The project's rules granted it. None: an older broker kept it, which knew that until somebody ended it.
    is_by_rule: bool | None = None

    @property
    def was_granted_at_once(self) -> bool:
        """Whether the project's rules granted it, and no person: also when it is over."""
        return bool(self.until_ms and not self.by) if self.is_by_rule is None else self.is_by_rule

    @property
    def taken_at_ms(self) -> int | None:
        """When somebody else ended what its user had; None is never."""
        return self.decided_at_ms if self.state == "over" and self.by != self.user else None

    @property
    def wanted(self) -> AllowanceTerms:
        """What is asked for, and for how long."""
        return AllowanceTerms(
            walltime_ms=self.walltime_ms,
            gpus=self.gpus,
            for_ms=self.for_ms,
            is_exclusive=self.is_exclusive,
            budget_ms=self.budget_ms,
        )

    @property
    def place(self) -> ProjectId:
        """The project whose rules it goes beyond: that in which it was asked for, or whose budget it is."""
        return ProjectId(self.budget_of) if self.budget_of else self.project
