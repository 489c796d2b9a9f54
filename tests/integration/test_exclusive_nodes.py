"""A node for oneself (`--exclusive`) on a pool of two nodes: which one it is, who is on it, what is kept of it."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bulletin.wire import keys
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.node_notes import NODES
from gpu_worker.broker.records import EXCLUSIVE
from tests.integration.conftest import Notebook, until
from tests.integration.nodes import Part, nodes, picture, run

QUOTAS = """
[projects.default]
[qos.debug]
walltime = "1 h"
exclusive = true
"""
#: How many slots each node has.
SIZES = {"small": 1, "large": 2}
ALONE = "--exclusive --gpus 2 --qos debug"


class TwoNodes:
    """A broker with a quota file, and its two agents."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.quotas = folder / "pool", folder / "quotas.toml"
        self.quotas.write_text(QUOTAS)
        self.parts: list[Part] = []
        self.start_broker()
        self.parts[0].until_said("broker ready")
        address = keys.read_private(self.folder / "pool.json", keys.PoolFile).agent_address
        self.parts += [self.parts[0]] * len(SIZES)  # until they are started
        for name in SIZES:
            (folder / name).mkdir()
            where = ("--folder", str(self.folder), f"--address={address}", f"--out={folder / name / 'node.json'}")
            run("node", "add", name, *where)
            self.start_agent(name)
        until(lambda: nodes(self.folder) == set(SIZES), "both nodes")

    def start_broker(self) -> None:
        """Start the broker, anew where there was one."""
        self.parts[:1] = [Part("broker", self.folder, f"--Pool.quota_file={self.quotas}")]

    def start_agent(self, name: str) -> None:
        """Start the agent of a node, anew where there was one."""
        options = ("--device", "cpu", f"--slots={SIZES[name]}", "--isolation", "shared", "--Pool.preload=[]")
        self.parts[self._place(name)] = Part("agent", self.folder.parent / name, *options)

    def kill(self, *names: str) -> None:
        """End the broker, or nodes, as a power cut does."""
        for name in names:
            part = self.parts[0 if name == "broker" else self._place(name)]
            part.process.kill()
            part.process.wait()

    @staticmethod
    def _place(name: str) -> int:
        return 1 + [*SIZES].index(name)

    def states(self) -> dict[str, list[str]]:
        """What the slots of each node do."""
        seen = picture(self.folder)
        assert seen is not None
        return {name: [slot.state for slot in seen.slots if slot.node == name] for name in SIZES}

    def stop(self) -> None:
        for part in reversed(self.parts):
            part.stop()


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    started = TwoNodes(tmp_path_factory.mktemp("two"))
    yield started
    started.stop()


@pytest.fixture
def open_one(pool: TwoNodes, open_notebook: Callable[..., Notebook]) -> Callable[[], Notebook]:
    return lambda: open_notebook(BULLETIN_CONNECTION_FILE=str(pool.folder / "connection.json"))


def test_who_may_have_a_node_has_it_alone_and_a_broker_that_is_started_again_knows_who_has_one(
    pool: TwoNodes, open_one: Callable[[], Notebook], tmp_path: Path
) -> None:
    alone, other, over = open_one(), open_one(), tmp_path / "over"
    for options, says in (
        ("--exclusive --gpus 2", "QoS 'interactive' gives no cell a node for itself. Choose debug with --qos"),
        ("--exclusive --gpus 3 --qos debug", "no node here has just 3 CPU slots: one has 1 or 2."),
        ("--exclusive --gpus 0 --qos debug", "the cell asks for none"),
    ):
        error = other.run(f"%%gpu {options}\nprint('ran')").error
        assert error is not None
        assert says in error["evalue"]
        assert ('`%gpu request --exclusive --gpus 2 --why "..."`' in error["evalue"]) is ("interactive" in says)
    asked = other.run('%gpu request --exclusive --gpus 2 --why "links between GPUs"').shown
    assert "Asked for 2 CPU slots as a node for oneself in project 'default'" in asked
    name = asked.split("(")[-1].split(")")[0]
    assert "why: links between GPUs" in run("request", "grant", name, "--folder", str(pool.folder))
    assert other.run("%%gpu --exclusive --gpus 2\nprint('granted')").stream() == "granted\n"
    assert pool.states() == {"small": ["free"], "large": ["hot", "hot"]}
    run("request", "decline", name, "--folder", str(pool.folder))
    until(lambda: pool.states()["large"] == ["free", "free"], "the session to leave whose allowance is over")
    planned = other.run(f"%%gpu {ALONE} --plan\nprint('ran')").shown
    assert "--exclusive takes all of a node that has just 2 CPU slots, and is charged as that" in planned
    assert alone.run(f"%%gpu {ALONE}\nprint('ran')").stream() == "ran\n"
    waits = f"import os, time\nwhile not os.path.exists({str(over)!r}): time.sleep(0.02)\nprint('over')"

    def come() -> None:
        assert other.run("%%gpu\nprint('beside')").stream() == "beside\n"
        expected = {"small": ["hot"], "large": ["busy", "busy"]}
        until(lambda: pool.states() == expected, "the other cell to be over, beside the node that one has alone")
        over.touch()

    ran = alone.run_until(f"%%gpu {ALONE}\nprint('begun', flush=True)\n{waits}", shows="begun", then=come)
    assert ran.stream() == "begun\nover\n"
    assert "all of large (2 CPU slots)" in alone.run("%gpu receipts").shown
    used = list(csv.DictReader(io.StringIO(run("usage", "--cells", "--csv", "--folder", str(pool.folder)))))
    assert {row["is_exclusive"] for row in used if row["qos"] == "debug"} == {"True"}
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        *_, noted = ledger.event_payloads(EXCLUSIVE)
    assert (noted["node"], noted["gpus"], noted["qos"], noted["project"]) == ("large", 2, "debug", "default")
    pool.kill("broker")
    pool.start_broker()
    until(lambda: nodes(pool.folder) == set(SIZES), "both nodes")
    assert pool.states()["large"] == ["hot", "hot"]
    pool.quotas.write_text(QUOTAS.replace("exclusive = true", "exclusive = false"))
    until(lambda: pool.states()["large"] == ["free", "free"], "the session to leave that may begin no such cell")


def test_nobody_is_refused_because_a_small_node_is_back_first_after_a_restart(
    pool: TwoNodes, open_one: Callable[[], Notebook]
) -> None:
    pool.kill("broker")
    pool.quotas.write_text(QUOTAS)
    pool.start_broker()
    until(lambda: nodes(pool.folder) == set(SIZES), "both nodes")
    folder = ("--folder", str(pool.folder))
    run("drain", "large", *folder)
    alone, two = open_one(), open_one()
    waiting = [
        alone.start_until(f"%%gpu {ALONE}\nprint('alone')", shows="is being drained"),
        two.start_until("%%gpu --gpus 2\nprint('two')", shows="is being drained"),
    ]
    ledger = f"sqlite:///{pool.folder / 'ledger.sqlite'}"

    def noted() -> list[str]:
        with Ledger.open(ledger, upgrade=False) as opened:
            last = opened.last_event(NODES)
            return [] if last is None else last.payload["nodes"]

    until(lambda: set(noted()) == set(SIZES), "both nodes to be in the ledger")
    pool.kill("broker", "large")
    pool.start_broker()
    until(lambda: nodes(pool.folder) == {"small"}, "the small node")

    def reasons() -> list[str]:
        return [row["reason"] for row in json.loads(run("queue", "--json", *folder))["waiting"]]

    until(lambda: len(reasons()) == 2, "both to ask again")
    assert all("before the pool was started again" in reason for reason in reasons())
    pool.start_agent("large")
    until(lambda: nodes(pool.folder) == set(SIZES), "both nodes")
    run("drain", "large", "--undo", *folder)
    shown = [one.collect(waits).stream() for one, waits in zip((alone, two), waiting, strict=True)]
    assert shown == ["alone\n", "two\n"]
