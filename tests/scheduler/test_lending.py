"""Lending limits: what others may use of an unused guarantee, and what stays free for whom. Each told step by step."""

from tests.scheduler.bench import MINUTE, evicted, granted, project, reclaimed, slots
from tests.scheduler.quota_bench import Quotas, changed


def test_who_borrows_leaves_what_a_lender_keeps() -> None:
    pool = Quotas(project("lab", guaranteed_milli=3000, lending_limit_milli=1000))
    pool.join("a", slots(4))
    pool.busy("guests.eve", "guests.tom")
    assert pool.wants("club.kim") == []
    assert pool.why("club.kim/1").reason == "2 GPUs are kept for projects that lend no more"
    pool.busy("lab.ann")
    assert pool.why("club.kim/1").reason == "1 GPU is kept for projects that lend no more"
    pool.busy("lab.bob")
    assert pool.why("club.kim/1").reason == "all 4 GPUs are busy"  # what is lent already is lent
    assert granted(pool.free("guests.eve:1")) == ["club.kim:1"]
    pool.replay()


def test_what_a_lender_gives_back_is_kept_again() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000, lending_limit_milli=0))
    pool.join("a", slots(2))
    pool.busy("lab.ann", "guests.eve")
    assert pool.wants("guests.tom") == []
    assert pool.free("lab.ann:1") == []
    assert pool.why("guests.tom/1").reason == "1 GPU is kept for projects that lend no more"
    assert pool.wants("lab.bob") == ["lab.bob:1"]  # at once, and nobody has to give anything back
    assert granted(pool.free("guests.eve:1")) == ["guests.tom:1"]
    pool.replay()


def test_without_a_limit_all_of_it_is_lent() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(2))
    pool.busy("guests.eve", "guests.tom")
    pool.replay()


def test_what_is_kept_is_for_all_in_the_project_and_what_is_inside() -> None:
    pool = Quotas(
        project("school", guaranteed_milli=2000, lending_limit_milli=0),
        project("maths", "school"),
        project("physics", "school"),
    )
    pool.join("a", slots(3))
    pool.busy("maths.ann", "physics.bob")
    assert pool.wants("maths.cem") == ["maths.cem:1"]
    pool.replay()


def test_what_a_project_keeps_is_kept_from_its_siblings_and_from_all_outside() -> None:
    pool = Quotas(
        project("school", guaranteed_milli=2000),
        project("maths", "school", guaranteed_milli=1000, lending_limit_milli=0),
        project("physics", "school"),
    )
    pool.join("a", slots(3))
    pool.busy("guests.eve", "physics.bob")
    kept = "1 GPU is kept for projects that lend no more"
    for session in ("physics.cem", "guests.tom"):
        assert pool.wants(session) == []
        assert pool.why(f"{session}/1").reason.endswith(kept)
    assert pool.wants("maths.ann") == ["maths.ann:1"]
    pool.replay()


def test_who_is_in_quota_is_not_held_back_by_what_others_keep() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000, lending_limit_milli=0), project("chair", guaranteed_milli=1000))
    pool.join("a", slots(2))
    pool.busy("guests.eve")
    assert pool.wants("chair.ann") == ["chair.ann:1"]
    pool.start("chair.ann:1")
    pool.later(5 * MINUTE)
    assert list(reclaimed(pool.ask("lab.bob", project="lab"))) == ["guests.eve:1"]
    pool.replay()


def test_parts_of_a_project_take_back_its_guarantee_whatever_one_of_them_keeps() -> None:
    pool = Quotas(
        project("school", guaranteed_milli=3000),
        project("maths", "school", guaranteed_milli=1000),
        project("physics", "school"),
    )
    pool.join("a", slots(3))
    pool.busy("guests.eve", "guests.tom", "guests.kim")
    pool.later(5 * MINUTE)
    changed(
        pool,
        project("school", guaranteed_milli=3000),
        project("maths", "school", guaranteed_milli=1000, lending_limit_milli=0),
        project("physics", "school"),
    )
    assert len(reclaimed(pool.ask("physics.ann", project="physics"))) == 2  # what maths keeps is to be free then
    assert len(reclaimed(pool.ask("physics.bob", project="physics"))) == 1
    assert len(reclaimed(pool.ask("physics.cem", project="physics"))) == 0
    pool.replay()


def test_a_cell_on_more_gpus_leaves_what_is_kept_too() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000, lending_limit_milli=1000))
    pool.join("a", slots(4))
    pool.busy("guests.eve")
    assert pool.wants("guests.tom", gpus=3) == []
    assert pool.wants("guests.kim", gpus=2) == ["guests.kim:1"]
    pool.replay()


def test_what_a_project_keeps_is_there_for_its_own_cell_that_needs_more() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000, lending_limit_milli=0))
    pool.join("a", slots(3))
    assert pool.wants("lab.ann", gpus=3) == ["lab.ann:1"]
    pool.replay()


def test_a_hot_session_makes_room_only_for_who_leaves_what_is_kept() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000, lending_limit_milli=0))
    pool.join("a", slots(2))
    pool.busy("guests.eve")
    pool.run("kim", project="lab", user="kim")
    assert evicted(pool.ask("guests.tom", project="guests", user="tom")) == []
    assert evicted(pool.ask("lab.ann", project="lab", user="ann")) == ["kim:1"]
    pool.replay()


def test_a_lost_node_takes_nothing_of_what_is_kept() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000, lending_limit_milli=0))
    pool.join("a", slots(1))
    pool.join("b", slots(2))
    pool.busy("guests.eve")
    pool.lose("b")
    assert pool.wants("guests.tom") == []
    assert granted(pool.join("b", slots(2))) == ["guests.tom:1"]
    pool.replay()


def test_a_drained_node_has_nothing_of_what_is_kept_but_what_still_runs_there_is_in_nobodys_way() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000, lending_limit_milli=0))
    pool.join("a", slots(2))
    pool.join("b", slots(2))
    pool.busy("guests.eve")
    pool.drain("b")
    assert pool.wants("guests.tom") == []
    assert pool.why("guests.tom/1").reason.startswith("1 GPU is kept for projects that lend no more")
    pool.drain("a")
    assert granted(pool.drain("b", undo=True)) == ["guests.tom:1"]
    pool.start("guests.tom:1")
    assert pool.wants("guests.kim") == []
    assert pool.free("guests.eve:1") == []
    assert granted(pool.drain("a", undo=True)) == ["guests.kim:1"]
    pool.replay()


def test_cpu_cells_beside_gpus_are_not_held_back() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000, lending_limit_milli=0))
    pool.join("a", slots(1) + slots(1, "cpu"))
    assert pool.wants("guests.eve") == []
    assert pool.wants("guests.tom", gpus=0) == ["guests.tom:1"]
    pool.replay()


def test_new_limits_hold_at_once() -> None:
    lab = project("lab", guaranteed_milli=1000, lending_limit_milli=0)
    pool = Quotas(lab)
    pool.join("a", slots(1))
    assert pool.wants("guests.eve") == []
    assert granted(changed(pool, project("lab", guaranteed_milli=1000))) == ["guests.eve:1"]
    pool.free("guests.eve:1")
    changed(pool, lab)
    assert pool.wants("guests.eve", n=2) == []
    pool.replay()
