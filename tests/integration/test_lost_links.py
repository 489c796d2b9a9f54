"""The way to the node breaks at any moment: the cell goes on, every output comes once, and the results arrive."""

import hashlib
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bulletin.wire import keys
from tests.integration.conftest import PATIENCE_S, Notebook, PoolProcess, until
from tests.integration.long_cells import ROUNDS, shown
from tests.integration.relay import Relay

#: Where the moments come from. It is printed: with it in the environment, the same come again.
SEED = int(os.environ.get("BULLETIN_SEED") or random.SystemRandom().randrange(2**32))
#: After how much silence an agent takes a notebook for away: 10 s by default, as in the soak.
AWAY_S = 10.0 if "BULLETIN_SOAK" in os.environ else 4.0
#: For how long the link is cut: three times as long, and longer than both ends take to notice it and to try again.
CUT_S = 3 * AWAY_S
#: It takes a lot along, prints in two streams, shows, asks nothing, and hands back more than a window; then says that
#: its code is over.
LONG = """%%gpu
import hashlib, sys
print(hashlib.sha256(load).hexdigest())
for i in range(400):
    print(i, 'x' * 300)
    if i % 50 == 0:
        print('!', i, file=sys.stderr)
        display({'shown': i})
box[0] = bytes(range(256)) * 160_000
total = len(box[0])
open(marker, 'w').write('over')
total
"""


@pytest.fixture
def relay() -> Iterator[Relay]:
    made = Relay()
    yield made
    made.close()


@pytest.fixture
def pool(relay: Relay, start_pool: Callable[..., PoolProcess]) -> PoolProcess:
    """A pool of one slot whose agent is reached through the relay, and shares no memory with notebooks."""
    started = start_pool("--slots", "1", f"--Pool.advertise={relay.address}", f"--Pool.away={AWAY_S}")
    relay.lead(keys.read_private(started.folder / "agent.json", keys.AgentFile).address)
    (started.folder / "door").unlink()
    return started


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_link_that_is_cut_for_long_at_any_moment_changes_nothing(
    number: int, relay: Relay, pool: PoolProcess, open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    """In turn: while the cell's variables go out, while it prints, and while its results come back."""
    notebook = open_notebook(pool)
    before = f"marker = {str(tmp_path / 'over')!r}\nbox = [b'']\nalias = box\nload = bytes(range(251)) * 160_000"
    relay.count()
    notebook.run(before)
    undisturbed = notebook.run(LONG)
    assert undisturbed.error is None, undisturbed.shown
    sent, returned = relay.passed[False], relay.passed[True]
    assert sent > 40_000_000
    assert returned > 40_000_000
    draw = random.Random(SEED + number)
    span = (sent - 100_000, 200_000, returned - 1_000)[number % 3]
    cut_after = draw.randrange(1_000, span)
    said = f"BULLETIN_SEED={SEED}, round {number}: {cut_after} of {span} bytes"
    print(said)
    (tmp_path / "over").unlink()
    notebook.run(f"%gpu reset\ndel total\n{before}")
    relay.count(cut_after, to_notebook=number % 3 > 0)
    message_id = notebook.start(LONG)
    assert relay.was_cut.wait(PATIENCE_S), f"the link was not cut: {said}"
    threading.Event().wait(CUT_S)  # the harm is that it lasts
    relay.mend()
    output = notebook.collect(message_id)
    assert output.error is None, (said, output.shown)
    assert shown(output) == shown(undisturbed), said
    assert notebook.value("alias is box, total == len(box[0]) == 40_960_000") == "(True, True)"
    assert notebook.value("box[0] == bytes(range(256)) * 160_000") == "True"
    assert notebook.run("%%gpu\nprint(len(alias[0]))").stream() == "40960000\n"


def test_results_outlive_their_executor_while_the_link_is_down(
    relay: Relay, pool: PoolProcess, open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    """Somebody else waits for the slot: the agent takes the results in, and the slot goes on to the next."""
    first, second = open_notebook(pool), open_notebook(pool)
    marker = tmp_path / "over"
    first.run(f"marker = {str(marker)!r}\nbox = [b'']\nalias = box\nload = b''")
    relay.count(cut_after=3_000_000)
    message_id = first.start(LONG)
    assert relay.was_cut.wait(PATIENCE_S)
    until(marker.exists, "the cell to go on without its notebook")
    old = pool.part("executor").pid
    waiting = second.start("%%gpu\nprint('mine')")
    until(lambda: pool.part("executor").pid != old, "another executor in the place of the first")
    relay.mend()
    output = first.collect(message_id)
    assert output.error is None, output.shown
    digest = hashlib.sha256(b"").hexdigest()
    assert output.stream() == f"{digest}\n" + "".join(f"{i} {'x' * 300}\n" for i in range(400))
    assert first.value("alias is box, total == len(box[0]) == 40_960_000") == "(True, True)"
    assert second.collect(waiting).stream() == "mine\n"
    assert first.run("%%gpu\nprint(len(alias[0]))").stream() == "40960000\n"


def test_a_question_and_its_answer_survive_a_lost_link(
    relay: Relay, pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    """The first question may be lost, the first answer is, and neither is asked or given twice."""
    notebook = open_notebook(pool)

    def look(message: dict[str, object]) -> None:
        if "first" in str(message["content"]):
            relay.cut()
            relay.mend()
            notebook.client.get_stdin_msg(timeout=PATIENCE_S)
            relay.cut()
            notebook.client.input("one")
            relay.mend()
            notebook.answer("two")

    output = notebook.collect(notebook.start("%%gpu\nprint('fi' + 'rst')\na = input()\nb = input()\nprint(a, b)"), look)
    assert output.error is None, output.shown
    assert output.stream() == "first\none two\n"


WIDGET = """%%gpu
import os, time
import ipywidgets as widgets
print('started')
while not os.path.exists(is_cut):
    time.sleep(0.01)
image = widgets.Image(value=bytes(range(256)) * 4_000, format='png')
display(image)
open(is_shown, 'w').close()
"""


def test_a_picture_that_a_widget_shows_while_the_link_is_down_arrives_whole(
    relay: Relay, pool: PoolProcess, open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    """A widget's binary parts travel beside its message: what is sent again has them too."""
    pytest.importorskip("ipywidgets")
    notebook, is_cut, is_shown = open_notebook(pool), tmp_path / "cut", tmp_path / "shown"
    notebook.run(f"is_cut, is_shown = {str(is_cut)!r}, {str(is_shown)!r}")

    def cut() -> None:
        relay.cut()
        is_cut.touch()
        until(is_shown.exists, "the cell to go on without its notebook")
        relay.mend()

    output = notebook.run_until(WIDGET, shows="started", then=cut)
    assert output.error is None, output.shown
    assert [bytes(buffer) for message in output.messages for buffer in message["buffers"]] == [
        bytes(range(256)) * 4_000
    ]


def test_a_cell_that_dies_while_the_link_is_down_is_explained_when_it_is_back(
    relay: Relay, pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(pool)

    def die() -> None:
        executor = pool.part("executor")
        relay.cut()
        executor.kill()
        until(lambda: not executor.is_running(), "the executor to be gone")
        until(lambda: [s for s in pool.picture().slots if s.state == "free"], "a free slot")
        relay.mend()

    output = notebook.run_until("%%gpu\nprint('started')\nwhile True: pass", shows="started", then=die)
    assert output.error is not None
    assert "killed (SIGKILL)" in output.error["evalue"]
    assert notebook.run("%%gpu\nprint('again')").stream() == "again\n"
