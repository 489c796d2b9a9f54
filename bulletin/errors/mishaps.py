"""What happens to a cell without anybody having to act: the notebook is as before it, and it can be run again."""

from bulletin.codes import CellOutcome

from .base_error import BulletinError


class CellLost(BulletinError):
    """Something that the cell ran on went away. The notebook is as before the cell."""

    code = "cell-lost"
    retryable = True

    def __init__(self, cause: str, outcome: CellOutcome | None = None) -> None:
        """Take how the pool says that the cell ended, where it says so."""
        super().__init__(cause)
        self.cause, self.outcome = cause, outcome

    def __str__(self) -> str:
        return f"{self.cause} Your variables are as before the cell; you can run it again."


class CellStopped(KeyboardInterrupt, BulletinError):
    """The user stopped the cell. The notebook is as before the cell."""

    code = "cell-stopped"

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how

    def __str__(self) -> str:
        return f"{self.how} Your variables are as before the cell."
