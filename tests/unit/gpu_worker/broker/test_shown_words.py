"""Words that people write are shown to others: nothing in them moves a cursor, or turns the letters around it round."""

import asyncio

import pytest

from bulletin.ids import AgentId, KernelId, RequestId
from bulletin.wire import console, messages as wire
from bulletin.wire.messages.allowance_requests import RequestAllowance
from gpu_worker.broker import translate
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, TOKEN, BrokerParts
from tests.unit.gpu_worker.broker.node_reports import done

#: What hides or moves letters: controls of a terminal, and those of the direction of writing.
CONTROLS = "\u200b\u200c\u200d\x1b\x07\x7f\x9b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


@pytest.mark.parametrize("control", CONTROLS, ids=ascii)
def test_what_somebody_says_of_a_request_and_calls_their_cells_has_none_of_them(
    broker: BrokerParts, control: str
) -> None:
    """The label of a cell that waits comes from its kernel, that of one that is over by its agent."""
    words = f"final{control} run"

    async def submit() -> None:
        hello = wire.Hello(protocol=wire.PROTOCOL, version="1", token=TOKEN, kernel=KernelId("k"))
        await broker.kernels.take(b"k", hello)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        await broker.kernels.take(b"k", wire.Submit(request=RequestId("r"), label=words))

    asyncio.run(submit())
    [waiting] = broker.ask(ADMIN, console.AskQueue()).waiting
    [asked] = broker.ask(ANN, RequestAllowance(walltime_ms=100 * 3_600_000, why=words)).rows
    node = wire.Register(
        protocol=wire.PROTOCOL,
        version="1",
        secret="secret",
        agent=AgentId("a"),
        node="n",
        address=wire.AgentAddress(address="", public_key=""),
        slots=(),
    )
    assert waiting.label == asked.why == translate.record(done(label=words), node, 1, ()).label == "final run"


def test_words_of_any_language_stay_as_they_are(broker: BrokerParts) -> None:
    words = "модель 模型 نموذج naïve می\u200cروم क्\u200dष \U0001f469\u200d\U0001f52c"
    assert broker.ask(ANN, RequestAllowance(walltime_ms=100 * 3_600_000, why=words)).rows[0].why == words
