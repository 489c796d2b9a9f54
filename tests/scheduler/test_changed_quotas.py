"""New quotas hold at once: for who waits, for what can never run under them, and for projects that are no more."""

import msgspec

from gpu_worker.scheduler.actions import Grant
from tests.scheduler.bench import MINUTE, SETTINGS, granted, project, refused, slots
from tests.scheduler.quota_bench import Quotas, changed


def test_new_quotas_hold_at_once_for_who_waits() -> None:
    pool = Quotas(project("lab", limit_milli=1000))
    pool.join("a", slots(3))
    pool.busy("lab.ann")
    assert pool.wants("lab.bob") == pool.wants("lab.cem") == []
    assert granted(changed(pool, project("lab", limit_milli=2000))) == ["lab.bob:1"]
    assert changed(pool, project("lab", limit_milli=1000)) == []
    assert pool.free("lab.ann:1") == []
    assert granted(pool.free("lab.bob:1")) == ["lab.cem:1"]
    pool.replay()


def test_what_can_never_run_under_new_quotas_is_refused_with_its_reason() -> None:
    pool = Quotas()
    pool.join("a", slots(2))
    pool.busy("lab.ann", "lab.bob")
    pool.wants("lab.cem", gpus=2)
    pool.wants("lab.dan", qos="batch")
    pool.wants("lab.eve", walltime_ms=20 * MINUTE)
    quick = (msgspec.structs.replace(SETTINGS.qos[0], walltime_ms=10 * MINUTE),)
    said = refused(changed(pool, project("lab", limit_milli=1000), qos=quick))
    assert said["lab.cem/1"].startswith("2 GPUs were asked for, and project 'lab' may use 1 GPU at most.")
    assert said["lab.dan/1"].startswith("there is no QoS 'batch' in this pool.")
    assert said["lab.eve/1"].startswith("a walltime of 20 min is more than the 10 min that QoS 'interactive' gives.")
    pool.replay()


def test_a_waiting_cell_that_asked_for_no_walltime_gets_that_of_the_new_settings() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("lab.ann")
    pool.wants("lab.bob")
    changed(pool, qos=(msgspec.structs.replace(SETTINGS.qos[0], walltime_ms=10 * MINUTE),))
    grant = pool.free("lab.ann:1")[0]
    assert isinstance(grant, Grant)
    assert grant.walltime_ms == 10 * MINUTE
    pool.replay()


def test_of_projects_that_are_no_more_those_stay_known_that_somebody_used() -> None:
    names = [f"club-{number}" for number in range(50)]
    pool = Quotas(project("club"), *(project(name, parent="club") for name in names))
    pool.join("a", slots(1))
    pool.busy("club-7.ann")
    pool.later(MINUTE)
    changed(pool, project("club"))
    assert set(pool.scheduler.state.accounts.by_id) == {"club", "club-7"}
    assert pool.free("club-7.ann:1") == []
    pool.replay()
