"""The surplus is shared also while it is all in use: who has less of it takes back, after a wait, from who has more."""

import msgspec

from gpu_worker.scheduler.policy.projects import Preemption, Project
from tests.scheduler.bench import MINUTE, SETTINGS, granted, project, reclaimed, slots
from tests.scheduler.quota_bench import Quotas, changed

WAIT = 2 * MINUTE


def crowded(number: int, *projects: Project) -> Quotas:
    """A node whose GPUs all run cells of guests, the first of them the youngest."""
    pool = Quotas(*projects)
    pool.join("a", slots(number))
    for one in reversed(range(number)):
        pool.later(MINUTE)
        pool.busy(f"guests.{one}")
    pool.later(5 * MINUTE)
    return pool


def asks(pool: Quotas, name: str, number: int) -> list[str]:
    """So many sessions of a project ask; which of the guests' cells are reclaimed once they have waited."""
    first = reclaimed(pool.ask(f"{name}.0", project=name))
    for one in range(1, number):
        first |= reclaimed(pool.ask(f"{name}.{one}", project=name))
    assert first == {}
    return sorted(reclaimed(pool.later(WAIT)))


def test_half_of_the_pool_comes_back_from_one_who_has_all_of_it() -> None:
    pool = crowded(4)
    assert asks(pool, "lab", 4) == ["guests.0:1", "guests.1:1"]
    assert granted(pool.free("guests.0:1")) == ["lab.0:1"]
    pool.replay()


def test_of_two_nodes_the_one_whose_cell_is_younger_gives_it_back_whatever_the_cells_are_called() -> None:
    for number in range(12):  # cells are looked at by their names, in an order that no two runs have
        pool = Quotas()
        for agent in ("a", "b"):
            pool.join(agent, slots(1))
        pool.busy(f"guests.old{number}")
        pool.later(MINUTE)
        pool.busy(f"guests.young{number}")
        pool.later(5 * MINUTE)
        assert asks(pool, "lab", 1) == [f"guests.young{number}:1"]


def test_nothing_is_taken_before_the_wait_is_over() -> None:
    pool = crowded(2)
    pool.ask("lab.0", project="lab")
    assert reclaimed(pool.later(WAIT - 1)) == {}
    assert pool.scheduler.deadline() == pool.now_ms + 1
    assert reclaimed(pool.later(1)) == {"guests.0:1": 20_000}


def test_one_gpu_goes_back_and_forth_between_nobody() -> None:
    pool = crowded(1)
    assert asks(pool, "lab", 2) == []


def test_of_three_gpus_the_newcomer_gets_one() -> None:
    pool = crowded(3)
    assert asks(pool, "lab", 3) == ["guests.0:1"]


def test_weights_three_to_one_share_three_to_one() -> None:
    pool = crowded(4, project("lab", weight=3), project("guests"))
    assert asks(pool, "lab", 4) == ["guests.0:1", "guests.1:1", "guests.2:1"]


def test_the_higher_project_takes_all_and_the_lower_one_takes_nothing_back() -> None:
    pool = crowded(2, project("lab", priority=1), project("guests"))
    assert asks(pool, "lab", 2) == ["guests.0:1", "guests.1:1"]
    low = crowded(2, project("guests", priority=1), project("lab"))
    assert asks(low, "lab", 2) == []


def test_nothing_is_taken_below_a_guarantee() -> None:
    pool = crowded(4, project("guests", guaranteed_milli=3000))
    assert asks(pool, "lab", 4) == []


def test_a_guarantee_that_is_in_use_is_no_part_of_what_is_compared() -> None:
    pool = crowded(5, project("guests", guaranteed_milli=1000))
    assert asks(pool, "lab", 4) == ["guests.0:1", "guests.1:1"]


def test_who_has_more_credits_is_not_taken_from() -> None:
    pool = Quotas(project("guests", guaranteed_milli=2000), project("lab"))
    pool.join("a", slots(2))
    pool.busy("lab.a"), pool.busy("lab.b")
    pool.later(600 * MINUTE)
    for name in ("lab.a", "lab.b"):
        pool.end(f"{name}:1")
    changed(pool, project("guests"), project("lab"))
    pool.ask("guests.0", project="guests"), pool.free("lab.a:1"), pool.start("guests.0:1")
    pool.ask("guests.1", project="guests"), pool.free("lab.b:1"), pool.start("guests.1:1")
    pool.later(5 * MINUTE)
    assert asks(pool, "lab", 1) == []


def test_what_was_taken_is_not_taken_back_although_the_world_has_changed() -> None:
    pool = crowded(3)
    assert asks(pool, "lab", 3) == ["guests.0:1"]
    assert granted(pool.free("guests.0:1")) == ["lab.0:1"]
    for one in (1, 2):
        pool.end(f"guests.{one}:1")
        assert granted(pool.free(f"guests.{one}:1")) == [f"lab.{one}:1"]
        pool.start(f"lab.{one}:1")
    pool.later(MINUTE // 2)
    pool.start("lab.0:1")  # the youngest, which would be the first to go
    pool.ask("guests.0", n=2, project="guests")
    assert reclaimed(pool.later(WAIT)) == {"lab.1:1": 20_000}
    pool.replay()


def test_two_cells_are_not_taken_where_one_share_is_missing() -> None:
    pool = crowded(3)
    pool.ask("lab.0", project="lab")
    pool.ask("choir.0", project="choir")
    assert sorted(reclaimed(pool.later(WAIT))) == ["guests.0:1", "guests.1:1"]
    pool.ask("band.0", project="band")
    assert reclaimed(pool.later(WAIT)) == {"guests.0:1": 0, "guests.1:1": 0}  # asked again, and nobody else


def test_a_class_of_less_priority_takes_nothing_from_one_of_more() -> None:
    pool = crowded(2)
    pool.ask("lab.0", project="lab", qos="batch")
    assert reclaimed(pool.later(10 * WAIT)) == {}


def test_what_is_never_preempted_is_not_shared_out() -> None:
    qos = tuple(msgspec.structs.replace(one, preemption=Preemption.NEVER) for one in SETTINGS.qos)
    pool = crowded(2)
    changed(pool, qos=qos)
    assert asks(pool, "lab", 1) == []


def test_parts_of_a_department_share_what_it_has_before_others_are_asked() -> None:
    parts = (project("science"), project("maths", parent="science"), project("lab", parent="science"))
    pool = Quotas(*parts)
    pool.join("a", slots(4))
    for one in range(2):
        pool.busy(f"guests.{one}")
        pool.busy(f"maths.{one}")
    pool.later(10 * MINUTE)
    pool.ask("lab.0", project="lab")
    assert sorted(reclaimed(pool.later(WAIT))) in (["maths.0:1"], ["maths.1:1"])
    pool.replay()


def test_users_of_one_project_take_nothing_from_each_other() -> None:
    pool = crowded(2)
    assert asks(pool, "guests", 1) == []


def test_a_cell_for_two_gpus_has_no_more_than_the_other_afterwards_either() -> None:
    pool = crowded(3)
    pool.ask("lab.0", project="lab", gpus=2)
    assert reclaimed(pool.later(WAIT)) == {}
    wide = crowded(4)
    wide.ask("lab.0", project="lab", gpus=2)
    assert sorted(reclaimed(wide.later(WAIT))) == ["guests.0:1", "guests.1:1"]
