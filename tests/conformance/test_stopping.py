"""SIGINT at every moment of a cell's life."""

import signal

import pytest

from bulletin.ids import CellId
from bulletin.wire import blobs
from bulletin.wire.messages import Asked, Chunk, Parcel, Run
from tests.conformance.agent_side import Notebook, Session

LOOP = "print('go')\nwhile True: pass"
CASES = {
    "a loop": LOOP,
    "time.sleep": "import time\nprint('go')\ntime.sleep(10_000)",
    "await": "import asyncio\nprint('go')\nawait asyncio.sleep(10_000)",
    "await of several": (
        "import asyncio\nprint('go')\nawait asyncio.gather(asyncio.sleep(10_000), asyncio.Event().wait())"
    ),
    "a loop after await": f"import asyncio\nawait asyncio.sleep(0)\n{LOOP}",
    "a callback of the loop": (
        "import asyncio\ndef spin():\n    print('go')\n    while True: pass\nasync def spin_too():\n    spin()\n"
        "t = asyncio.create_task(spin_too())\nawait asyncio.sleep(10_000)"
    ),
    "printing": "while True: print('go')",
    "a lock": "import threading\nprint('go')\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
    "a subprocess": "import subprocess\nprint('go')\nsubprocess.run(['sleep', '10000'])",
    "a magic": "%%time\nprint('go')\nimport time\ntime.sleep(10_000)",
}


@pytest.mark.parametrize("where", CASES)
def test_a_cell_is_stopped_in(session: Session, where: str) -> None:
    notebook = Notebook(x=1)
    ran = notebook.run(
        session, f"x = 2\n{CASES[where]}" if not CASES[where].startswith("%%") else CASES[where], stop_at="go"
    )
    assert ran.result.outcome == "interrupted"
    assert ran.result.noticed >= 1
    assert ran.result.ended.error is not None
    assert ran.result.ended.error.name == "KeyboardInterrupt"
    assert "gpu_worker" not in ran.result.error
    assert notebook["x"] == (1 if CASES[where].startswith("%%") else 2)
    assert session.run("print('well')").stdout == "well\n"


def test_a_program_of_the_shell_is_stopped(session: Session) -> None:
    result = session.run("!echo go; sleep 10000\nprint('after')", stop_at="go")
    assert result.noticed == 1
    assert result.outcome == "returned"  # as in a notebook: the program is stopped, not the cell
    assert "after" in result.stdout


def test_input_is_stopped_and_a_late_answer_is_dropped(session: Session) -> None:
    cell = session.start("x = input('? ')")
    assert isinstance(session.hear(), Asked)
    session.interrupt()
    result = session.finish(cell)
    assert result.outcome == "interrupted"
    assert "gpu_worker" not in result.error
    from bulletin.wire.messages import Answer

    session.say(Answer(cell=cell, text="too late"))
    assert session.run("print(input())", answers=["in time"]).stdout == "in time\n"


def test_the_cell_may_clean_up(session: Session) -> None:
    source = (
        "import asyncio\ntry:\n    print('go')\n    await asyncio.sleep(10_000)\n"
        "except KeyboardInterrupt:\n    print('caught')"
    )
    result = session.run(source, stop_at="go")
    assert result.outcome == "returned"
    assert result.stdout == "go\ncaught\n"


def test_an_interrupt_between_cells_is_nothing(session: Session) -> None:
    session.run("1")
    for _ in range(20):
        session.interrupt()
    result = session.run("print('well')")
    assert (result.outcome, result.stdout) == ("returned", "well\n")


def test_an_interrupt_while_state_arrives_means_that_nothing_runs(session: Session) -> None:
    cell = CellId("slow")
    part = memoryview(bytes(3 * blobs.CHUNK))
    session.say(Run(cell=cell, source="print('ran')", number=1, parcel=Parcel(sizes=(part.nbytes,), inline=False)))
    session.say(Chunk(cell=cell, size=blobs.CHUNK), [part[: blobs.CHUNK]])
    session.hear()  # Took: so the executor has the Run
    session.interrupt_until_noticed()
    for _ in range(2):
        session.say(Chunk(cell=cell, size=blobs.CHUNK), [part[: blobs.CHUNK]])
    result = session.finish(cell)
    assert result.outcome == "interrupted"
    assert result.stdout == ""
    assert result.ended.error is not None
    assert result.ended.error.name == "KeyboardInterrupt"


def test_a_storm_of_interrupts_breaks_nothing(session: Session) -> None:
    for _ in range(10):
        cell = session.start("for i in range(50_000): print(i)")
        session.hear()
        for _ in range(5):
            session.interrupt()
        result = session.finish(cell)
        assert result.outcome in ("interrupted", "returned"), result.ended.error
    assert session.run("print('well')").stdout == "well\n"


def test_sigterm_ends_the_executor(session: Session) -> None:
    cell = session.start("print('go')\nimport time\ntime.sleep(10_000)")
    session.hear()
    signal.pidfd_send_signal(session.pidfd, signal.SIGTERM)
    assert session.is_gone()
    assert cell
