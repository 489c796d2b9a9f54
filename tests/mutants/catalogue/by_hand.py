"""Bugs in what people change by hand."""

BY_HAND = (
    (
        "held-keeps-its-limit",
        "state.py",
        "State.hold",
        "hold is not None and (not request.entry.key.is_early)",
        "False",
        "what is held takes nothing of a limit from others",
    ),
    (
        "holding-is-a-way-to-the-front",
        "queue/request_queue.py",
        "RequestQueue.due_ms",
        "sum(map(len, user.lines.values())) + aside + user.used // GPU_MILLI",
        "sum(map(len, user.lines.values())) + user.used // GPU_MILLI",
        "who holds requests is put back by them as by others",
    ),
    (
        "first-one-stays-first",
        "state.py",
        "State.put_first",
        "-self.next_seq()",
        "self.next_seq() - (1 << 40)",
        "who was put first later stands before who was put first earlier",
    ),
    (
        "requeue-whatever-it-does",
        "interventions.py",
        "intervene",
        "lease.phase is Phase.BUSY",
        "lease.phase is not Phase.RECLAIMING",
        "only a cell that runs is run again",
    ),
)
