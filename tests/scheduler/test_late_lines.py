"""What is kept of a node pool for who is late is found by what is asked for, not request by request."""

from bulletin.ids import ProjectId, RequestId, UserName
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.late_lines import LateLines, LateRequest
from gpu_worker.scheduler.leases.shapes import QueueEntry, QueueKey, Shape
from tests.scheduler.bench import SETTINGS, project

ONE, TWO, FOUR = (Shape("gpu", gpus, 1000 * gpus, "interactive", 60_000) for gpus in (1, 2, 4))
ASKS = QueueEntry(RequestId("asks"), UserName("ann"), QueueKey(0, True, 0, -2, 0, 60_000, 99), ONE)


def asks(shape: Shape) -> LateRequest:
    """Make what ann's request of this shape is known by."""
    return LateRequest(ProjectId("lab"), UserName("ann"), shape.walltime_ms, shape, since_ms=0, turn=0)


def with_late(*shapes: Shape) -> Account:
    """Make a project with late requests of these shapes, in their order."""
    account = Accounts((project("lab"),), SETTINGS.qos).of(ProjectId("lab"))
    for number, shape in enumerate(shapes):
        account.late[RequestId(f"r{number}")] = shape.cost
        account.late_lines.add(RequestId(f"r{number}"), asks(shape))
    return account


def test_of_many_late_requests_alike_one_is_looked_at() -> None:
    asked: list[Shape] = []

    def serves(shape: Shape) -> bool:
        asked.append(shape)
        return shape is FOUR

    account = with_late(*[ONE] * 500, *[TWO] * 500, FOUR)
    assert account.kept_there(ASKS, 4000, serves) == 4000
    assert asked == [ONE, TWO, FOUR]


def test_the_pool_is_kept_for_the_first_that_is_late_and_fits() -> None:
    account = with_late(FOUR, TWO, ONE, TWO)
    assert account.kept_there(ASKS, 2000, lambda _: True) == 2000
    assert account.kept_there(ASKS, 2000, lambda shape: shape is ONE) == 1000
    account.late[RequestId("r1")] = 0  # room is made for it
    assert account.kept_there(ASKS, 2000, lambda _: True) == 1000


def test_a_guarantee_is_kept_for_the_first_that_is_late_and_no_larger() -> None:
    account = with_late(FOUR, TWO, ONE, TWO)
    assert [account.late_within(amount) for amount in (4000, 3000, 1000, 500)] == [
        (RequestId("r0"), 4000),
        (RequestId("r1"), 2000),
        (RequestId("r2"), 1000),
        None,
    ]
    account.late[RequestId("r1")] = 0  # room is made for it
    assert account.late_within(3000) == (RequestId("r2"), 1000)


def test_who_asks_for_something_else_keeps_the_place() -> None:
    lines, costs = LateLines(), {RequestId(name): 1000 for name in "abc"}
    for name in "abc":
        lines.add(RequestId(name), asks(ONE))
    lines.add(RequestId("a"), asks(TWO))
    assert lines.first(costs, lambda _: True) == "a"
    assert lines.first(costs, lambda shape: shape is ONE) == "b"
    lines.add(RequestId("a"), asks(ONE))
    assert lines.first(costs, lambda _: True) == "a"


def test_who_is_late_no_more_is_forgotten() -> None:
    lines = LateLines()
    lines.add(RequestId("a"), asks(ONE))
    lines.discard(RequestId("a"))
    lines.discard(RequestId("a"))
    assert lines.first({}, lambda _: True) is None
    assert lines.lines == {}
