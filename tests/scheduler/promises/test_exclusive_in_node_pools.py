"""A node for oneself (`--exclusive`) where projects are guaranteed GPUs of node pools: nobody waits in vain."""

import pytest

from bulletin.ids import AgentId, SlotId
from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import keeps_all
from tests.scheduler.promises.played import at, node, opens, quotas
from tests.scheduler.promises.seen import HOUR_S, Seen, see

RULES = (
    '[node_pools.big]\ngpu = "A100"\n[projects.lab]\nguaranteed = 4\nnode_pools = { big = 4 }\n'
    "[projects.guests]\nlimit = 12\n"
    '[qos.debug]\npriority = 100\nwalltime = "2 h"\nexclusive = true\nmust_be_in_quota = true\n'
)
ALONE = {"qos": "debug", "is_exclusive": True}
#: A minute and the grace in which a cell that borrows goes.
RECLAIM_S = 95


def nodes_of(seen: Seen, session: str) -> set[str]:
    """Name the nodes that a notebook was given."""
    said = (action for _, _, actions in seen.log for action in actions)
    return {action.agent for action in said if isinstance(action, act.Grant) and action.session == session}


def test_who_is_guaranteed_gpus_of_larger_nodes_alone_is_refused_a_smaller_node_elsewhere() -> None:
    seen = see(
        quotas(RULES), node("large", 8), node("other", 4, "NVIDIA L4"),
        opens(10, "lab", "lab", 300, gpus=4, **ALONE), last=HOUR_S,
    )  # fmt: skip
    [sentence] = seen.refused("lab")
    assert "all that project 'lab' is guaranteed is in node pool 'big'" in sentence
    keeps_all(seen)


@pytest.mark.parametrize("more", ["", " H100"])
def test_one_of_its_size_in_the_pool_is_had_within_the_reclaim_time(more: str) -> None:
    """Whether there is one of that size elsewhere, too, or not."""
    seen = see(
        quotas(RULES), node("large", 8), node("own", 4), [node("other", 4, f"NVIDIA{more}")] if more else [],
        [opens(0, f"g{n}", "guests", HOUR_S, time=HOUR_S) for n in range(12)],
        opens(600, "lab", "lab", 300, gpus=4, time=HOUR_S, **ALONE), last=2 * HOUR_S,
    )  # fmt: skip
    assert seen.wait("lab") <= RECLAIM_S
    assert nodes_of(seen, "lab") == {"own"}
    keeps_all(seen)


def test_a_node_of_two_pools_is_at_home_in_neither() -> None:
    """All that it has is beyond what is guaranteed of one of them."""
    rules = RULES.replace("[projects.lab]", '[node_pools.old]\ngpu = "V100"\n[projects.lab]')
    v100 = tuple(ev.Slot(SlotId(f"v{n}"), "gpu", "NVIDIA V100", 32 * 10**9) for n in range(2))
    mixed = hi.Joins(AgentId("mixed"), (*hi.gpus(2, "NVIDIA A100"), *v100))
    seen = see(
        quotas(rules), node("large", 8), at(0, mixed), opens(10, "lab", "lab", 300, gpus=4, **ALONE), last=HOUR_S,
    )  # fmt: skip
    assert "is guaranteed is in node pool 'big'" in seen.refused("lab")[0]
    keeps_all(seen)
