"""How long the broker itself stood still: what others said meanwhile waits to be read, and is no silence of theirs."""

#: A broker looks who is silent once a second. One that has not done so for longer than this stood still.
_STOOD_STILL_MS = 3_000


class BrokerPauses:
    """When the broker last looked who is silent."""

    def __init__(self, now_ms: int) -> None:
        self._looked_ms = now_ms

    def take(self, now_ms: int) -> int:
        """Note a look; for how many milliseconds before it nobody was listened to. 0 while the broker goes on."""
        unheard_ms, self._looked_ms = now_ms - self._looked_ms, now_ms
        return unheard_ms if unheard_ms > _STOOD_STILL_MS else 0
