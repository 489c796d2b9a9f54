"""When to look again although nothing happens: what a step's questions find that time alone will change."""

import msgspec


def share_interval_ms(every_ms: int, waiting: int) -> int:
    """Compute how often shares are looked at while so many wait: more rarely where that takes long, in a long line."""
    return every_ms * max(1, waiting // 1000)


class Wakeups(msgspec.Struct):
    """When the next step is due, and whether this one looks at shares: that takes every node, so it is rare."""

    next_ms: int | None = None  #: when to look again; None is never
    _shares_from_ms: int = 0
    is_for_shares: bool = True  #: whether this step looks at shares
    _has_shared: bool = False

    def begin(self, now_ms: int) -> None:
        """Forget the last step's questions: a step begins."""
        self.next_ms = None
        self.is_for_shares, self._has_shared = now_ms >= self._shares_from_ms, False

    def end(self, now_ms: int, share_every_ms: int) -> None:
        """End the step. One that looked at shares is the last one to do so for a while."""
        if self.is_for_shares and self._has_shared:
            self._shares_from_ms = now_ms + share_every_ms

    def note_share(self, from_ms: int, now_ms: int, share_every_ms: int) -> None:
        """Somebody who was not looked at may take for a share from this time on."""
        at_ms = max(from_ms, self._shares_from_ms)
        self.note(at_ms if at_ms > now_ms else now_ms + share_every_ms)

    def note(self, at_ms: int) -> None:
        """At this time something will be otherwise."""
        self.next_ms = at_ms if self.next_ms is None else min(at_ms, self.next_ms)

    def ask_for_shares(self) -> bool:
        """Whether this step does. Somebody asks who has waited for a share."""
        self._has_shared = True
        return self.is_for_shares
