"""Bugs of ours. Deliberately not BulletinErrors: nobody catches them by that name."""


class IllegalMove(RuntimeError):
    """A life took a step that its table does not have: a bug of ours."""

    def __init__(self, was: str, to: str) -> None:
        super().__init__(was, to)
        self.was, self.to = was, to

    def __str__(self) -> str:
        return f"a move from {self.was} to {self.to} is not in the table"


class InvariantBroken(RuntimeError):
    """A promise or an index of the scheduler does not hold: a bug of ours."""
