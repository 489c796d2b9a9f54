"""Hosts that are cut off at random moments for random times: no line, no result, no cell is lost, and none doubled."""

import contextlib
import hashlib
import itertools
import json
import math
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from jupyter_core.utils import ensure_event_loop

from tests.integration.conftest import until
from tests.integration.host_pools import USERS, Site, made_site
from tests.integration.long_cells import ROUNDS

NODES = ("node1", "node2")
#: Where the moments come from. It is printed: with it in the environment, the same are drawn again.
SEED = int(os.environ.get("BULLETIN_SEED") or random.SystemRandom().randrange(2**32))
#: A cut lasts as long as its logarithm says, which is drawn evenly: what is tried is mending, at once and late.
SHORTEST_S = 0.1
LONGEST_S = 60.0 if "BULLETIN_SOAK" in os.environ else 5.0
LINES, SENT, RETURNED = 150, 20_000_000, 100_000_000
#: What a cell may be charged beyond the time that its own clock says. A cut is no part of it.
SLACK_MS = 1_000

#: So many of the cells begin in a new session: what was on its way when a link was cut knows nothing of that.
NEW_SESSIONS = 0.5

BEFORE = "import hashlib, random\nresult, ran_ms, load = b'', 0, random.Random('load {number}').randbytes({sent})"
#: It takes a lot along, leaves a line where it runs, prints for some seconds, and hands back more than a window.
CELL = """%%gpu --label {number}
import hashlib, os, random, socket, time
began = time.monotonic()
open(os.path.expanduser('~/began'), 'a').write('{number}\\n')
print(socket.gethostname(), hashlib.sha256(load).hexdigest())
for i in range({lines}):
    print({number}, i, 'x' * 100, flush=True)
    time.sleep(0.02)
result = random.Random({number}).randbytes({returned})
ran_ms = 1000 * (time.monotonic() - began)
"""


def digest(seed: int | str, size: int) -> str:
    return hashlib.sha256(random.Random(seed).randbytes(size)).hexdigest()


class Computing:
    """A notebook that runs one cell after the other, while the node is cut off where its session was last."""

    def __init__(self, site: Site, user: str) -> None:
        self.site, self.notebook = site, site.open_notebook(user)
        self.ran_ms: dict[int, float] = {}  #: of each cell, by its own clock
        self.node, self.takes_s = "", 0.0

    def run(self, number: int, *, is_cut: bool) -> bool:
        """Run a cell and look at all that it has shown and returned; whether there was a cut."""
        if random.Random(SEED - number).random() < NEW_SESSIONS:
            self.notebook.run("%gpu stop")
        prepared = self.notebook.run(BEFORE.format(number=number, sent=SENT))
        assert prepared.error is None, prepared.shown
        is_over = threading.Event()
        began = time.monotonic()
        message_id = self.notebook.start(CELL.format(number=number, lines=LINES, returned=RETURNED))
        with ThreadPoolExecutor(1) as beside:
            cut = beside.submit(self._cut, number, is_over) if is_cut else None
            try:
                output = self.notebook.collect(message_id)
            finally:
                is_over.set()
        self.takes_s = self.takes_s or time.monotonic() - began
        assert output.error is None, (number, output.shown)
        first, _, printed = output.stream().partition("\n")
        assert printed == "".join(f"{number} {i} {'x' * 100}\n" for i in range(LINES)), number
        self.node, had = first.split()
        assert had == digest(f"load {number}", SENT), number
        assert self.notebook.value("hashlib.sha256(result).hexdigest()") == repr(digest(number, RETURNED)), number
        self.ran_ms[number] = float(self.notebook.value("ran_ms"))
        return cut is not None and cut.result()

    def _cut(self, number: int, is_over: threading.Event) -> bool:
        """Cut the node off from everybody, from its broker or from notebooks, unless the cell is over before that."""
        draw = random.Random(SEED + number)
        node, after_s = self.site.hosts[self.node], draw.uniform(0, self.takes_s)
        ways = {"everybody": node.cut(), "the broker": node.firewall(9002, "dport"), "notebooks": node.firewall(9003)}
        of_whom = draw.choice(list(ways))
        for_s = math.exp(draw.uniform(math.log(SHORTEST_S), math.log(LONGEST_S)))
        if is_over.wait(after_s):
            return False
        print(f"BULLETIN_SEED={SEED}, cell {number}: {node.name} hears nothing of {of_whom}", end=" ")
        print(f"from {after_s:.2f} s on for {for_s:.2f} s", flush=True)
        with ways[of_whom]:
            threading.Event().wait(for_s)  # the harm is that it lasts
        return True


@pytest.fixture
def site() -> Iterator[Site]:
    with made_site(NODES) as made:
        yield made


@pytest.mark.timeout(300 + 60 * ROUNDS)
def test_cuts_at_any_moment_cost_no_line_and_no_result_and_every_cell_runs_and_is_charged_once(site: Site) -> None:
    """Two notebooks compute at once, each in the beginning on a node of its own."""
    numbers, cuts, has_failed = itertools.count(), itertools.count(1), threading.Event()
    is_enough = threading.Event()

    def compute(user: str) -> dict[int, float]:
        with contextlib.closing(ensure_event_loop()):  # of this thread: the notebook's client makes one
            computing = Computing(site, user)
            try:
                computing.run(next(numbers), is_cut=False)
                while not is_enough.is_set() and not has_failed.is_set():
                    if computing.run(next(numbers), is_cut=True) and next(cuts) >= ROUNDS:
                        is_enough.set()
            except BaseException:
                has_failed.set()
                raise
            return computing.ran_ms

    with ThreadPoolExecutor() as threads:
        ran_ms = {number: ms for one in threads.map(compute, USERS) for number, ms in one.items()}
    until(lambda: "all there" in site.status(), "the nodes to be heard again")
    folder = site.hosts["hub"].folder
    began = [line for user in USERS for line in (folder.parent / user / "began").read_text().split()]
    assert sorted(map(int, began)) == sorted(ran_ms), "each began once"
    usage = json.loads(site.hosts["hub"].run("bulletin usage --cells --json --folder /var/lib/bulletin"))
    assert sorted(int(one["label"]) for one in usage if one["ran_ms"]) == sorted(ran_ms), "each has one row"
    assert {one["outcome"] for one in usage if one["ran_ms"]} == {"returned"}
    beyond = {one["label"]: one["ran_ms"] - ran_ms[int(one["label"])] for one in usage if one["ran_ms"]}
    print(
        f"{len(beyond)} cells, charged beyond their own clocks for {min(beyond.values())} to {max(beyond.values())} ms"
    )
    assert all(-2 < ms < SLACK_MS for ms in beyond.values()), beyond
