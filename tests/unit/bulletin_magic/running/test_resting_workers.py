"""Workers of a sweep that lost their place: when each asks for another one."""

from bulletin_magic.running.resting_workers import RestingWorkers


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_who_lost_a_place_rests_and_each_time_for_longer() -> None:
    clock = Clock()
    resting: RestingWorkers[str] = RestingWorkers(clock)
    assert resting.due_in_s is None
    for rest_s in (1, 2, 4, 8, 8):
        resting.add("one")
        assert (len(resting), resting.due_in_s) == (1, rest_s)
        assert resting.take(is_wanted=False) is None
        clock.now_s += rest_s
        assert resting.due_in_s == 0
        assert resting.take(is_wanted=False) == "one"
        assert len(resting) == 0


def test_the_first_of_them_is_woken_at_once_where_nobody_works() -> None:
    clock = Clock()
    resting: RestingWorkers[str] = RestingWorkers(clock)
    assert resting.take(is_wanted=True) is None
    resting.add("one")
    clock.now_s = 0.5
    resting.add("two")
    assert resting.take(is_wanted=True) == "one"
    assert resting.take(is_wanted=False) is None
    assert resting.due_in_s == 1
