"""Bugs in what is guaranteed of node pools."""

NODE_POOLS = (
    (
        "pools-take-nothing-back",
        "placement/reclaim.py",
        "VictimSelection.right_to",
        "lease.pool in self._pools and self._has_pool_right(lease)",
        "False",
        "what is guaranteed in a pool is taken back also from who is in quota",
    ),
    (
        "pool-covers-after-all-others",
        "accounts/coverage.py",
        "Coverage._precedence",
        "self._pools and self.owns(lease)",
        "False",
        "who comes home has borrowed what it has elsewhere",
    ),
    (
        "pools-forget-who-is-ahead",
        "placement/queue_walk.py",
        "QueueWalk._use",
        "self._state.pools.use(pool, *user, cost, sign)",
        "",
        "no more of a pool is taken back than is guaranteed there",
    ),
    (
        "all-pay-for-a-lost-pool",
        "accounts/node_pools.py",
        "NodePools.offer",
        "projects.lose(self._missing())",
        "",
        "nodes that are gone cost those alone that are guaranteed their pool",
    ),
    (
        "others-go-there-first",
        "accounts/node_pools.py",
        "NodePools.distance",
        "1 if not pool else 0 if self._covers(pool, account.project.id, shape.cost) else 2",
        "0",
        "cells go home first, and others go there last",
    ),
)
