"""Bugs with nodes that users have brought for themselves."""

_UNSEEN = "the page of promises is about what the pool has"

OWN_NODES = (
    (
        "own-slots-for-each-owner",
        "leases/resources.py",
        "SlotKind.serves",
        "slot.owner != self.owner",
        "False",
        "what somebody has brought is for nobody else who has brought something",
        _UNSEEN,
    ),
    (
        "own-slots-for-everybody",
        "nodes/slot_catalog.py",
        "SlotCatalog.make_node",
        "msgspec.structs.replace(slot, owner=owner, milli=0)",
        "msgspec.structs.replace(slot, milli=0)",
        "what somebody has brought is for nobody else",
        _UNSEEN,
    ),
    (
        "own-slots-cost",
        "nodes/slot_catalog.py",
        "SlotCatalog.make_node",
        "msgspec.structs.replace(slot, owner=owner, milli=0)",
        "msgspec.structs.replace(slot, owner=owner)",
        "what somebody has brought costs them nothing",
        _UNSEEN,
    ),
    (
        "own-nodes-show-what-the-pool-has",
        "nodes/slot_catalog.py",
        "SlotCatalog.show",
        "if node.owner:\n    return False",
        "",
        "nobody is told what others have brought",
        _UNSEEN,
    ),
    (
        "own-node-is-waited-for",
        "admission/own_places.py",
        "_settle_one",
        "node is not None or (could_be_own and never is not None)",
        "could_be_own",
        "where the own node has no room, the pool has some",
        _UNSEEN,
    ),
    (
        "own-node-only-where-the-pool-has-room",
        "admission/refusals.py",
        "refusal",
        "never is not None and not _is_for_own_node(state, event, shape, walltime_ms)",
        "never is not None",
        "what the pool could never give runs on the own node",
        _UNSEEN,
    ),
)
