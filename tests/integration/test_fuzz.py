"""A small share of the random messages that `make.py soak` throws at every link of a pool."""

import os
from collections.abc import Callable

from tests.fuzz.soak import Fuzz
from tests.integration.conftest import Notebook, PoolProcess


def test_random_messages_on_every_link_end_no_process_and_no_other_session(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    seed = int.from_bytes(os.urandom(3))
    print("seed", seed)
    pool = start_pool("--slots", "4")
    fuzz = Fuzz(pool, open_notebook(pool))
    fuzz.run(8_000, seed, 1, print)
    assert fuzz.problems == []
    assert fuzz.counters["faults"] == 0, "there is one to be mended; the pool's log has the traceback"
