"""What is said of a pool, in the same words wherever people read of it."""

from collections.abc import Iterator, Sequence

from bulletin.units import show_duration


def describe_state(state: str, drains_in_ms: int | None) -> str:
    """Add to a slot's state when its node is to be drained, where that is planned: "free, drained in 3 h"."""
    return state if drains_in_ms is None else f"{state}, drained in {show_duration(drains_in_ms)}"


def warn_of_accounts(shared_accounts: Sequence[str]) -> Iterator[str]:
    """Say of each Unix user that people's cells share what that means to them."""
    for account in shared_accounts:
        yield (
            f"All cells run as the Unix user {account!r}: whoever runs one can read and change everything of everybody "
            "else's cells, and of the pool. Admins choose otherwise with Pool.isolation."
        )
