"""Bugs in what is guaranteed at which hour."""

HOURS = (
    (
        "class-hours-begin-late",
        "class_hours.py",
        "self.from_minute * MINUTE_MS <= in_day_ms",
        "self.from_minute * MINUTE_MS < in_day_ms",
        "class hours begin when the clock shows it, to the millisecond",
    ),
    (
        "clocks-are-never-set",
        "class_hours.py",
        "if number else now_ms), until_ms, ahead_ms",
        "if number else now_ms), until_ms, self.offsets[0][1]",
        "class hours are by the clock on the wall, in summer as in winter",
    ),
    (
        "class-hours-for-ever",
        "class_hours.py",
        "(self.last_day is None or day <= self.last_day) and ",
        "",
        "class hours end with their last day",
    ),
    (
        "the-smaller-window-counts",
        "class_hours.py",
        "max((one.guaranteed_milli for one in hours if one.is_on(now_ms)), default=0)",
        "min((one.guaranteed_milli for one in hours if one.is_on(now_ms)), default=0)",
        "where two windows overlap, the larger one counts",
    ),
    (
        "nobody-wakes-for-class-hours",
        "machine.py",
        "state.accounts.turns_ms, *state",
        "*state",
        "who waits in class takes GPUs back when class hours begin, whatever else happens",
    ),
    (
        "waits-for-hours-that-are-over",
        "machine.py",
        "for request in list(state.pending.values()):\n            reason = self._never_allowed",
        "for request in []:\n            reason = self._never_allowed",
        "who could run in class hours alone is refused when the last of them are over",
    ),
    (
        "refused-before-class-hours",
        "machine.py",
        "at.must_cover and cost > at.most",
        "at.must_cover and cost > at.guaranteed",
        "what could run in class hours waits for them",
    ),
    (
        "static-quota-refused-before-class-hours",
        "accounts.py",
        "self.project.can_borrow else self.most",
        "self.project.can_borrow else self.guaranteed  # not most",
        "what a project that never borrows may run in class hours waits for them",
    ),
    (
        "class-hours-cover-nothing-more",
        "coverage.py",
        "elif state.accounts.turns != self._turns:",
        "elif state.accounts.turns < self._turns:",
        "what runs when class hours begin is in quota then, and borrowed when they end",
    ),
    (
        "class-hours-earn-nothing",
        "accounts.py",
        "account.trader.change(account.used - account.guaranteed, self.now_ms)",
        "account.trader.change(account.used - account.usual, self.now_ms)",
        "what is lent of class hours earns credits",
    ),
)
