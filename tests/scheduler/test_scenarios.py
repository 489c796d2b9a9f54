"""What people meet, told step by step. Each scenario runs on past its goal."""

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, QoS, SchedulerSettings
from tests.scheduler.bench import MINUTE, SETTINGS, Bench, evicted, granted, held, over, refused, slots


def test_a_free_gpu_is_granted_at_once_and_stays_hot_while_nobody_waits(bench: Bench) -> None:
    bench.join("a", slots(2))
    actions = bench.ask("ann")
    assert granted(actions) == ["ann:1"]
    assert actions[0].slots == ("gpu-0",)
    assert actions[0].walltime_ms == 30 * MINUTE
    assert bench.start("ann:1") == []
    assert bench.end("ann:1") == []
    assert bench.later(24 * 60 * MINUTE) == []
    assert bench.start("ann:1", "c2") == []


def test_whoever_waits_gets_the_gpu_of_the_least_recently_used_hot_session(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.run("ann")
    bench.run("bob")
    bench.start("ann:1", "c2")
    bench.end("ann:1", "c2")
    assert evicted(bench.ask("cem")) == ["bob:1"]
    assert bench.why("cem/1").reason == "a GPU is being freed for you"
    assert bench.later(0) == []
    assert granted(bench.free("bob:1")) == ["cem:1"]
    assert bench.free("bob:1") == []
    assert evicted(bench.ask("bob", n=2)) == ["ann:1"]
    assert granted(bench.free("ann:1")) == ["bob:2"]


def test_the_least_recently_used_is_found_on_whatever_node_it_is(bench: Bench) -> None:
    for agent in ("a", "b", "c"):
        bench.join(agent, slots(1))
    for name in ("ann", "bob", "cem"):
        bench.run(name)
    for name in ("ann", "cem"):
        bench.start(f"{name}:1", "c2")
        bench.end(f"{name}:1", "c2")
    assert [lease for name in ("dan", "eve", "fay") for lease in evicted(bench.ask(name))] == [
        "bob:1",
        "ann:1",
        "cem:1",
    ]


def test_slots_are_named_in_the_order_of_the_node(bench: Bench) -> None:
    bench.join("a", slots(4))
    assert bench.ask("ann", gpus=4)[0].slots == ("gpu-0", "gpu-1", "gpu-2", "gpu-3")


def test_the_end_of_a_cell_long_gone_does_not_make_a_session_hot(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.ask("ann")
    bench.start("ann:1", "c1")
    bench.start("ann:1", "c2")
    bench.ask("bob")
    assert bench.end("ann:1", "c1") == []
    assert evicted(bench.end("ann:1", "c2")) == ["ann:1"]


def test_a_hot_session_that_was_faster_than_its_eviction_keeps_its_gpu_until_its_cell_ends(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.run("ann")
    assert evicted(bench.ask("bob")) == ["ann:1"]
    assert bench.start("ann:1", "c2") == []
    assert bench.why("bob/1").reason == "the only GPU is busy"
    assert bench.later(MINUTE) == []
    assert evicted(bench.end("ann:1", "c2")) == ["ann:1"]
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_when_one_victim_was_faster_another_is_asked(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.run("ann")
    bench.run("bob")
    assert evicted(bench.ask("cem")) == ["ann:1"]
    assert evicted(bench.start("ann:1", "c2")) == ["bob:1"]
    assert bench.end("ann:1", "c2") == []
    assert granted(bench.free("bob:1")) == ["cem:1"]


def test_two_who_wait_have_two_sessions_evicted_together_and_not_a_third(bench: Bench) -> None:
    bench.join("a", slots(3))
    for name in ("ann", "bob", "cem"):
        bench.run(name)
    assert evicted(bench.ask("dan")) == ["ann:1"]
    assert evicted(bench.ask("eve")) == ["bob:1"]
    assert granted(bench.free("bob:1")) == ["dan:1"]
    assert granted(bench.free("ann:1")) == ["eve:1"]


def test_only_as_many_are_evicted_as_the_head_needs(bench: Bench) -> None:
    bench.join("a", slots(4))
    bench.run("ann", gpus=1)
    bench.run("bob", gpus=2)
    assert granted(bench.ask("cem")) == ["cem:1"]
    assert evicted(bench.ask("dan", gpus=2)) == ["bob:1"]
    assert granted(bench.free("bob:1")) == ["dan:1"]


def test_nobody_is_evicted_who_neither_keeps_the_head_from_starting_nor_could_delay_it(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.run("ann", walltime_ms=10 * MINUTE)
    bench.ask("bob")
    bench.start("bob:1")
    assert bench.ask("cem", gpus=2) == []
    assert bench.start("ann:1", "c2") == []
    assert bench.end("ann:1", "c2") == []
    assert sorted(evicted(bench.end("bob:1"))) == ["ann:1", "bob:1"]
    assert bench.free("ann:1") == []
    assert granted(bench.free("bob:1")) == ["cem:1"]


def test_a_request_for_two_is_not_passed_by_small_ones_and_the_freed_gpu_waits_for_it(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.ask("ann")
    bench.start("ann:1")
    bench.ask("bob")
    bench.start("bob:1")
    assert bench.ask("cem", gpus=2) == []
    assert bench.ask("dan") == []
    assert bench.free("ann:1") == []
    assert bench.why("dan/1").reason == "1 request is before yours"
    assert bench.why("cem/1").reason == "no node has 2 GPUs free at once"
    assert granted(bench.free("bob:1")) == ["cem:1"]
    assert granted(bench.free("cem:1")) == ["dan:1"]


def test_a_small_request_runs_meanwhile_on_a_node_too_small_for_the_head(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.join("b", slots(1))
    bench.ask("ann", gpus=2)
    bench.start("ann:1")
    assert bench.ask("bob", gpus=2) == []
    assert granted(bench.ask("cem", qos="batch")) == ["cem:1"]
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_a_node_that_is_lost_blocks_nobody_with_the_requests_that_only_it_could_hold(bench: Bench) -> None:
    bench.join("a", slots(4))
    bench.join("b", slots(1))
    bench.lose("a")
    assert bench.ask("ann", gpus=4) == []
    assert bench.why("ann/1").reason == "no connected node has 4 GPUs"
    assert bench.why("ann/1").wait_ms is None
    assert granted(bench.ask("bob")) == ["bob:1"]
    assert granted(bench.join("a", slots(4))) == ["ann:1"]


def test_interactive_comes_before_batch_and_each_is_first_come_first_served(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.ask("ann")
    bench.start("ann:1")
    for name, qos in (("b1", "batch"), ("i1", "interactive"), ("b2", "batch"), ("i2", "interactive")):
        assert bench.ask(name, qos=qos) == []
    assert [bench.why(f"{name}/1").position for name in ("i1", "i2", "b1", "b2")] == [1, 2, 3, 4]
    last = "ann:1"
    for name in ("i1", "i2", "b1", "b2"):
        assert granted(bench.free(last)) == [f"{name}:1"]
        last = f"{name}:1"


def test_what_can_never_run_is_refused_with_what_to_do(bench: Bench) -> None:
    bench.join("a", slots(2))
    assert "Choose one of interactive, batch" in refused(bench.ask("ann", qos="fast"))["ann/1"]
    assert refused(bench.ask("ann", n=2, walltime_ms=31 * MINUTE))["ann/2"].startswith(
        "a walltime of 31 min is more than the 30 min that QoS 'interactive' gives"
    )
    assert refused(bench.ask("ann", n=3, gpus=4))["ann/3"] == (
        "4 GPUs on one node were asked for, and the largest node of this pool has 2. Ask for 2 or fewer with --gpus."
    )
    assert "no node of this pool offers a CPU slot" in refused(bench.ask("ann", n=4, gpus=0))["ann/4"]
    assert granted(bench.ask("ann", n=5, gpus=2)) == ["ann:5"]


def test_a_user_may_queue_only_so_many_requests(bench: Bench) -> None:
    for number in range(3):
        assert bench.ask(f"s{number}", user="ann") == []
    assert "3 of your requests wait already" in refused(bench.ask("s3", user="ann"))["s3/1"]
    assert bench.ask("s2", n=2, user="ann") != {}
    assert bench.ask("t", user="bob") == []
    bench.withdraw("s0/1")
    assert bench.ask("s3", n=2, user="ann") == []


def test_a_second_request_of_a_session_takes_the_place_of_the_first(bench: Bench) -> None:
    bench.ask("ann")
    bench.ask("bob")
    assert refused(bench.ask("ann", n=2)) == {"ann/1": "a newer cell of the same notebook took its place in the queue."}
    assert refused(bench.ask("ann", n=3, qos="nonsense")).keys() == {"ann/3"}
    assert bench.why("ann/2").position == 2
    assert granted(bench.join("a", slots(2))) == ["bob:1", "ann:2"]


def test_without_a_node_requests_wait_and_those_too_large_are_refused_when_one_joins(bench: Bench) -> None:
    assert bench.ask("ann") == []
    assert bench.ask("bob", gpus=3) == []
    assert bench.why("ann/1").reason == "no node is connected to the pool"
    assert bench.why("bob/1").reason == "no node is connected to the pool; 1 request is before yours"
    actions = bench.join("a", slots(2))
    assert granted(actions) == ["ann:1"]
    assert refused(actions).keys() == {"bob/1"}


def test_a_lease_whose_cell_never_starts_is_taken_back(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.ask("ann")
    assert bench.scheduler.deadline() == MINUTE
    assert bench.later(MINUTE - 1) == []
    assert evicted(bench.later(1)) == ["ann:1"]
    assert bench.scheduler.deadline() == MINUTE + 10_000
    assert evicted(bench.later(10_000)) == ["ann:1"]
    assert bench.free("ann:1") == []
    assert bench.scheduler.deadline() is None


def test_a_grant_that_was_lost_is_repeated_when_the_kernel_asks_again(bench: Bench) -> None:
    bench.join("a", slots(2))
    first = bench.ask("ann")
    assert bench.ask("ann") == first
    bench.start("ann:1")
    assert bench.ask("ann") == []
    bench.end("ann:1")
    assert bench.ask("ann") == []
    assert bench.free("ann:1") == []


def test_a_request_withdrawn_as_it_is_granted_leaves_no_idle_lease(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.ask("ann")
    assert evicted(bench.withdraw("ann/1")) == ["ann:1"]
    assert bench.withdraw("ann/1") == []
    bench.ask("bob")
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_a_session_that_asks_while_it_is_hot_gets_a_new_lease_after_the_old_one(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.run("ann")
    assert evicted(bench.ask("ann", n=2)) == ["ann:1"]
    assert bench.why("ann/2").reason == "the process of this notebook's last cell is still ending"
    assert granted(bench.ask("bob")) == ["bob:1"]
    assert granted(bench.free("ann:1")) == ["ann:2"]


def test_a_session_that_asks_while_its_cell_runs_waits_for_it_and_nobody_waits_behind_it(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.ask("ann")
    bench.start("ann:1")
    assert bench.ask("ann", n=2) == []
    assert granted(bench.ask("bob")) == ["bob:1"]
    bench.start("bob:1")
    assert bench.later(5 * MINUTE) == []
    assert evicted(bench.end("ann:1")) == ["ann:1"]
    assert granted(bench.free("ann:1")) == ["ann:2"]


def test_a_lost_node_ends_its_leases_and_their_sessions_ask_again(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.run("ann")
    bench.ask("ann", n=2)
    assert over(bench.lose("a")) == {"ann:1": "node-lost"}
    assert bench.lose("a") == []
    assert bench.why("ann/2").reason == "no node is connected to the pool"
    assert granted(bench.join("a", slots(1))) == ["ann:2"]


def test_after_a_restart_the_broker_learns_leases_from_the_agents(bench: Bench) -> None:
    bench.ask("dan")
    report = (held("ann", cell="c7", running_ms=10 * MINUTE), held("bob", on=("gpu-1",)))
    assert evicted(bench.join("a", slots(2), *report)) == ["bob:1"]
    assert granted(bench.free("bob:1")) == ["dan:1"]
    bench.start("dan:1")
    bench.ask("eve")
    assert bench.why("eve/1").wait_ms == 20 * MINUTE
    assert evicted(bench.end("ann:1", "c7")) == ["ann:1"]


def test_an_agent_that_reports_twice_changes_nothing(bench: Bench) -> None:
    bench.join("a", slots(3))
    bench.run("ann")
    bench.ask("bob")
    bench.start("bob:1")
    bench.ask("cem")
    report = (held("ann"), held("bob", cell="c1", on=("gpu-1",)), held("cem", on=("gpu-2",)))
    assert bench.join("a", slots(3), *report) == []
    assert bench.join("a", slots(3), *report) == []
    assert bench.scheduler.deadline() == MINUTE
    assert evicted(bench.ask("dan")) == ["ann:1"]
    assert evicted(bench.join("a", slots(3), *report)) == ["ann:1"], "it did not hear, so it is asked again"


def test_an_agent_that_reconnects_makes_nobody_older_or_younger(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.join("b", slots(1))
    bench.join("c", slots(1))
    bench.run("ann")
    bench.run("bob")
    bench.ask("cem")
    bench.now_ms += 30_000
    bench.join("b", slots(1), held("bob"))
    bench.join("c", slots(1), held("cem"))
    assert bench.scheduler.deadline() == MINUTE, "the cell that never starts is waited for no longer than before"
    assert evicted(bench.ask("dan")) == ["ann:1"]


def test_two_hot_sessions_reported_again_keep_their_order(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.run("ann")
    bench.run("bob")
    bench.join("a", slots(2), held("bob", on=("gpu-1",)), held("ann"))
    assert evicted(bench.ask("cem")) == ["ann:1"]


def test_a_report_that_contradicts_itself_gives_no_slot_to_two(bench: Bench) -> None:
    slot_twice = held("ann", cell="c1", on=("gpu-0", "gpu-0"))
    event = ev.AgentJoined("a", "a", slots(1) + slots(2), (slot_twice, held("bob", on=("gpu-0", "gone"))))
    assert bench.scheduler.step(event, 0) == []
    check(bench.scheduler.state)
    assert granted(bench.scheduler.step(ev.RequestSubmitted("r", "l", "cem", "cem", "p", "interactive", 1), 0)) == ["l"]
    assert bench.scheduler.state.leases["l"].slots == ("gpu-1",)


def test_leases_that_a_new_agent_does_not_report_are_over(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.run("ann")
    bench.run("bob")
    assert over(bench.join("a", slots(2), held("bob", on=("gpu-1",)))) == {"ann:1": "not-held"}
    assert granted(bench.ask("cem")) == ["cem:1"]


def test_a_lease_that_returns_after_its_session_went_on_elsewhere_is_ended_and_its_slot_kept_until_then(
    bench: Bench,
) -> None:
    bench.join("a", slots(1))
    bench.join("b", slots(1))
    bench.ask("ann")
    bench.start("ann:1")
    assert over(bench.lose("a")) == {"ann:1": "node-lost"}
    assert granted(bench.ask("ann", n=2)) == ["ann:2"]
    bench.start("ann:2")
    assert over(bench.join("a", slots(1), held("ann", cell="c1"))) == {"ann:1": "superseded"}
    assert bench.ask("bob") == []
    assert bench.end("ann:1") == []
    assert over(bench.later(10_000)) == {"ann:1": "superseded"}
    assert granted(bench.free("ann:1")) == ["bob:1"]
    assert bench.end("ann:2") == []


def test_a_pool_without_gpus_runs_on_cpu_slots_and_says_so(bench: Bench) -> None:
    bench.join("a", slots(1, "cpu"))
    bench.run("ann")
    bench.start("ann:1", "c2")
    bench.ask("bob")
    bench.ask("cem", gpus=0)
    assert bench.why("bob/1").reason == "the only CPU slot is busy"
    assert bench.why("bob/1").wait_ms == 30 * MINUTE
    assert bench.why("cem/1").reason == "the only CPU slot is busy; 1 request is before yours"
    assert "has no GPU, offers 1" in refused(bench.ask("dan", gpus=2))["dan/1"]
    bench.end("ann:1", "c2")
    assert bench.why("bob/1").reason == "a CPU slot is being freed for you"


def test_once_a_gpu_is_there_cpu_slots_no_longer_stand_in_for_it(bench: Bench) -> None:
    bench.join("a", slots(1, "cpu"))
    bench.run("ann")
    bench.start("ann:1", "c2")
    bench.ask("bob")
    assert granted(bench.join("b", slots(1))) == ["bob:1"]
    bench.start("bob:1")
    bench.ask("cem")
    assert bench.free("ann:1") == []
    assert bench.why("cem/1").reason == "the only GPU is busy"
    assert granted(bench.ask("dan", gpus=0)) == ["dan:1"]


def test_the_estimate_counts_the_cells_that_run_and_the_requests_ahead(bench: Bench) -> None:
    bench.join("a", slots(2))
    for name, minutes in (("ann", 10), ("bob", 20)):
        bench.ask(name, walltime_ms=minutes * MINUTE)
        bench.start(f"{name}:1")
    bench.now_ms += 5 * MINUTE
    bench.ask("cem", walltime_ms=30 * MINUTE)
    bench.ask("dan", walltime_ms=30 * MINUTE)
    bench.ask("eve")
    assert [bench.why(f"{name}/1").wait_ms for name in ("cem", "dan", "eve")] == [5 * MINUTE, 15 * MINUTE, 35 * MINUTE]
    assert bench.why("eve/1").reason == "all 2 GPUs are busy; 2 requests are before yours"


def test_a_long_queue_frees_slots_for_a_few_at_a_time_and_serves_all(bench: Bench) -> None:
    bench.join("a", slots(8))
    for number in range(8):
        bench.run(f"hot{number}")
    gone = [lease for number in range(8) for lease in evicted(bench.ask(f"s{number}"))]
    assert gone == [f"hot{number}:1" for number in range(SETTINGS.look_ahead)]
    for number in range(4):
        actions = bench.free(f"hot{number}:1")
        assert granted(actions) == [f"s{number}:1"]
        assert evicted(actions) == [f"hot{number + 4}:1"]


def test_the_default_classes_are_those_of_the_design() -> None:
    table = {qos.name: (qos.walltime_ms // MINUTE, qos.queued_per_user) for qos in DEFAULT_QOS}
    assert table == {"interactive": (30, 20), "batch": (1440, 4), "long": (10080, 1), "reserved": (720, 1)}


def test_a_step_with_ten_thousand_pending_looks_at_few_of_them() -> None:
    """Work is counted, not timed: how often the state is asked for a pending request in one step."""
    settings = SchedulerSettings(qos=(QoS(name="interactive", priority=1, walltime_ms=MINUTE, queued_per_user=10**6),))
    bench = Bench(settings)
    scheduler = bench.scheduler
    for event in _crowd(10_000):
        scheduler.step(event, 0)

    class Counting(dict):  # type: ignore[type-arg]
        looks = 0

        def __getitem__(self, key: str) -> object:
            self.looks += 1
            return super().__getitem__(key)

    counting = Counting(scheduler.state.pending)
    scheduler.state.pending = counting
    actions = scheduler.step(_freed(0), 1)
    assert granted(actions) == ["lease-8"]
    assert counting.looks < 20


def _crowd(number: int):
    yield ev.AgentJoined("a", "a", slots(8))
    for i in range(number):
        yield ev.RequestSubmitted(f"r{i}", f"lease-{i}", f"s{i}", "u", "p", "interactive", 1 + i // 9 % 2, None)


def _freed(i: int):
    return ev.LeaseEnded(f"lease-{i}")


def test_the_wait_grows_shorter_also_while_nothing_happens(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.ask("ann")
    bench.start("ann:1")
    bench.ask("bob")
    assert bench.why("bob/1").wait_ms == 30 * MINUTE
    bench.now_ms += 10 * MINUTE
    assert bench.why("bob/1").wait_ms == 20 * MINUTE
