"""What the time of a GPU counts for: budgets and past use by its price, guarantees and limits by GPUs."""

import msgspec

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Refuse
from gpu_worker.scheduler.leases.resources import price_of
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import Budget, Project
from tests.scheduler.bench import MINUTE, SETTINGS, held, models, project
from tests.scheduler.quota_bench import Quotas, changed

HOUR = 60 * MINUTE
DEAR = (Price("H100", 400),)


class Priced(Quotas):
    """A pool with two H100 and two L4, where an H100 costs what these say."""

    def __init__(self, *projects: Project, prices: tuple[Price, ...] = DEAR) -> None:
        super().__init__(*projects)
        self.say(ev.SettingsChanged(msgspec.structs.replace(SETTINGS, projects=projects, prices=prices)))
        self.join("a", (*models(2, "NVIDIA H100", 80), *models(2, "NVIDIA L4", 24)))

    def past(self, name: str) -> int:
        """What was charged of past use, in GPU-milliseconds as they count now."""
        accounts = self.scheduler.state.accounts
        return accounts.of(name).history.at(0) // 1000  # type: ignore[arg-type]

    def left_ms(self, name: str) -> int:
        left = self.scheduler.state.accounts.of(name).left(self.now_ms)  # type: ignore[arg-type]
        assert left is not None
        return left // 1000


def test_the_first_price_that_fits_counts_and_one_is_the_default() -> None:
    prices = (Price("H100 NVL", 300), Price("h100", 400), Price("MIG 1g", 1000))
    names = ("NVIDIA H100 NVL", "NVIDIA H100 80GB HBM3", "NVIDIA L4")
    slots = [models(1, name, 80)[0] for name in names]
    assert [price_of(slot, slot.milli, prices) for slot in slots] == [3000, 4000, 1000]
    [piece] = models(1, "NVIDIA H100 MIG 1g.10gb", 10, "mig", 143)
    assert price_of(piece, piece.milli, prices[1:]) == 572
    assert price_of(piece, piece.milli, (Price("H100", 125),)) == 179, "rounded up"


def test_past_use_of_an_l4_is_a_quarter_of_that_of_an_h100() -> None:
    pool = Priced()
    pool.busy("rich.eve", gpu_type="H100")
    pool.busy("poor.tom", gpu_type="L4")
    pool.later(10 * MINUTE)
    pool.end("rich.eve:1")
    pool.end("poor.tom:1")
    assert (pool.past("rich"), pool.past("poor")) == (40 * MINUTE, 10 * MINUTE)


def test_who_used_the_cheaper_gpu_is_next() -> None:
    pool = Priced()
    pool.busy("rich.eve", gpu_type="H100")
    pool.busy("poor.tom", gpu_type="L4")
    pool.later(10 * MINUTE)
    pool.free("rich.eve:1")
    pool.free("poor.tom:1")
    pool.busy("other.a", "other.b", gpu_type="H100")
    assert pool.wants("rich.eve", n=2, gpu_type="H100") == []
    assert pool.wants("poor.tom", n=2, gpu_type="H100") == []
    assert pool.order(["other.a:1", "other.b:1"]) == ["poor.tom:2", "rich.eve:2"]


def test_a_budget_of_an_hour_at_price_four_starts_no_cell_of_twenty_minutes_but_one_of_ten() -> None:
    pool = Priced(project("club", budget=Budget(HOUR, "week")))
    [refuse] = pool.ask("club.ann", project="club", user="ann", gpu_type="H100", walltime_ms=20 * MINUTE)
    assert isinstance(refuse, Refuse)
    assert str(refuse.reason) == (
        "1 GPU at the price 4 of NVIDIA H100 for 20 min is more than the 1 GPU-hour that project 'club' has each week. "
        "Ask for 15 min or less with --time, or name a cheaper type with --gpu-type."
    )
    assert pool.wants("club.ann", gpu_type="H100", walltime_ms=10 * MINUTE) == ["club.ann:1"]
    pool.start("club.ann:1")
    assert pool.wants("club.bob", gpu_type="H100", walltime_ms=10 * MINUTE) == []
    assert "such a cell at the price 4 of NVIDIA H100 beside what runs" in pool.why("club.bob/1").reason
    assert pool.wants("club.tom", gpu_type="L4", walltime_ms=10 * MINUTE) == ["club.tom:1"]
    pool.later(5 * MINUTE)
    assert pool.left_ms("club") == HOUR - 4 * 5 * MINUTE - 5 * MINUTE


def test_who_names_no_type_is_asked_for_the_price_of_the_dearest() -> None:
    pool = Priced(project("club", budget=Budget(HOUR, "week")))
    [refuse] = pool.ask("club.ann", project="club", user="ann", walltime_ms=20 * MINUTE)
    assert isinstance(refuse, Refuse)
    assert "at the price 4 of NVIDIA H100" in str(refuse.reason)
    assert pool.wants("club.ann", gpu_type="L4", walltime_ms=20 * MINUTE) == ["club.ann:1"]


def test_a_change_of_prices_rewrites_nothing_that_was_agreed() -> None:
    club = project("club", budget=Budget(4 * HOUR, "week"))
    pool = Priced(club)
    pool.busy("club.ann", gpu_type="H100", walltime_ms=20 * MINUTE)
    pool.busy("club.bob", gpu_type="H100", walltime_ms=20 * MINUTE)
    pool.end("club.bob:1")
    pool.later(5 * MINUTE)
    changed(pool, club, prices=(Price("H100", 200),))
    pool.later(5 * MINUTE)
    assert pool.left_ms("club") == 4 * HOUR - 40 * MINUTE
    pool.start("club.bob:1", "c2")
    pool.later(5 * MINUTE)
    pool.end("club.ann:1")
    pool.end("club.bob:1", "c2")
    assert pool.left_ms("club") == 4 * HOUR - 60 * MINUTE - 10 * MINUTE
    assert pool.past("club") == 70 * MINUTE
    pool.start("club.ann:1", "c2")
    pool.later(5 * MINUTE)
    assert pool.left_ms("club") == 4 * HOUR - 80 * MINUTE, "with another cell it goes on at the price of now"


def test_what_waits_is_asked_for_the_new_price() -> None:
    club = project("club", budget=Budget(HOUR, "week"))
    pool = Priced(club, prices=())
    pool.busy("x.a", "x.b", gpu_type="H100")
    assert pool.wants("club.ann", gpu_type="H100", walltime_ms=20 * MINUTE) == []
    changed(pool, club, prices=(Price("H100", 300),))
    assert pool.order(["x.a:1"]) == ["club.ann:1"]
    assert pool.wants("club.bob", gpu_type="H100", walltime_ms=10 * MINUTE) == []
    changed(pool, club, prices=(Price("H100", 400),))
    assert pool.order(["x.b:1"]) == []


def test_guarantees_and_limits_count_gpus_and_no_prices() -> None:
    pool = Priced(project("lab", guaranteed_milli=2000, limit_milli=2000, user_limit_milli=1000))
    pool.busy("guests.a", "guests.b", gpu_type="H100")
    pool.later(2 * MINUTE)
    pool.busy("lab.ann", "lab.bob", gpu_type="L4")
    assert pool.scheduler.state.accounts.of("lab").used == 2000  # type: ignore[arg-type]
    pool.free("lab.ann:1")
    assert pool.wants("lab.eve", gpu_type="H100") == []
    assert pool.why("lab.eve/1").in_quota


def test_a_gpu_that_costs_nothing_is_in_no_budget() -> None:
    pool = Priced(project("club", budget=Budget(MINUTE, "week")), prices=(Price("L4", 0),))
    pool.busy("club.ann", gpu_type="L4")
    pool.later(10 * MINUTE)
    assert pool.left_ms("club") == MINUTE


def test_an_agent_that_joins_again_changes_no_price_and_what_a_broker_before_agreed_holds() -> None:
    club = project("p", budget=Budget(4 * HOUR, "week"))
    pool = Priced(club)
    slots = (*models(2, "NVIDIA H100", 80), *models(2, "NVIDIA L4", 24))
    pool.busy("p.ann", gpu_type="H100")
    changed(pool, club, prices=())
    leases = pool.scheduler.state.leases
    again = held("p.ann", cell="c1", on=("H100-0",))
    pool.join("a", slots, again)
    assert leases["p.ann:1"].charged == 4000  # type: ignore[index]
    other = msgspec.structs.replace(held("p.bob", cell="c1", on=("H100-1",)), charged=3000)
    pool.join("a", slots, again, other)
    assert leases["p.bob:1"].charged == 3000  # type: ignore[index]
    assert leases["p.ann:1"].charged == 4000  # type: ignore[index]
    pool.replay()
