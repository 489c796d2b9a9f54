"""Bugs in how the surplus is shared out."""

SHARING = (
    (
        "share-with-no-wait",
        "reclaim.py",
        "from_ms = request.since_ms + qos.share_after_ms",
        "from_ms = request.since_ms",
        "a share is taken back only after a wait",
    ),
    (
        "share-one-too-many",
        "reclaim.py",
        "self._has[other.name] - self._taken.get(other.name, 0) - victim.cost - max(0, other.guaranteed)",
        "self._has[other.name] - self._taken.get(other.name, 0) - max(0, other.guaranteed)",
        "who takes for a share has no more than the other afterwards",
    ),
    (
        "share-takes-below-share-bit-by-bit",
        "reclaim.py",
        "its = self._has[other.name] - self._taken.get(other.name, 0) -",
        "its = self._has[other.name] -",
        "a cell for two GPUs has no more than the other afterwards either",
    ),
    (
        "share-ignores-weight",
        "reclaim.py",
        "* other.weight <= its * mine.weight",
        "<= its",
        "shares of the surplus are by weight",
    ),
    (
        "share-upwards",
        "reclaim.py",
        "return its >= 0 and mine.priority > other.priority",
        "return its >= 0",
        "nobody takes for a share from a project of more priority",
    ),
    (
        "share-ignores-credits",
        "reclaim.py",
        "if mine.trader.standing_at(now_ms) < other.trader.standing_at(now_ms):",
        "if mine.trader.standing_at(now_ms) < -100:",
        "a share is not taken from who has more credits",
    ),
    (
        "share-taken-back",
        "reclaim.py",
        "if self._request.session in victim.took:",
        "if self._request.id in victim.took:",
        "what was taken for a share is not taken back for one",
    ),
    (
        "share-ignores-class",
        "reclaim.py",
        "if state.qos[self._request.qos].priority < state.qos[victim.qos].priority:",
        "if state.qos[self._request.qos].priority < 0:",
        "a class of less priority takes nothing from one of more",
    ),
)
