"""Everyday stories of a site, against what its people may expect by the page on promises alone, in seconds and GPUs."""

from collections.abc import Callable

from bulletin.ids import ProjectId
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S
from tests.scheduler.promises.site_books import Site, play_site
from tests.scheduler.promises.site_claims import claims
from tests.scheduler.promises.site_report import history_of
from tests.scheduler.promises.site_stories import STORIES
from tests.scheduler.promises.stories import H100
from tests.scheduler.promises.tree import Side

#: What is left of a borrower's first minute, the grace, and what processes take: nobody is owed anything for longer.
RECLAIM_S = 60 + 30 + 6
#: The grace alone, where borrowers have run for a minute.
GRACE_S = 30 + 6


def _play(name: str, watch: Callable[[Site], set[str]] = lambda _: set()) -> Site:
    return play_site(history_of(STORIES[name]()), lambda site: site.owed() | site.idling() | watch(site))


def test_a_lecture_gets_what_it_is_guaranteed_from_labs_that_borrowed_everything() -> None:
    site = _play("lecture")
    assert site.longest("owed") <= RECLAIM_S
    assert site.longest("idle") <= GRACE_S
    assert site.losses("student") == []


def test_three_courses_each_within_its_guarantee_lose_nothing_the_night_before_a_deadline() -> None:
    site = _play("deadline", claims)
    assert site.longest("claim") <= RECLAIM_S
    assert site.longest("owed") <= RECLAIM_S
    assert site.waits("night")[-1] <= RECLAIM_S
    assert site.losses("night") == []


def test_members_of_a_lab_do_not_wait_for_its_own_batch() -> None:
    site = _play("batch_lab")
    assert site.waits("member")[-1] <= RECLAIM_S
    assert site.losses("member") == []
    assert site.waited_idle_s <= 0.01 * 16 * HOUR_S


def test_one_who_sweeps_leaves_the_others_their_part() -> None:
    """Twenty who type for a third of their time want fewer than twelve GPUs: each waits for a share, at most."""
    site = _play("sweep")
    assert site.waits("student")[-1] <= 2 * MINUTE_S + RECLAIM_S
    assert site.losses("student") == []


def test_sixteen_groups_have_a_whole_node_each_within_the_grace() -> None:
    site = _play("whole_nodes")
    assert site.waits("whole")[-1] <= GRACE_S


def test_a_course_has_its_part_of_what_is_left_when_nodes_die_and_come_back() -> None:
    site = _play("node_dies", claims)
    assert site.longest("claim") <= RECLAIM_S
    assert site.longest("owed") <= RECLAIM_S
    assert site.longest("idle") <= GRACE_S


def test_an_exam_has_what_is_reserved_for_it() -> None:
    def lacking(site: Site) -> set[str]:
        is_on = 30 * MINUTE_S <= site.now < 60 * MINUTE_S
        used = sum(held.is_busy for held in site.held.values() if held.asked.event.session.startswith("exam"))
        waits = any(one.event.session.startswith("exam") for one in site.waiting.values())
        return {"owed to the exam"} if is_on and waits and used < 20 else set()

    site = _play("exam", lacking)
    assert site.longest("owed") <= RECLAIM_S
    assert site.losses("exam") == []


def test_a_course_comes_back_from_a_weekend_that_was_lent() -> None:
    site = _play("weekend")
    assert site.longest("owed") <= RECLAIM_S
    assert site.waits("student")[-1] <= RECLAIM_S
    assert site.losses("student") == []


def test_two_courses_have_the_same_gpus_one_after_the_other() -> None:
    site = _play("two_lectures")
    assert site.longest("owed") <= RECLAIM_S


def test_a_lab_has_the_node_that_it_bought() -> None:
    def away(site: Site) -> set[str]:
        home = [held for held in site.held.values() if held.is_busy and site.types[held.node] == H100]
        used = sum(held.asked.event.project == "vision" for held in home)
        waits = any(one.event.project == "vision" for one in site.waiting.values())
        return {"away from home"} if waits and used < 6 else set()

    site = _play("bought", away)
    assert site.longest("away") <= RECLAIM_S
    assert site.longest("owed") <= RECLAIM_S
    assert site.losses("owner") == []


def test_nobody_has_more_than_a_budget_and_a_limit_of_users_leave() -> None:
    most: dict[str, int] = {}

    def count(site: Site) -> set[str]:
        users: dict[str, int] = {}
        for held in site.held.values():
            if held.asked.event.project == "cs":
                users[held.asked.event.user] = users.get(held.asked.event.user, 0) + held.gpus
        most["user"] = max([most.get("user", 0), *users.values()])
        return set()

    site = _play("budgets", count)
    assert site.ran_s(ProjectId("club")) <= 6 * HOUR_S
    assert site.ran_s(ProjectId("club")) >= 0.7 * 6 * HOUR_S, "a walltime of each is kept, and no more"
    assert most["user"] == 1


def test_a_node_is_empty_when_it_is_to_be() -> None:
    site = _play("evening")
    began = [held.asked.end or 0.0 for held in site.held.values() if held.node == "n1" and held.is_busy]
    assert all(at_s <= 20 * MINUTE_S for at_s in began), "who came after the plan was over"
    assert site.longest(f"owed {Side(ProjectId('course'))}") <= RECLAIM_S
