"""Bugs in what one cell of a project may ask for."""

CELL_RULES = (
    (
        "rules-of-cells-not-inherited",
        "admission/cell_rules.py",
        "cell_rules",
        "account.path",
        "[account]",
        "what a project does not say is said by the one that it is in",
    ),
    (
        "any-class-for-any-project",
        "admission/cell_rules.py",
        "forbidden",
        "rules.qos is not None and qos.name not in rules.qos",
        "False",
        "a project uses the classes of service that it may",
    ),
    (
        "the-class-gives-what-the-project-does-not",
        "admission/cell_rules.py",
        "longest_walltime_ms",
        "min(own_ms, qos.walltime_ms)",
        "qos.walltime_ms",
        "a cell that does not ask runs no longer than its project lets it",
    ),
    (
        "gpus-per-cell-of-classes-not-counted",
        "admission/cell_rules.py",
        "forbidden",
        "shape.need > qos.gpus_per_cell",
        "False",
        "a cell has no more GPUs than its class of service lets it",
    ),
    (
        "waiting-cells-keep-old-rules",
        "admission/refusals.py",
        "outdated",
        "forbidden(accounts, request.project, qos, shape, walltime_ms)",
        "None",
        "who waits and may not run any more is refused",
    ),
)
