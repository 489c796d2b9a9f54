"""Nothing idles that somebody may use, nobody is passed for ever, and one person's batch keeps nobody waiting."""

from bulletin.ids import AgentId
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, crowd, keeps_all, promised
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at, nodes, notebook, see


def test_a_hot_gpu_is_used_while_a_larger_request_waits() -> None:
    seen = see(
        promised(lab=0),
        nodes(1, 2),
        at(1, notebook("runs", "lab", 11 * HOUR_S, qos="batch")),
        at(2, notebook("hot", "lab", 60)),
        at(120, notebook("large", "other", 600, gpus=2, qos="batch")),
        at(130, notebook("short", "third", 240, walltime_ms=300_000, qos="batch")),
        last=HOUR_S,
    )
    assert seen.wait("short") <= 2
    keeps_all(seen)


def test_gpus_of_one_type_do_not_idle_while_the_first_in_line_waits_for_another() -> None:
    seen = see(
        promised(lab=0),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2, "NVIDIA A100"))),
        at(0, hi.Joins(AgentId("n1"), hi.gpus(4, "NVIDIA L4"))),
        at(1, notebook("runs", "lab", 11 * HOUR_S, gpus=2, gpu_type="A100", qos="batch")),
        at(2, notebook("holds", "other", 11 * HOUR_S, gpu_type="L4", qos="batch")),
        at(3, notebook("typed", "third", 600, gpu_type="A100", qos="batch")),
        at(4, notebook("large", "fourth", 600, gpus=4, gpu_type="L4", qos="batch")),
        at(5, notebook("short", "fifth", 60, walltime_ms=120_000, qos="batch")),
        last=HOUR_S,
    )
    assert seen.wait("short") <= 2
    keeps_all(seen)


def test_four_gpus_at_once_come_within_the_patience_though_others_never_stop() -> None:
    others = [notebook(f"{name}{n}", name, *[300] * 300, think_s=5) for name in ("a", "b", "c") for n in range(4)]
    seen = see(
        SchedulerSettings(),
        nodes(1, 4),
        [at(n, one) for n, one in enumerate(others)],
        at(600, notebook("large", "d", 600, gpus=4)),
        last=3 * HOUR_S,
    )
    assert seen.wait("large") <= 30 * MINUTE_S + 30 * MINUTE_S + SOON_S
    keeps_all(seen)


def test_batch_comes_within_its_patience_though_another_project_types() -> None:
    typing = [notebook(f"t{n}", "class", *[300] * 300, think_s=5) for n in range(8)]
    seen = see(
        SchedulerSettings(),
        nodes(1, 4),
        [at(n, one) for n, one in enumerate(typing)],
        at(600, notebook("batch", "lab", 600, qos="batch")),
        last=6 * HOUR_S,
    )
    assert seen.wait("batch") <= 4 * HOUR_S + 30 * MINUTE_S + SOON_S
    keeps_all(seen)


def test_ten_who_type_do_not_wait_for_one_persons_batch() -> None:
    batch = [notebook(f"batch{n}", "hub", 20 * HOUR_S, qos="batch", user="one") for n in range(8)]
    seen = see(
        SchedulerSettings(),
        nodes(1, 8),
        [at(1 + n, one) for n, one in enumerate(batch)],
        [at(600, one) for one in crowd(10, "hub", *[60] * 5, think_s=20, name="types")],
        last=2 * HOUR_S,
    )
    served = sorted(seen.wait(f"types{n}") for n in range(10))
    assert served[7] <= SOON_S
    assert served[-1] <= 60 + SOON_S  # eight GPUs: two wait until the first cells end
    keeps_all(seen)


def test_a_cell_that_costs_nothing_waits_for_no_quota() -> None:
    gpu_node = hi.Joins("n0", hi.gpus(2) + hi.cpu_slots(4))  # type: ignore[arg-type]
    seen = see(
        promised(lab=1),
        at(0, gpu_node),
        at(1, notebook("one", "lab", 3000, qos="batch")),
        at(2, notebook("two", "lab", 60)),
        at(100, notebook("cpu", "lab", 60, gpus=0, qos="reserved")),
        last=HOUR_S,
    )
    assert seen.wait("cpu") <= 2
    assert seen.asked_to_leave("two") == []
    keeps_all(seen)
