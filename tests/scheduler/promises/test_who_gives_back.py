"""Which hot session and which running cell goes where one of several would do, and that no other one goes."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.giving_back import LAB, borrows, gone, hot
from tests.scheduler.promises.seen import at
from tests.scheduler.promises.stories import NEVER_MS


def test_the_cell_goes_that_loses_least() -> None:
    assert gone(borrows(1, "old"), borrows(100, "young")) == ["young"]
    assert gone(borrows(1, "old", gpus=2), borrows(2, "young", gpus=2), gpus=2, number=2) == ["young"]


def test_the_cell_goes_that_loses_least_whatever_runs_beside_it() -> None:
    others = [borrows(350 + n, f"other-{n}", gpus=2) for n in range(7)]
    assert gone(borrows(1, "old"), *others, borrows(500, "young"), number=8) == ["young"]


def test_a_cell_of_the_lowest_class_goes() -> None:
    assert gone(borrows(1, "batch"), borrows(100, "typing", qos="interactive")) == ["batch"]


def test_the_cell_goes_that_leaves_its_project_least_below_its_guarantee() -> None:
    text = LAB + "[projects.x]\nguaranteed = 2\n"
    happenings = borrows(1, "y"), borrows(100, "x-one", "x"), borrows(450, "x-two", "x", gpus=2)
    assert gone(*happenings, size=4, text=text) == ["y"]


def test_what_others_borrow_goes_before_a_lower_class_of_its_own() -> None:
    assert gone(borrows(1, "other"), borrows(100, "own", "lab")) == ["other"]


def test_hot_sessions_go_before_running_cells_and_no_more_cells_than_are_needed() -> None:
    assert gone(hot(1, "hot"), borrows(10, "old"), borrows(20, "young"), gpus=2, size=3) == ["hot", "young"]


def test_no_cell_goes_whose_gpus_are_not_needed() -> None:
    assert gone(borrows(1, "two", gpus=2), borrows(500, "one"), gpus=2, size=3) == ["two"]


def test_no_hot_session_goes_whose_gpus_are_not_needed() -> None:
    assert gone(hot(1, "one"), hot(100, "two", gpus=2), gpus=2, size=3) == ["two"]


def test_the_hot_session_goes_that_was_used_the_longest_ago() -> None:
    assert gone(hot(1, "old"), hot(100, "young")) == ["old"]
    assert gone(hot(1, "old"), hot(100, "young"), number=2, size=1) == ["old"]
    assert gone(hot(100, "young"), hot(1, "old"), number=2, size=1, qos="batch") == ["old"]


def test_a_session_that_keeps_its_gpu_from_borrowers_goes_after_others() -> None:
    text = LAB + '[projects.kept]\nguaranteed = 1\nkeep_hot = "1 h"\n'
    assert gone(hot(1, "kept"), hot(100, "other"), borrows(2, "cell"), number=3, size=1, text=text) == ["other"]


def test_a_cell_is_as_old_as_it_is_also_when_its_agent_has_come_back() -> None:
    agent = AgentId("n0")
    happenings = borrows(1, "cell"), at(570, hi.GoesSilent(agent)), at(580, hi.Returns(agent))
    assert gone(*happenings, size=1, ask_again_ms=NEVER_MS) == ["cell"], "its notebook has heard it all the time"
