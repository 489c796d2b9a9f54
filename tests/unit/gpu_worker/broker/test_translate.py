"""What the broker's messages tell people of what the scheduler decided."""

import asyncio

import pytest

from bulletin.ids import KernelId, LeaseId, ProjectId, RequestId, SessionId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.identity import Person
from gpu_worker.broker.translate import submitted
from tests.unit.gpu_worker.broker.broker_parts import ANN, BrokerParts


@pytest.mark.parametrize(
    ("person", "advice"),
    [
        (ANN, "Ask for fewer with --gpus."),
        (
            Person(user=UserName("bo"), groups=("maths", "physics")),
            "Ask for fewer with --gpus, or choose another project with --project.",
        ),
        (
            Person(user=UserName("root"), groups=("maths",), is_owner=True),
            "Ask for fewer with --gpus, or choose another project with --project.",
        ),
    ],
)
def test_who_is_refused_is_told_to_choose_another_project_only_if_they_have_one(
    broker: BrokerParts, person: Person, advice: str
) -> None:
    broker.join(slots=8)
    asked = wire.Submit(request=RequestId("r"), gpus=6)
    pending = PendingRequest(SessionId("s"), KernelId("k"), person, asked, 0, "")
    asyncio.run(broker.shell.submit(RequestId("s/r"), pending))
    ((_, refused),) = broker.to_sessions
    assert isinstance(refused, wire.Refusal)
    assert refused.sentence == f"6 GPUs were asked for, and project 'school' may use 4 GPUs at most. {advice}"


@pytest.mark.parametrize("keep_ms", [0, 60_000])
def test_the_scheduler_knows_of_a_request_whether_its_place_is_to_be_kept(keep_ms: int) -> None:
    asked = wire.Submit(request=RequestId("r"), keep_ms=keep_ms)
    names = RequestId("r"), LeaseId("l"), SessionId("s"), UserName("ann"), ProjectId("lab")
    assert submitted(asked, *names).is_kept is (keep_ms > 0)
