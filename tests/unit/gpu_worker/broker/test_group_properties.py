"""Rules that ask what hub groups have: the hub's word, what is known of it, and never a cell without its rule."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from bulletin.ids import ProjectId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.seen_groups import MOST_OF_USER, SEEN
from gpu_worker.scheduler.policy.projects import Project
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub

BY_PROPERTY = '[group_rules.x]\nproperties = ["kind=course"]\nlimit = 1\n'


def written(broker: BrokerParts) -> None:
    """Let the ledger have what was to be written, as at the end of a broker."""
    broker.writer.close()


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    with hub.serving():
        hub.users["ml-token"] = {"name": "ml", "kind": "user", "scopes": [SCOPE]}
        yield hub


def of_hub(broker: BrokerParts, hub: FakeHub, tmp_path: Path) -> None:
    """Let the broker know this hub, and rules that ask for what groups are there."""
    path = tmp_path / "quotas.toml"
    path.write_text(BY_PROPERTY)
    known = Hub(url=f"http://127.0.0.1:{hub.server_address[1]}/hub/api", token="service")
    broker.identity = Identity("token", known, SCOPE)
    broker.use_quota_file(path)


def test_the_hub_is_asked_for_properties_where_a_rule_wants_them_and_again_after_a_minute(
    broker: BrokerParts, hub: FakeHub, tmp_path: Path
) -> None:
    of_hub(broker, hub, tmp_path)
    person = Person(user=UserName("ml"), groups=("a b/c",))
    hub.group_properties["a b/c"] = {"kind": "course", "big": ["x"]}
    assert broker.groups.must_ask(person, ProjectId("a b/c"))
    assert broker.learn(person) == ""
    made = broker.project("a b/c")
    assert made is not None
    assert (made.rule, made.limit_milli) == ("x", 1000)
    hub.group_properties["a b/c"] = {"kind": "club"}
    assert not broker.groups.must_ask(person, ProjectId("a b/c"))
    broker.learn(person)
    assert hub.asked == ["/hub/api/groups/a%20b%2Fc"]
    broker.now_ms += 60_000
    assert broker.learn(person) == ""
    broker.submit(person, "1", qos="interactive", gpus=2)  # it is what it was before there were rules
    assert broker.project("a b/c") == Project(id=ProjectId("a b/c"))
    written(broker)
    assert [one["properties"] for one in broker.ledger.event_payloads(SEEN)] == [
        [["kind", "course"]],
        [["kind", "club"]],
    ]


def test_a_hub_that_does_not_answer_makes_no_project_without_its_rule(
    broker: BrokerParts, hub: FakeHub, tmp_path: Path
) -> None:
    of_hub(broker, hub, tmp_path)
    person = Person(user=UserName("ml"), groups=("ml",))
    hub.group_properties["ml"] = {"kind": "course"}
    hub.status = 500
    assert "Try again in a moment" in broker.learn(person)
    hub.status = 200
    broker.now_ms += 10_000
    assert broker.learn(person) == ""
    broker.now_ms += 60_000
    hub.status = 500
    assert broker.learn(person) == "", "it is believed what the hub said last"
    made = broker.project("ml")
    assert made is not None
    assert made.rule == "x"


def test_a_hub_that_shows_no_groups_to_the_pool_lets_no_group_out_of_its_rule(
    broker: BrokerParts, hub: FakeHub, tmp_path: Path
) -> None:
    of_hub(broker, hub, tmp_path)
    known, unseen = (Person(user=UserName(name), groups=(name,)) for name in ("known", "unseen"))
    hub.group_properties["known"] = {"kind": "course"}
    assert broker.learn(known) == ""
    hub.group_properties.clear()
    for is_later_broker in (False, True):
        if is_later_broker:
            written(broker)
            broker.use_quota_file(tmp_path / "quotas.toml")
        broker.now_ms += 60_000
        with structlog.testing.capture_logs() as logs:
            for _ in range(2):
                assert broker.learn(known) == "", "what the hub said once is known"
                assert "its service needs the scope read:groups of the hub" in broker.learn(unseen)
        assert [one["lacks_scope"] for one in logs if "lacks_scope" in one] == ["read:groups"]
        made = broker.project("known")
        assert made is not None
        assert made.rule == "x"
    hub.group_properties["unseen"] = {}
    broker.now_ms += 10_000
    assert broker.learn(unseen) == "", "no rule is for it"


def test_of_a_group_that_the_hub_does_not_have_it_says_so(broker: BrokerParts, hub: FakeHub, tmp_path: Path) -> None:
    of_hub(broker, hub, tmp_path)
    hub.status = 404
    assert broker.learn(Person(user=UserName("ml"), groups=("gone",))) == ""


def test_what_the_file_names_is_what_the_file_says_whatever_the_hub_says_and_takes_no_place(
    broker: BrokerParts, hub: FakeHub, tmp_path: Path
) -> None:
    of_hub(broker, hub, tmp_path)
    names = [f"lab{number}" for number in range(MOST_OF_USER + 1)]
    file = tmp_path / "quotas.toml"
    file.write_text(BY_PROPERTY + "".join(f"[projects.{name}]\nlimit = 2\n" for name in names))
    broker.use_quota_file(file)
    eve = Person(user=UserName("eve"), groups=(*names, "course"))
    hub.status = 500
    for name in names:
        assert not broker.groups.must_ask(eve, ProjectId(name))
        assert broker.learn(eve, name) == ""
    assert hub.asked == []
    hub.status, hub.group_properties["course"] = 200, {"kind": "course"}
    assert broker.learn(eve, "course") == "", "the file's projects are none of the 50 that she may bring"
    broker.submit(eve, "1", names[0], qos="interactive", gpus=1)
    file.write_text('[group_rules.all]\ngroups = ["*"]\nlimit = 1\n')
    asyncio.run(broker.follower.load(broker.shell))
    unnamed = broker.project(names[0])
    assert unnamed is not None
    assert unnamed.rule == "all", "a rule holds for it at once where it is named no more"


def test_who_brings_too_many_groups_is_refused_at_each_try_by_what_the_hub_said_at_the_first(
    broker: BrokerParts, hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_hub(broker, hub, tmp_path)
    names = ("one-more", *(f"g{number}" for number in range(MOST_OF_USER)))
    hub.group_properties = {name: {"kind": "course"} for name in (*names, "ml")}
    eve = Person(user=UserName("eve"), groups=names)
    for name in names[1:]:
        assert broker.learn(eve, name) == ""
    obey, describe = broker.follower.obey, broker.identity.ask_about_group
    is_obeying, is_told, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def obey_later(shell: SchedulerShell) -> None:
        is_obeying.set()
        await go_on.wait()
        await obey(shell)

    async def tell(group: str, now_ms: int) -> tuple[tuple[str, str], ...]:
        told = await describe(group, now_ms)
        is_told.set()
        return told

    async def come(person: Person, name: str) -> str:
        said = await broker.groups.learn(person, ProjectId(name))
        return "" if said is None else said.problem

    async def at_once() -> list[str]:
        of_ml = asyncio.create_task(come(Person(user=UserName("ml"), groups=("ml",)), "ml"))
        await is_obeying.wait()
        is_told.clear()
        first = asyncio.create_task(come(eve, names[0]))
        await is_told.wait()
        second = asyncio.create_task(come(eve, names[0]))
        await asyncio.sleep(0)
        go_on.set()
        return [await of_ml, await first, await second]

    monkeypatch.setattr(broker.follower, "obey", obey_later)
    monkeypatch.setattr(broker.identity, "ask_about_group", tell)
    of_ml, first, second = asyncio.run(at_once())
    assert of_ml == ""
    assert "You were the first in 50 groups" in first
    assert second == first
    assert "You were the first in 50 groups" in broker.learn(eve, names[0])


def test_of_many_properties_those_count_that_a_rule_asks_for(broker: BrokerParts, hub: FakeHub, tmp_path: Path) -> None:
    of_hub(broker, hub, tmp_path)
    hub.group_properties["ml"] = {**{f"a{number}": "x" for number in range(1000)}, "kind": "course"}
    assert broker.learn(Person(user=UserName("ml"), groups=("ml",))) == ""
    made = broker.project("ml")
    assert made is not None
    assert made.rule == "x"
    written(broker)
    assert [one["properties"] for one in broker.ledger.event_payloads(SEEN)] == [[["kind", "course"]]]


def test_a_new_rule_by_properties_holds_for_groups_whose_cells_wait(
    broker: BrokerParts, hub: FakeHub, tmp_path: Path
) -> None:
    of_hub(broker, hub, tmp_path)
    file = tmp_path / "quotas.toml"
    file.write_text('[group_rules.labs]\nproperties = ["kind=lab"]\nlimit = 1\n')
    broker.use_quota_file(file)
    hub.group_properties["ml"] = {"kind": "course", "term": "2026"}
    person = Person(user=UserName("ml"), groups=("ml",))
    assert broker.learn(person) == ""
    broker.submit(person, "1", qos="interactive", gpus=2)
    assert not any(isinstance(said, wire.Refusal) for _, said in broker.to_sessions)
    file.write_text('[group_rules.term]\nproperties = ["term=2026"]\nlimit = 1\n')
    asyncio.run(broker.follower.load(broker.shell))
    hub.status = 500
    asyncio.run(broker.groups.ask_again())
    hub.status = 200
    broker.now_ms += 10_000
    asyncio.run(broker.groups.ask_again())
    made = broker.project("ml")
    assert made is not None
    assert made.rule == "term"
    assert isinstance(broker.to_sessions[-1][1], wire.Refusal), "more is asked for than it may have now"
    asyncio.run(broker.groups.ask_again())
    assert hub.asked == ["/hub/api/groups/ml"] * 3, "all groups in use are known now"
