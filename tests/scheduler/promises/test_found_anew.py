"""Who is next, and for whom somebody may have to leave, is found anew when others of a department change it."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, keeps_all
from tests.scheduler.promises.seen import HOUR_S, at, nodes
from tests.scheduler.promises.stories import BATCH_S, H100, L4, LONG, POOL, ask, look, quotas, waits

#: A class whose cells are never taken back, also from who borrows, and one in which nobody takes for a share.
STAYS = '[qos.stays]\nwalltime = "1 d"\npreemption = "never"\nshare_after = "1 d"\n'
#: Nobody takes for a share in the others, either.
NO_SHARES = STAYS + "".join(
    f'[qos.{name}]\nshare_after = "1 d"\n' for name in ("interactive", "batch", "long", "reserved")
)
#: Two in a department.
INSIDE = '[projects.lab]\nparent = "dep"\n[projects.group]\nparent = "dep"\n'


def types(fast: int, slow: int) -> list[hi.At]:
    """Make nodes of H100 and of L4."""
    offers = (("fast", fast, H100), ("slow", slow, L4))
    return [at(0, hi.Joins(AgentId(name), hi.gpus(number, gpu))) for name, number, gpu in offers]


def test_what_a_limit_keeps_for_who_has_waited_is_kept_from_others_inside_at_once() -> None:
    """A node is to be drained, until it is not. Then a cell of others begins there, and the lab's could, too."""
    quick = '[qos.quick]\nwalltime = "1 d"\npatience = "10 min"\nshare_after = "1 d"\n'
    seen = look(
        quotas(f"[projects.dep]\nlimit = 2\n{INSIDE}[projects.first]\npriority = 5\n{quick}{NO_SHARES}"),
        [*nodes(1, 1), at(0.1, hi.Joins(AgentId("later"), hi.gpus(2)))],
        at(0.5, hi.PlansDrain(AgentId("later"), 3_000_000)),
        ask(2, 1, "group", 2000, name="its", qos="stays", closes_ms=0),
        ask(50, 1, "first", 60, qos="quick", closes_ms=0),
        ask(100, 1, "group", 900, name="large", gpus=2, qos="quick"),
        ask(200, 1, "lab", 4 * HOUR_S, **LONG),
        at(1500, hi.Drains(AgentId("later"), is_drained=False)),
        last=2 * HOUR_S,
    )
    assert seen.granted("first0") == 1500
    assert seen.granted("large0") <= 2002
    keeps_all(seen)


def test_who_no_longer_fits_the_budget_of_the_department_is_in_nobodys_way() -> None:
    """Two GPUs are free at once; the budget is enough for one of the two in the department."""
    seen = look(
        quotas(f'[projects.dep]\nbudget = "1 GPU-hours per day"\npriority = 5\n{INSIDE}'),
        nodes(1, 2),
        at(0.5, hi.Drains(AgentId("n0"), is_drained=True)),
        ask(1, 1, "group", 900, walltime_ms=2_400_000, qos="batch"),
        ask(2, 1, "lab", 900, walltime_ms=2_400_000, qos="batch"),
        ask(3, 1, "guests", BATCH_S, **LONG),
        at(60, hi.Drains(AgentId("n0"), is_drained=False)),
        last=HOUR_S,
    )
    assert waits(seen, "group") == [59]
    assert waits(seen, "guests") == [57]


def test_a_home_that_another_one_of_the_department_has_is_no_right_to_be_first() -> None:
    """Two H100 are free at once: one is the department's home, and who borrows the other one is not of it."""
    owners = f"[projects.dep]\nnode_pools = {{ h100 = 1 }}\n{INSIDE}[projects.club]\npriority = 5\n"
    seen = look(
        quotas(POOL + owners),
        types(2, 8),
        at(0.5, hi.Drains(AgentId("fast"), is_drained=True)),
        ask(0.9, 1, "dep", 900, gpu_type="L4"),
        ask(1, 1, "group", 900, gpu_type="H100"),
        ask(2, 1, "lab", 900, gpu_type="H100"),
        ask(3, 1, "club", 900, gpu_type="H100"),
        at(60, hi.Drains(AgentId("fast"), is_drained=False)),
        last=HOUR_S,
    )
    assert waits(seen, "group") == [59]
    assert waits(seen, "club") == [57]


def test_what_another_user_leaves_of_a_guarantee_is_taken_up_whoever_waits_before() -> None:
    """One H100 is borrowed. The owner's large cell needs both, and one stays; the lab uses its guarantee until 700."""
    seen = look(
        quotas(f"[projects.owner]\nguaranteed = 2\n[projects.lab]\nguaranteed = 1\n{NO_SHARES}"),
        types(2, 1),
        ask(1, 1, "guests", 10 * HOUR_S, name="stays", gpu_type="H100", qos="stays"),
        ask(2, 1, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(3, 1, "lab", 697, name="first", gpu_type="L4", closes_ms=0),
        ask(100, 1, "owner", 900, gpu_type="H100", gpus=2),
        ask(200, 1, "lab", 900, name="second", gpu_type="H100", **LONG),
        last=HOUR_S,
    )
    assert seen.granted("second0") <= 700 + SOON_S
    keeps_all(seen)


def test_a_higher_class_has_a_cell_of_its_project_go_whoever_waits_before_and_beside() -> None:
    seen = look(
        quotas(f"[projects.owner]\nguaranteed = 2\n{NO_SHARES}"),
        nodes(1, 2),
        ask(1, 1, "guests", 10 * HOUR_S, qos="stays"),
        ask(2, 1, "lab", BATCH_S, name="batch", **LONG),
        ask(100, 1, "owner", 900, gpus=2),
        ask(200, 1, "lab", 900, name="other", **LONG),
        ask(700, 1, "lab", 900, name="typed"),
        last=HOUR_S,
    )
    assert waits(seen, "typed") <= [SOON_S]
    keeps_all(seen)
