"""The first cell of a group that nobody named waits for the quota file and the ledger, and nobody else does."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.ids import KernelId, ProjectId, RequestId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.policy import Policy
from gpu_worker.broker.policy_follower import PolicyFollower
from gpu_worker.broker.seen_groups import SEEN, SeenGroups
from gpu_worker.config import Pool
from gpu_worker.scheduler.policy.group_rules import HubGroup
from tests.unit.gpu_worker.broker.broker_parts import TOKEN, BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub

ML = wire.Hello(protocol=wire.PROTOCOL, version="1", token="ml-token", kernel=KernelId("k"))
OTHER = wire.Hello(protocol=wire.PROTOCOL, version="1", token=TOKEN, kernel=KernelId("o"))
SUBMIT = wire.Submit(request=RequestId("1"))


@pytest.fixture
def pool(broker: BrokerParts, tmp_path: Path) -> Iterator[BrokerParts]:
    """A pool of a hub, with a rule for courses; `ml-token` is a member of one."""
    (tmp_path / "quotas.toml").write_text('[group_rules.courses]\ngroups = ["course-*"]\nlimit = 2\n')
    hub = FakeHub()
    hub.users["ml-token"] = {"name": "ml", "kind": "user", "scopes": [SCOPE]}
    hub.groups["ml"] = ["course-ml"]
    with hub.serving():
        known = Hub(url=f"http://127.0.0.1:{hub.server_address[1]}/hub/api", token="service")
        broker.identity = broker.kernels._identity = Identity(TOKEN, known, SCOPE)
        broker.use_quota_file(tmp_path / "quotas.toml")
        yield broker


async def settle() -> None:
    """Wait for all that is done aside."""
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


async def hello(pool: BrokerParts) -> None:
    for route, message in ((b"ml", ML), (b"other", OTHER)):
        await pool.kernels.take(route, message)
        await settle()


async def say(pool: BrokerParts, route: bytes, message: wire.FromKernel) -> None:
    """Say something to a broker that answers as soon as it has its turn."""
    taking = asyncio.ensure_future(pool.kernels.take(route, message))
    for _ in range(10):
        await asyncio.sleep(0)
    if not taking.done():
        taking.cancel()
        pytest.fail("the messages of all notebooks wait for the quota file")


def waiting(pool: BrokerParts) -> list[str]:
    return [one.message.request for one in pool.shell.pending_requests.values()]


def test_others_are_answered_while_the_quota_file_cannot_be_read(pool: BrokerParts) -> None:
    async def main() -> None:
        await hello(pool)
        async with pool.follower._loading:  # as while a file system hangs, or the database is away
            await say(pool, b"ml", SUBMIT)
            pool.to_routes.clear()
            await say(pool, b"other", wire.Ping())
            await say(pool, b"other", wire.Submit(request=RequestId("2")))
            assert pool.to_routes == [(b"other", wire.Pong())]
            assert waiting(pool) == ["2"]
        await settle()
        assert waiting(pool) == ["2", "1"]
        async with pool.follower._loading:  # a group that is known waits for nothing
            await say(pool, b"ml", wire.Submit(request=RequestId("3")))
            assert waiting(pool) == ["2", "3"]

    asyncio.run(main())


def test_a_request_that_is_said_again_meanwhile_is_one(pool: BrokerParts) -> None:
    async def main() -> None:
        await hello(pool)
        pool.to_routes.clear()
        async with pool.follower._loading:
            for _ in range(20):
                await say(pool, b"ml", SUBMIT)
        await settle()
        assert waiting(pool) == ["1"]
        assert pool.to_routes == []

    asyncio.run(main())


def test_a_request_that_is_withdrawn_meanwhile_does_not_come_back(pool: BrokerParts) -> None:
    async def main() -> None:
        await hello(pool)
        async with pool.follower._loading:
            await say(pool, b"ml", SUBMIT)
            await say(pool, b"ml", wire.Withdraw(request=SUBMIT.request))
        await settle()
        assert waiting(pool) == []

    asyncio.run(main())


class GroupsOfOneThread(SeenGroups):
    """Groups, with the threads in which they were listed."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    @property
    def groups(self) -> list[HubGroup]:
        self.threads.add(threading.get_ident())
        return super().groups


def test_groups_that_come_while_the_file_is_read_neither_end_the_broker_nor_lack_their_rule(
    pool: BrokerParts, tmp_path: Path
) -> None:
    """They are listed where they are noted: a dict that grows while another thread lists it ends that one."""
    file = tmp_path / "quotas.toml"
    groups = GroupsOfOneThread()
    policy = Policy(Pool(quota_file=str(file)).settings(), groups=groups)
    follower = PolicyFollower(policy, pool.ledger, pool.writer, 0, pool.clock_ms)
    text = file.read_text()

    async def main() -> None:
        file.write_text(text + "# more\n[projects.staff]\n")
        loading = asyncio.ensure_future(follower.load(pool.shell))
        await asyncio.sleep(0)  # it is being read now
        groups.note("course-ml", UserName("ml"), 0)
        await loading

    asyncio.run(main())
    assert groups.threads == {threading.get_ident()}
    assert pool.shell.scheduler.state.accounts.of(ProjectId("course-ml")).project.rule == "courses"


def test_it_runs_once_a_broker_that_came_later_would_know_of_the_group(pool: BrokerParts) -> None:
    async def main() -> None:
        await hello(pool)
        await say(pool, b"ml", SUBMIT)
        assert waiting(pool) == []
        asking = asyncio.all_tasks() - {asyncio.current_task()}
        writing = asyncio.ensure_future(pool.writer.run())
        await asyncio.gather(*asking)
        assert waiting(pool) == ["1"]
        assert [one["name"] for one in pool.ledger.event_payloads(SEEN)] == ["course-ml"]
        writing.cancel()

    asyncio.run(main())


def test_a_class_whose_students_each_have_a_group_of_their_own_is_let_in_together(pool: BrokerParts) -> None:
    """Each time that projects change, all that the scheduler knows of projects is made anew."""
    people = [Person(user=UserName(f"u{n}"), groups=(f"course-{n}",)) for n in range(30)]
    in_force: list[object] = []

    async def main() -> None:
        coming = [asyncio.ensure_future(pool.groups.learn(one, one.project)) for one in people]
        while not all(one.done() for one in coming):
            now = pool.shell.scheduler.settings
            if not in_force or in_force[-1] is not now:
                in_force.append(now)
            await asyncio.wait(coming, timeout=0)
        assert [one.result() for one in coming] == [None] * len(people)

    asyncio.run(main())
    projects = {one.id: one.limit_milli for one in pool.shell.scheduler.settings.projects}
    assert all(projects[one.project] == 2000 for one in people)
    assert len(in_force) <= 4
