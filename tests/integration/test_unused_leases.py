"""Who asks for a slot and does not use it keeps it from nobody for long."""

from collections.abc import Callable

from bulletin.wire import messages as wire
from tests.integration.conftest import Client, Notebook, PoolProcess, until

#: A part of the time after which the scheduler takes back what was granted, and no cell has begun.
SOON_S = 40


def test_a_slot_that_was_granted_and_is_not_used_is_anothers_soon(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    idle = Client(pool.connection)
    idle.hello(pool.connection.token)
    idle.send(wire.Submit(request="r"))  # type: ignore[arg-type]
    while not isinstance(idle.receive(), wire.Granted):
        pass
    notebook = open_notebook(pool)
    asked = notebook.start("%%gpu\nprint(input('mine? '))")
    until(lambda: pool.picture().slots[0].state == "busy", "the cell to have the slot", SOON_S)
    notebook.client.get_stdin_msg(timeout=SOON_S)
    notebook.client.input("mine")
    assert notebook.collect(asked).stream() == "mine\n"
    idle.close()
