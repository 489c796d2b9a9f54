"""Who speaks: the hub's word, believed for a minute, and for longer only while the hub is silent."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from bulletin.errors import NotAllowed
from gpu_worker.broker.identity import DEFAULT_PROJECT, Hub, Identity, Person
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    server = FakeHub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def identity(hub: FakeHub) -> Identity:
    return Identity("own", Hub(url=f"http://127.0.0.1:{hub.server_port}/hub/api", token="service"), SCOPE)


def who(identity: Identity, token: str, now_ms: int = 0) -> Person:
    return asyncio.run(identity.identify(token, now_ms))


def test_the_hub_says_who_and_in_which_groups(identity: Identity) -> None:
    person = who(identity, "ada-token")
    assert (person.user, person.groups, person.is_admin) == ("ada", ("bio", "ml"), False)
    assert person.project == "bio"


def test_a_user_without_a_group_pays_from_the_default(identity: Identity, hub: FakeHub) -> None:
    hub.groups = {}
    assert who(identity, "ada-token").project == DEFAULT_PROJECT


@pytest.mark.parametrize(
    ("token", "words"), [("eve-token", "no access"), ("stranger", "does not know"), ("svc-token", "service")]
)
def test_others_are_refused_with_a_sentence(identity: Identity, token: str, words: str) -> None:
    with pytest.raises(NotAllowed, match=words):
        who(identity, token)


def test_an_answer_is_believed_for_a_minute(identity: Identity, hub: FakeHub) -> None:
    who(identity, "ada-token", now_ms=0)
    asked = len(hub.asked)
    who(identity, "ada-token", now_ms=59_000)
    assert len(hub.asked) == asked
    del hub.users["ada-token"]
    with pytest.raises(NotAllowed):
        who(identity, "ada-token", now_ms=61_000)


def test_who_was_known_is_believed_while_the_hub_is_silent_and_nobody_else(identity: Identity, hub: FakeHub) -> None:
    who(identity, "ada-token", now_ms=0)
    hub.status = 503
    assert who(identity, "ada-token", now_ms=120_000).user == "ada"
    with pytest.raises(NotAllowed, match="Try again"):
        who(identity, "eve-token", now_ms=120_000)


def test_the_pools_own_token_needs_no_hub() -> None:
    alone = Identity("own", None, SCOPE)
    assert who(alone, "own").is_admin
    with pytest.raises(NotAllowed, match="connection file"):
        who(alone, "guess")
