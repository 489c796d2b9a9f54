"""Where notebooks reach an agent: at the address that its host has now."""

import asyncio
from pathlib import Path

import pytest

from bulletin.wire import messages as wire
from bulletin.wire.keys import make_keys
from gpu_worker.agent import own_address
from gpu_worker.agent.membership import Membership
from gpu_worker.agent.own_address import OwnAddress
from gpu_worker.config import Pool
from gpu_worker.reachability import parse
from tests.unit.gpu_worker.agent.agent_parts import agent_parts


class Link:
    """The way to the broker, which begins at one address of this host after the other."""

    def __init__(self, *hosts: str) -> None:
        self._hosts = list(hosts)

    async def find_own_host(self) -> str:
        return self._hosts.pop(0)


def node_in(folder: Path) -> Membership:
    return Membership(
        file=folder / "node.json",
        broker_address="tcp://10.77.0.1:9002",
        broker_public_key="",
        own=make_keys(),
        node="node1",
        serves_hub=True,
    )


def test_notebooks_are_told_the_address_that_the_host_has_got_in_the_place_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_address, "_LOOK_S", 0.01)

    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            settings = Pool(folder=str(tmp_path), host="0.0.0.0").settings()
            link = Link("192.0.2.1", "192.0.2.1", "127.0.0.1")  # of RFC 5737: this host has it not
            own = OwnAddress(settings, node_in(tmp_path), agent.server, link)  # type: ignore[arg-type]
            before = parse(await own.open())
            after = parse(await own.wait_for_other())
            assert before is not None
            assert (before[0], after) == ("192.0.2.1", ("127.0.0.1", before[1])), "at the same port"

    asyncio.run(main())


def test_an_agent_that_cannot_listen_at_another_address_listens_where_it_did_once_that_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_address, "_LOOK_S", 0.01)
    here = iter((False,))  # away for one look
    monkeypatch.setattr(own_address, "is_of_this_host", lambda _: next(here, True))

    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            settings = Pool(folder=str(tmp_path)).settings()
            link = Link("127.0.0.2", "192.0.2.1", "192.0.2.1", "127.0.0.2")  # as one whose lease ran out at once
            own = OwnAddress(settings, node_in(tmp_path), agent.server, link)  # type: ignore[arg-type]
            before = await own.open()
            async with asyncio.timeout(30):
                assert await own.wait_for_other() == before
            agent.address = before
            assert isinstance(await agent.kernel().attach(agent.session("lease")), wire.Attached)

    asyncio.run(main())


def test_an_agent_whose_host_was_said_by_a_name_listens_where_that_leads_to_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_address, "_LOOK_S", 0.01)
    leads_to = iter(("127.0.0.1", "192.0.2.1", "127.0.0.2"))  # not known yet; another host's; known
    monkeypatch.setattr(own_address, "resolve", lambda name: next(leads_to))
    monkeypatch.setattr(own_address, "is_of_this_host", lambda host: host == "127.0.0.2")

    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            settings = Pool(folder=str(tmp_path), host="localhost").settings()
            own = OwnAddress(settings, node_in(tmp_path), agent.server, Link("127.0.0.1"))  # type: ignore[arg-type]
            before = parse(await own.open())
            async with asyncio.timeout(30):
                agent.address = await own.wait_for_other()
            assert before is not None
            assert (before[0], parse(agent.address)) == ("127.0.0.1", ("127.0.0.2", before[1])), "at the same port"
            assert isinstance(await agent.kernel().attach(agent.session("lease")), wire.Attached)

    asyncio.run(main())


def test_a_notebook_that_was_there_is_let_in_again_where_its_agent_listens_instead(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session = agent.session("lease")
            assert isinstance(await agent.kernel().attach(session), wire.Attached)
            before, agent.address = parse(agent.address), agent.server.bind("127.0.0.2")
            assert before is not None
            assert parse(agent.address) == ("127.0.0.2", before[1]), "at the same port"
            assert isinstance(await agent.kernel().attach(session), wire.Attached)

    asyncio.run(main())
