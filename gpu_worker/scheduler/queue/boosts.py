"""Whose requests an admin wants before those of the project's other users, and until when."""

from gpu_worker.scheduler.queue.patience import Owner


class Boosts:
    """Users of projects, each with the end of the boost, in the time of the scheduler's steps."""

    def __init__(self) -> None:
        self.until_ms: dict[Owner, int] = {}

    @property
    def next_ms(self) -> int | None:
        """When the next one ends; None is never."""
        return min(self.until_ms.values(), default=None)

    def set(self, owner: Owner, until_ms: int, now_ms: int) -> bool:
        """Boost a user until then, or no longer where that has passed; whether the user is boosted now."""
        if until_ms > now_ms:
            self.until_ms[owner] = until_ms
        else:
            self.until_ms.pop(owner, None)
        return owner in self.until_ms

    def pop_over(self, now_ms: int) -> list[Owner]:
        """Take out the users whose boost is over."""
        over = [owner for owner, until_ms in self.until_ms.items() if until_ms <= now_ms]
        for owner in over:
            del self.until_ms[owner]
        return over
