"""How many agents there are, under a virtual clock: no test here waits for anything."""

import msgspec
import pytest
from hypothesis import given, strategies as st

from bulletin.wire.messages.engine_broker import NodeLoad, RoomNeeded
from gpu_worker.engine_settings import ScalingSettings
from gpu_worker.engines.agent_jobs import JobState, JobStatus
from gpu_worker.engines.fleet import Action, DrainNode, Fleet, ForgetNode, StartAgents, StopAgent

WAITING, RUNNING = JobState(JobStatus.WAITING, "Slurm: the partition gpu has none free"), JobState(JobStatus.RUNNING)
OVER = JobState(JobStatus.OVER, "it was preempted")
MINUTE = 60_000


def scaling(**changes: int) -> ScalingSettings:
    plain = {"min_nodes": 0, "max_nodes": 4, "spare_slots": 0, "idle_ms": 10 * MINUTE, "patience_ms": 5_000}
    more = {"node_slots": 0, "start_limit_ms": 5 * MINUTE, "look_ms": 5_000}
    return ScalingSettings(**plain | more | changes, folder="")  # type: ignore[arg-type]


class Bench:
    """A fleet, whose agents have as many slots, and what broker and jobs say of them."""

    def __init__(self, slots: int = 1, life_ms: int | None = None, **changes: int) -> None:
        self.slots = slots
        self.fleet = Fleet(scaling(**changes), slots, life_ms)
        self.now_ms = 0
        self.waiting: list[RoomNeeded] = []
        self.nodes: dict[str, NodeLoad] = {}
        self.jobs: dict[str, JobState] = {}
        self._count = 0

    def wait(self, count: int, slots: int = 1, walltime_ms: int = MINUTE, waited_ms: int = 60_000) -> None:
        self.waiting = [RoomNeeded(slots=slots, walltime_ms=walltime_ms, waited_ms=waited_ms)] * count

    def wait_for_node(self, count: int, slots: int) -> None:
        """So many wait who would have a node for themselves."""
        self.waiting = [RoomNeeded(slots=slots, walltime_ms=MINUTE, waited_ms=60_000, is_exclusive=True)] * count

    def step(self, after_ms: int = 0) -> list[Action]:
        """What it does now; agents that it starts get jobs that wait."""
        self.now_ms += after_ms
        actions = self.fleet.step(self.waiting, list(self.nodes.values()), self.jobs, self.now_ms)
        for action in actions:
            if isinstance(action, StartAgents):
                for _ in range(action.count):
                    self._count += 1
                    self.fleet.add(f"n{self._count}", "", self.now_ms)
                    self.jobs[f"n{self._count}"] = WAITING
            elif isinstance(action, ForgetNode):
                self.jobs.pop(action.node, None)
                self.nodes.pop(action.node, None)
        return actions

    def come(self, node: str, used: int = 0, hot: int = 0, **more: int | bool | None) -> None:
        """The agent is at the broker, and has so much to do."""
        self.jobs[node] = RUNNING
        drained: bool = node in self.fleet.leaving
        about = {"is_drained": drained, "leaves_in_ms": None} | more
        self.nodes[node] = NodeLoad(node=node, slots=self.slots, used=used, hot=hot, **about)  # type: ignore[arg-type]


def test_the_first_who_waits_has_an_agent_at_once_and_only_one() -> None:
    bench = Bench()
    assert bench.step() == []
    bench.wait(1, waited_ms=0)
    assert bench.step() == [StartAgents(1)]
    assert bench.step(1_000) == []


def test_requests_share_a_node_as_far_as_its_slots_reach() -> None:
    bench = Bench(slots=4)
    bench.wait(5)
    assert bench.step() == [StartAgents(2)]


def test_who_would_have_a_node_alone_has_one_started_though_a_larger_one_is_free() -> None:
    bench = Bench(slots=2)
    bench.nodes["large"] = NodeLoad(node="large", slots=4, used=0, hot=0, is_drained=False)
    bench.wait_for_node(2, slots=2)
    assert bench.step() == [StartAgents(2)], "nobody else is on it"


def test_who_would_have_a_node_alone_has_none_started_beside_a_free_one_of_that_size() -> None:
    bench = Bench(slots=2)
    bench.nodes["other"] = NodeLoad(node="other", slots=2, used=0, hot=0, is_drained=False)
    bench.wait_for_node(1, slots=2)
    assert bench.step() == []


@pytest.mark.parametrize("slots", [1, 4])
def test_no_agent_is_started_for_who_would_have_a_node_of_another_size_alone(slots: int) -> None:
    bench = Bench(slots=2)
    bench.wait_for_node(1, slots)
    assert bench.step() == []


def test_no_more_agents_than_the_most() -> None:
    bench = Bench(max_nodes=3)
    bench.wait(50)
    assert bench.step() == [StartAgents(3)]
    assert bench.step(1_000) == []


def test_who_came_a_moment_ago_waits_for_the_cells_that_run_before_another_node_is_started() -> None:
    bench = Bench()
    bench.wait(1, waited_ms=0)
    bench.step()
    bench.come("n1", used=1)
    assert bench.step(1_000) == []
    bench.wait(1, waited_ms=5_000)
    assert bench.step(1_000) == [StartAgents(1)]


def test_what_no_node_could_hold_starts_none() -> None:
    bench = Bench(slots=2, life_ms=60 * MINUTE)
    bench.wait(1, slots=3)
    assert bench.step() == []
    bench.wait(1, walltime_ms=61 * MINUTE)
    assert bench.step() == []


def test_who_is_not_served_by_a_free_node_would_not_be_by_another_like_it() -> None:
    """A request for another type of GPU, say."""
    bench = Bench(min_nodes=1)
    bench.step()
    bench.come("n1")
    bench.wait(1)
    assert bench.step(1_000) == []


def test_a_node_whose_time_ends_too_soon_for_a_cell_is_none_for_it() -> None:
    bench = Bench(life_ms=60 * MINUTE, min_nodes=1)
    bench.step()
    bench.come("n1", leaves_in_ms=10 * MINUTE)
    bench.wait(1, walltime_ms=30 * MINUTE)
    assert bench.step(1_000) == [StartAgents(1)]


def test_an_agent_that_came_and_went_while_the_cluster_did_not_answer_is_no_start_that_failed() -> None:
    bench = Bench()
    bench.wait(1)
    bench.step()
    bench.fleet.note_there("n1")
    bench.jobs["n1"] = OVER
    assert bench.step(20_000) == [ForgetNode("n1", OVER.words), StartAgents(1)], "at once"
    assert bench.fleet.problem == ""


def test_a_job_that_waits_has_its_time_to_come_from_its_start_on_whatever_was_not_known_of_it_before() -> None:
    """The cluster's controller does not answer for a moment, or puts the job back into its queue."""
    bench = Bench()
    bench.wait(1)
    bench.step()
    for known in (JobState(JobStatus.UNKNOWN), RUNNING):
        bench.jobs["n1"] = known
        bench.step(1_000)
        bench.jobs["n1"] = WAITING
        assert bench.step(60 * MINUTE) == []
    bench.jobs["n1"] = RUNNING
    assert bench.step(1_000) == []
    assert bench.step(5 * MINUTE + 1) == [StopAgent("n1")]


def test_a_job_that_is_held_after_it_has_run_gets_no_more_time_to_come() -> None:
    """As by scontrol requeuehold."""
    bench = Bench()
    bench.wait(1)
    bench.step()
    bench.jobs["n1"] = RUNNING
    assert bench.step(1_000) == []
    bench.jobs["n1"] = msgspec.structs.replace(WAITING, is_held=True)
    assert bench.step(5 * MINUTE) == []
    assert bench.step(1) == [StopAgent("n1")]
    bench.jobs["n1"] = OVER
    assert bench.step(6_000) == [ForgetNode("n1", OVER.words), StartAgents(1)]


def test_a_job_that_is_held_before_it_has_run_waits_for_whoever_holds_it() -> None:
    bench = Bench()
    bench.wait(1)
    bench.step()
    bench.jobs["n1"] = msgspec.structs.replace(WAITING, is_held=True)
    assert bench.step(60 * MINUTE) == []


@pytest.mark.parametrize("before", [WAITING, RUNNING])
def test_a_job_that_could_not_be_started_and_is_put_back_is_a_start_that_failed(before: JobState) -> None:
    """As Slurm does it where the prolog of a host fails: its reason is "launch failed requeued held"."""
    bench = Bench()
    bench.wait(1)
    bench.step()
    bench.jobs["n1"] = before
    assert bench.step(1_000) == []
    bench.jobs["n1"] = JobState(JobStatus.WAITING, "Slurm: it could not be started on its node", has_failed=True)
    assert bench.step(1_000) == [StopAgent("n1")]
    assert bench.fleet.say(bench.jobs, bench.now_ms) == (
        "no node could be started: n1 will not come: Slurm: it could not be started on its node"
    )
    bench.jobs["n1"] = OVER
    assert bench.step(4_000) == [ForgetNode("n1", OVER.words)], "what failed is tried again a little later"
    assert bench.step(1_000) == [StartAgents(1)]


def test_an_idle_agent_is_drained_and_then_ended() -> None:
    bench = Bench()
    bench.wait(1)
    bench.step()
    bench.wait(0)
    bench.come("n1", used=1)
    bench.step(1_000)
    bench.come("n1", hot=1)
    assert bench.step(1_000) == []
    assert bench.step(10 * MINUTE - 1) == []
    assert bench.step(1) == [DrainNode("n1")]
    assert bench.fleet.leaving == ("n1",)
    bench.come("n1", hot=1)
    assert bench.step(1_000) == [], "what its notebooks kept there still leaves"
    bench.come("n1")
    assert bench.step(1_000) == [StopAgent("n1")]
    assert bench.step(1_000) == [], "it has been asked for"
    assert bench.step(10_000) == [StopAgent("n1")], "and is asked for again if it did not come to pass"
    bench.jobs["n1"] = OVER
    assert bench.step(1_000) == [ForgetNode("n1", OVER.words)]
    assert bench.fleet.agents == {}


def test_a_cell_begins_the_idle_time_anew() -> None:
    bench = Bench(min_nodes=1)
    bench.step()
    bench.fleet.agents["n1"].started_ms = 0
    bench.come("n1")
    bench.step(9 * MINUTE)
    bench.come("n1", used=1)
    bench.step(MINUTE)
    bench.come("n1")
    assert bench.step(MINUTE) == []
    assert bench.fleet.agents["n1"].idle_since_ms == bench.now_ms


def test_so_many_agents_as_are_wanted_at_least_stay() -> None:
    bench = Bench(min_nodes=1)
    bench.wait(2)
    assert bench.step() == [StartAgents(2)]
    bench.wait(0)
    for node in ("n1", "n2"):
        bench.come(node)
    bench.step(1_000)
    assert bench.step(20 * MINUTE) == [DrainNode("n1")]
    assert bench.step(20 * MINUTE) == [StopAgent("n1")]


def test_spare_slots_are_there_before_anybody_waits() -> None:
    bench = Bench(slots=2, spare_slots=2)
    assert bench.step() == [StartAgents(1)]
    bench.come("n1", used=1)
    assert bench.step(1_000) == [StartAgents(1)]
    bench.come("n1")
    bench.come("n2")
    bench.step(1_000)
    assert bench.step(20 * MINUTE) == [DrainNode("n1")], "one of them is enough"


def test_jobs_that_nobody_waits_for_any_more_are_taken_back_the_last_one_first() -> None:
    bench = Bench()
    bench.wait(3)
    bench.step()
    bench.wait(1)
    assert bench.step(30_000) == [StopAgent("n3"), StopAgent("n2")]
    bench.wait(0)
    assert bench.step(1_000) == [StopAgent("n1")]


def test_who_asks_and_withdraws_all_the_time_has_one_job_in_half_a_minute_and_not_one_each_time() -> None:
    bench = Bench()
    started = 0
    for second in range(300):
        bench.wait(second % 2)
        actions = bench.step(1_000)
        for node in [action.node for action in actions if isinstance(action, StopAgent)]:
            bench.jobs[node] = OVER
        started += sum(action.count for action in actions if isinstance(action, StartAgents))
    assert 1 <= started <= 10


def test_a_job_that_runs_already_is_not_taken_back() -> None:
    bench = Bench()
    bench.wait(1)
    bench.step()
    bench.jobs["n1"] = RUNNING
    bench.wait(0)
    assert bench.step(1_000) == []


def test_a_job_may_wait_for_as_long_as_somebody_waits_for_it() -> None:
    bench = Bench()
    bench.wait(1)
    bench.step()
    assert bench.step(600 * MINUTE) == []
    assert bench.fleet.say(bench.jobs, bench.now_ms) == WAITING.words


def test_for_how_long_a_node_has_been_starting_is_said_by_the_minute() -> None:
    bench = Bench()
    bench.wait(1)
    bench.step()
    bench.jobs.clear()  # nobody has said yet that there is a job
    assert bench.fleet.say(bench.jobs, bench.now_ms + 59_999) == "a node is starting"
    assert bench.fleet.say(bench.jobs, bench.now_ms + 3 * MINUTE + 1) == "a node is starting, for 3 min by now"


def test_an_agent_that_does_not_come_is_ended_and_the_next_one_waits_longer_each_time() -> None:
    bench = Bench(max_nodes=1)
    bench.wait(1)
    bench.step()
    pauses = []
    for number in range(1, 5):
        node = f"n{number}"
        bench.jobs[node] = RUNNING
        bench.step(1_000)
        assert bench.step(5 * MINUTE + 1) == [StopAgent(node)]
        ended_ms = bench.now_ms
        bench.jobs[node] = OVER
        actions = bench.step()
        while StartAgents(1) not in actions:
            actions = bench.step(1_000)
        pauses.append(bench.now_ms - ended_ms)
        assert "did not come" in bench.fleet.problem
    assert pauses == sorted(pauses)
    assert pauses[-1] > 4 * pauses[0]


def test_one_that_comes_makes_what_failed_before_be_forgotten() -> None:
    bench = Bench()
    bench.fleet.note_failure("Slurm refused the job: Invalid partition", 0)
    assert "Invalid partition" in bench.fleet.say({}, 0)
    bench.wait(1)
    assert bench.step(1_000) == []
    assert bench.step(5_000) == [StartAgents(1)]
    bench.come("n1", used=1)
    bench.wait(0)
    bench.step(1_000)
    assert bench.fleet.say(bench.jobs, bench.now_ms) == ""


def test_who_had_a_cell_on_a_node_that_is_gone_is_told_why_and_another_is_started() -> None:
    bench = Bench()
    bench.wait(1)
    bench.step()
    bench.come("n1", used=1)
    bench.wait(0)
    bench.step(1_000)
    bench.jobs["n1"] = OVER
    del bench.nodes["n1"]
    bench.wait(1)
    assert bench.step(1_000) == [ForgetNode("n1", OVER.words), StartAgents(1)]
    assert bench.fleet.problem == "", "it had come: the next one need not wait"


def test_where_nobody_else_can_say_the_brokers_word_counts() -> None:
    bench = Bench(min_nodes=1)
    bench.step()
    bench.come("n1", used=1)
    bench.step(1_000)
    bench.jobs["n1"] = JobState(JobStatus.UNKNOWN)
    del bench.nodes["n1"]
    assert bench.step(29_000) == [], "the broker may have been started again"
    bench.step(29_000)
    assert ForgetNode("n1", "") in bench.step(2_000)


def test_a_job_whose_agent_the_broker_has_lost_is_ended_but_not_while_the_broker_was_away() -> None:
    bench = Bench(min_nodes=1)
    bench.step()
    bench.come("n1", used=1)
    bench.step(1_000)
    here = bench.nodes.pop("n1")
    assert bench.step(60 * MINUTE) == [], "the broker answers again, and agents come back in a moment"
    assert bench.step(29_000) == []
    bench.nodes["n1"] = here
    assert bench.step(1_000) == []
    del bench.nodes["n1"]
    bench.step(1_000)
    assert StopAgent("n1") in bench.step(31_000)


def test_what_an_admin_drains_is_ended_when_it_is_empty_and_not_drained_again() -> None:
    bench = Bench(min_nodes=1)
    bench.step()
    bench.come("n1", used=1, is_drained=True)
    assert StartAgents(1) in bench.step(1_000), "another takes its place"
    bench.come("n1", is_drained=True)
    assert StopAgent("n1") in bench.step(1_000)


@pytest.mark.parametrize("slots", [1, 3])
@given(data=st.data())
def test_whatever_comes_there_are_never_more_than_the_most_and_at_last_none(slots: int, data: st.DataObject) -> None:
    bench = Bench(slots, max_nodes=3, life_ms=60 * MINUTE)
    for _ in range(data.draw(st.integers(1, 25))):
        bench.wait(data.draw(st.integers(0, 9)), slots=data.draw(st.integers(1, slots)))
        for node in list(bench.fleet.agents):
            match data.draw(st.sampled_from(["nothing", "comes", "works", "ends"])):
                case "comes":
                    bench.come(node, hot=data.draw(st.integers(0, slots)))
                case "works":
                    bench.come(node, used=data.draw(st.integers(1, slots)))
                case "ends":
                    bench.jobs[node] = OVER
        bench.step(data.draw(st.sampled_from([0, 1_000, 6_000, 11 * MINUTE])))
        assert len(bench.fleet.agents) <= 3
    bench.wait(0)
    for _ in range(8):
        for node, agent in list(bench.fleet.agents.items()):
            if agent.stopped_ms is None:
                bench.come(node)
            else:
                bench.jobs[node] = OVER
        bench.step(11 * MINUTE)
    assert bench.fleet.agents == {}
