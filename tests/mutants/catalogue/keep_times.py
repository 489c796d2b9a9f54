"""Bugs in how long hot sessions keep their GPU from those who borrow."""

KEEP_TIMES = (
    (
        "covered-waits-for-keep-time",
        "placement/keep_time.py",
        "kept_from_until_ms",
        "any(branch.covers(cost) for branch in mine)",
        "False",
        "who is covered by a guarantee has its GPUs within the reclaim time",
    ),
    (
        "kept-beyond-the-guarantee",
        "placement/keep_time.py",
        "_find_kept",
        "lease.cost <= room",
        "True",
        "no more sessions are kept than the guarantee has room for",
    ),
    (
        "keep-time-never-ends",
        "placement/keep_time.py",
        "_find_kept",
        "lease.since_ms + keep_ms <= now_ms",
        "False",
        "after its keep time a session leaves for whoever wants its GPU",
    ),
    (
        "keep-time-unseen-by-the-timer",
        "placement/keep_time.py",
        "is_kept_from",
        "state.wakeups.note(until_ms)",
        "pass",
        "when a keep time is over, that is noticed though nothing happens",
    ),
    (
        "first-come-is-kept",
        "placement/keep_time.py",
        "_find_kept",
        "reversed(account.hot)",
        "list(account.hot)",
        "kept are the sessions that were used last",
    ),
    (
        "kept-ones-go-like-others",
        "placement/places.py",
        "_last_used",
        "[kept, far, *(lease.used for lease in reversed(place.victims))]",
        "[far, *(lease.used for lease in reversed(place.victims))]",
        "who is covered takes the place of a session that is not kept first",
    ),
)
