"""Errors about which whoever runs the pool must do something."""

from bulletin.codes import RefusalCode

from .base_error import BulletinError


class BadConfig(BulletinError):
    """A setting, a file or a database that cannot be used. For the operator."""

    code = "bad-config"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


class LedgerAway(BulletinError):
    """The ledger's database does not answer, or its disk is full. What was told to the ledger before is kept."""

    code = RefusalCode.LEDGER_AWAY
    retryable = True

    def __init__(self, database: str, problem: str) -> None:
        super().__init__(database, problem)
        self.database, self.problem = database, problem

    def __str__(self) -> str:
        if self.database.startswith("sqlite:"):
            return (
                f"The ledger at {self.database} cannot be used now: {self.problem}. Nothing that it was told is lost; "
                "see that its disk has room and works."
            )
        return (
            f"The ledger at {self.database} does not answer: {self.problem}. "
            "Nothing that it was told is lost; start its server again."
        )
