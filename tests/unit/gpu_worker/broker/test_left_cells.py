"""Whoever waits behind a cell of their own, whose notebook is gone, reads so, and how to have it or end it."""

import asyncio

from bulletin.ids import CellId, KernelId, LeaseId, RequestId, SessionId
from bulletin.wire import messages as wire
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.identity import Person
from gpu_worker.broker.left_cells import LeftCells
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, EVE, BrokerParts

EARLIER, RESTARTED, ANOTHER = (KernelId(f"lab-{name}") for name in ("one-11", "one-12", "two-13"))


def submit(broker: BrokerParts, kernel: KernelId, cell: str, person: Person = ADMIN, label: str = "") -> LeaseId:
    """What a kernel asks for its cell, in a session of its own."""
    session, message = SessionId(f"s-{cell}"), wire.Submit(request=RequestId(cell), label=label)
    request = RequestId(f"{session}/{cell}")
    asyncio.run(broker.shell.submit(request, PendingRequest(session, kernel, person, message, broker.now_ms)))
    state = broker.shell.scheduler.state
    return state.pending[request].lease if request in state.pending else state.granted[request]


def run(broker: BrokerParts, kernel: KernelId, cell: str, label: str = "") -> None:
    broker.step(events.CellStarted(submit(broker, kernel, cell, label=label), CellId(cell)))


def reason(broker: BrokerParts, cell: str) -> str:
    """What a cell that waits is told now."""
    broker.to_sessions.clear()
    asyncio.run(broker.shell.tell_queue())
    (told,) = [said for session, said in broker.to_sessions if session == f"s-{cell}" and isinstance(said, wire.Queued)]
    return told.reason


def know_gone(broker: BrokerParts, *gone: str) -> None:
    """Have the kernels of these sessions be silent, and no others."""
    broker.shell.teller.left_cells = LeftCells(broker.shell.active_leases, lambda session: session in gone)


def test_after_a_restart_of_the_kernel_its_earlier_cell_is_named(broker: BrokerParts) -> None:
    know_gone(broker)
    broker.join()
    run(broker, EARLIER, "0123456789", label="train")
    submit(broker, RESTARTED, "next")
    assert reason(broker, "next") == (
        "the only GPU is busy; your earlier cell 01234567 [train], whose notebook is gone, still runs on 1 GPU: "
        "stop this cell, then `%gpu attach 01234567` brings it here, where the stop button ends it"
    )


def test_a_cell_of_a_notebook_that_is_not_heard_any_more_is_named_in_another_one(broker: BrokerParts) -> None:
    know_gone(broker, "s-0123456789")
    broker.join()
    run(broker, EARLIER, "0123456789")
    submit(broker, ANOTHER, "next")
    assert "your earlier cell 01234567, whose notebook is gone" in reason(broker, "next")


def test_what_waits_in_the_background_need_not_be_stopped_first(broker: BrokerParts) -> None:
    know_gone(broker)
    broker.join()
    run(broker, EARLIER, "0123456789")
    submit(broker, KernelId(f"{RESTARTED}-background-x"), "next")
    assert "1 GPU: `%gpu attach 01234567` brings it here" in reason(broker, "next")


def test_several_are_counted(broker: BrokerParts) -> None:
    know_gone(broker, "s-b")
    broker.join(slots=2)
    run(broker, EARLIER, "a")
    run(broker, ANOTHER, "b")
    submit(broker, RESTARTED, "next")
    assert reason(broker, "next").endswith(
        "; 2 earlier cells of yours, whose notebooks are gone, still run on 2 GPUs: stop this cell, then `%gpu attach` "
        "lists them"
    )


def test_nothing_is_said_of_cells_of_notebooks_that_are_there_nor_of_other_people(broker: BrokerParts) -> None:
    know_gone(broker)
    broker.join()
    run(broker, EARLIER, "0123456789")
    submit(broker, ANOTHER, "own")
    assert "cell" not in reason(broker, "own")
    know_gone(broker, "s-0123456789")
    submit(broker, KernelId("lab-one-14"), "others", person=EVE)
    assert "cell" not in reason(broker, "others")


def test_a_kernel_with_a_cell_is_gone_once_it_was_silent_for_as_long_as_one_that_waits(broker: BrokerParts) -> None:
    broker.now_ms = 20_000
    assert not broker.kernels.is_gone(SessionId("s-1")), "a broker that has just begun has heard nobody yet"
    broker.now_ms = 20_001
    assert broker.kernels.is_gone(SessionId("s-1"))
