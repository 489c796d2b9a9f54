"""Classes of service and users inside one project: who gives way to whom. Each told step by step."""

import msgspec

from gpu_worker.scheduler.policy.projects import Preemption
from tests.scheduler.bench import MINUTE, SETTINGS, granted, project, slots
from tests.scheduler.quota_bench import Quotas, taken

KEPT = msgspec.structs.replace(SETTINGS.qos[0], name="kept", preemption=Preemption.NEVER)


def test_a_higher_class_does_not_wait_for_a_lower_one_of_its_project() -> None:
    pool = Quotas()
    pool.join("a", slots(2))
    pool.busy("lab.eve", "lab.tom", qos="batch")
    pool.later(MINUTE)
    assert len(taken(pool.ask("lab.ann", project="lab"))) == 1
    pool.replay()


def test_a_higher_class_does_not_wait_for_a_lower_one_that_uses_the_limit_up() -> None:
    pool = Quotas(project("lab", limit_milli=2000))
    pool.join("a", slots(4))
    pool.busy("guests.kim", "lab.eve", "lab.tom", qos="batch")
    pool.later(2 * MINUTE)
    gone = taken(pool.ask("lab.ann", project="lab", user="ann"))
    assert gone in (["lab.eve:1"], ["lab.tom:1"])
    assert granted(pool.free(gone[0])) == ["lab.ann:1"]
    pool.replay()


def test_a_cell_of_the_own_project_goes_only_where_nothing_is_to_be_had_elsewhere() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(2))
    pool.busy("guests.kim")
    pool.later(MINUTE)
    pool.busy("lab.eve", qos="batch")
    pool.later(2 * MINUTE)
    assert taken(pool.ask("lab.ann", project="lab")) == ["guests.kim:1"]
    pool.replay()


def test_a_user_who_has_waited_takes_from_one_who_uses_more_and_from_nobody_else() -> None:
    pool = Quotas()
    pool.join("a", slots(3))
    pool.busy("lab.eve1", "lab.eve2", "lab.tom")
    assert taken(pool.ask("lab.ann", project="lab")) == []
    assert pool.later(2 * MINUTE - 1) == []
    gone = taken(pool.later(1))
    assert gone in (["lab.eve1:1"], ["lab.eve2:1"])
    assert granted(pool.free(gone[0])) == ["lab.ann:1"]
    pool.start("lab.ann:1")
    assert pool.wants("lab.sue") == []
    assert taken(pool.later(5 * MINUTE)) == [], "all of them use one"
    pool.replay()


def test_of_lower_classes_the_lowest_gives_way_first() -> None:
    idle = msgspec.structs.replace(SETTINGS.qos[1], name="idle", priority=0)
    pool = Quotas(project("lab", limit_milli=2000), qos=(*SETTINGS.qos, idle))
    pool.join("a", slots(3))
    pool.busy("lab.tom", qos="idle")
    pool.later(MINUTE)
    pool.busy("lab.eve", qos="batch")
    pool.later(2 * MINUTE)
    assert taken(pool.ask("lab.ann", project="lab")) == ["lab.tom:1"]
    pool.replay()


def test_who_asks_for_two_gpus_takes_no_more_of_a_user_either() -> None:
    pool = Quotas()
    pool.join("a", slots(3))
    pool.busy("lab.eve1", "lab.eve2", "lab.eve3")
    assert taken(pool.ask("lab.ann", project="lab", user="ann", gpus=2)) == []
    assert taken(pool.later(5 * MINUTE)) == [], "eve would use one, and ann two"
    pool.replay()


def test_what_a_user_was_asked_to_give_back_is_not_counted_again() -> None:
    pool = Quotas()
    pool.join("a", slots(3))
    pool.busy("lab.eve1", "lab.eve2", "lab.eve3")
    for name in ("ann", "sue", "tim"):
        assert taken(pool.ask(f"lab.{name}", project="lab", user=name)) == []
    assert len(taken(pool.later(2 * MINUTE))) == 2, "eve keeps one"
    pool.replay()


def test_who_is_in_quota_takes_nothing_of_another_user_for_a_share() -> None:
    pool = Quotas(project("lab", guaranteed_milli=4000), qos=(*SETTINGS.qos, KEPT))
    pool.join("a", slots(4))
    pool.busy("guests.kim", qos="kept")
    pool.busy("lab.eve1", "lab.eve2", "lab.eve3")
    pool.later(MINUTE)
    assert taken(pool.ask("lab.ann", project="lab", user="ann")) == []
    pool.replay()
