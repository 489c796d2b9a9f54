"""What an executor left in its pipes is read without waiting, whatever it did to its own ends of them."""

import asyncio
import os

from gpu_worker.agent.unsent_output import UnsentOutput


def test_a_tenant_that_makes_its_reader_wait_does_not_hold_up_its_agent() -> None:
    unsent = UnsentOutput()
    try:
        _, reader, writer, *_ = unsent.descriptors
        os.set_blocking(reader, True)
        os.write(writer, b"last words")
        assert asyncio.run(unsent.read()) == [("stdout", "last words")]
        assert asyncio.run(unsent.read()) == []
    finally:
        unsent.close()
