"""Who speaks: the hub's word, believed for a minute, and for longer only while the hub is silent."""

import asyncio
from collections.abc import Iterator

import pytest

from bulletin.errors import NotAllowed
from gpu_worker.broker.hub_answers import Hub, HubAway, HubSilent
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.scheduler.policy.projects import DEFAULT_PROJECT
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    server = FakeHub()
    with server.serving():
        yield server


@pytest.fixture
def identity(hub: FakeHub) -> Identity:
    return Identity("own", Hub(url=f"http://127.0.0.1:{hub.server_port}/hub/api", token="service"), SCOPE)


def who(identity: Identity, token: str, now_ms: int = 0) -> Person:
    return asyncio.run(identity.identify(token, now_ms))


def test_the_hub_says_who_and_in_which_groups(identity: Identity) -> None:
    person = who(identity, "ada-token")
    assert (person.user, person.groups, person.is_admin) == ("ada", ("bio", "ml"), False)
    assert person.project == "bio"


@pytest.mark.parametrize(
    ("own", "is_admin"),
    [([], False), (["admin-ui"], True), (["custom:bulletin:manage"], True)],
    ids=["of-a-server", "all-of-an-admins", "made-for-it"],
)
def test_an_admin_of_the_hub_is_one_here_by_the_tokens_scopes(
    identity: Identity, hub: FakeHub, own: list[str], is_admin: bool
) -> None:
    hub.admins.add("root")
    hub.users["root-token"] = {"name": "root", "kind": "user", "admin": True, "scopes": [SCOPE, *own]}
    person = who(identity, "root-token")
    assert (person.is_admin, person.lacks_scope) == (is_admin, not is_admin)


def test_a_scope_of_the_hubs_admins_manages_nothing_in_the_hands_of_others(identity: Identity, hub: FakeHub) -> None:
    hub.users["ada-token"]["scopes"] = [SCOPE, "admin-ui"]
    person = who(identity, "ada-token")
    assert (person.is_admin, person.lacks_scope) == (False, False)


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


def hide_groups(hub: FakeHub) -> None:
    """As a hub does whose service may not read groups (any more), or not yet."""
    hub.users["service"]["scopes"] = ["read:users:name"]
    hub.users["ada-token"].pop("groups", None)


def test_groups_that_are_not_shown_any_more_are_the_hubs_silence(identity: Identity, hub: FakeHub) -> None:
    assert who(identity, "ada-token", now_ms=0).groups == ("bio", "ml")
    hide_groups(hub)
    assert who(identity, "ada-token", now_ms=120_000).groups == ("bio", "ml")
    asked = len(hub.asked)
    assert who(identity, "ada-token", now_ms=120_500).groups == ("bio", "ml")
    assert len(hub.asked) == asked, "it is not asked again at each try"
    hub.groups = {}
    hub.users["service"]["scopes"] = ["read:users:name", "read:users:groups"]
    assert who(identity, "ada-token", now_ms=240_000).groups == (), "that there are none any more has been shown"


def test_groups_that_are_hidden_are_believed_for_an_hour(identity: Identity, hub: FakeHub) -> None:
    who(identity, "ada-token", now_ms=0)
    hide_groups(hub)
    assert who(identity, "ada-token", now_ms=3_600_000).groups == ("bio", "ml")
    assert who(identity, "ada-token", now_ms=3_660_000).project == DEFAULT_PROJECT


def test_what_one_token_shows_of_groups_is_held_against_no_other(identity: Identity, hub: FakeHub) -> None:
    """As where the service may not read groups, and some tokens of the same user show them."""
    hide_groups(hub)
    hub.users["ada-again"] = hub.users["ada-token"] | {"groups": ["bio", "ml"]}
    assert who(identity, "ada-again").groups == ("bio", "ml")
    assert who(identity, "ada-token").project == DEFAULT_PROJECT
    assert who(identity, "ada-again", now_ms=120_000).groups == ("bio", "ml")


def test_who_the_hub_never_showed_the_groups_of_pays_from_the_default(identity: Identity, hub: FakeHub) -> None:
    hide_groups(hub)
    assert who(identity, "ada-token").project == DEFAULT_PROJECT
    assert who(identity, "ada-token", now_ms=120_000).project == DEFAULT_PROJECT


@pytest.mark.parametrize("odd", [b"{}", b'{"name": "ada", "kind": "user"}', b'{"scopes": []}', b"null", b"<html>"])
def test_an_answer_that_a_hub_does_not_give_takes_nothing(identity: Identity, hub: FakeHub, odd: bytes) -> None:
    who(identity, "ada-token", now_ms=0)
    hub.body = odd
    assert who(identity, "ada-token", now_ms=120_000).groups == ("bio", "ml")
    with pytest.raises(HubSilent, match="could not be read"):
        who(identity, "eve-token", now_ms=120_000)


def test_where_the_hubs_address_leads_elsewhere_nobody_loses_anything(identity: Identity, hub: FakeHub) -> None:
    who(identity, "ada-token", now_ms=0)
    hub.status = 404
    assert who(identity, "ada-token", now_ms=120_000).user == "ada"


def test_the_page_is_known_by_the_services_own_token(identity: Identity, hub: FakeHub) -> None:
    person = asyncio.run(identity.identify("service", now_ms=0))
    assert (person.user, person.is_admin, person.is_owner) == ("bulletin", True, False)
    assert hub.asked == []


def test_the_pools_own_token_needs_no_hub() -> None:
    alone = Identity("own", None, SCOPE)
    assert who(alone, "own").is_admin
    with pytest.raises(NotAllowed, match="connection file"):
        who(alone, "guess")


def test_a_refused_token_is_refused_for_some_seconds_without_asking(identity: Identity, hub: FakeHub) -> None:
    for _ in range(20):
        with pytest.raises(NotAllowed, match="does not know"):
            who(identity, "guess", now_ms=0)
    assert len(hub.asked) == 1
    hub.users["guess"] = hub.users["ada-token"]
    assert who(identity, "guess", now_ms=11_000).user == "ada"


def test_of_many_who_show_the_same_token_the_hub_is_asked_once(identity: Identity, hub: FakeHub) -> None:
    async def together() -> list[Person]:
        return list(await asyncio.gather(*(identity.identify("ada-token", 0) for _ in range(50))))

    assert {person.user for person in asyncio.run(together())} == {"ada"}
    assert len(hub.asked) == 2, "the token, and its user's groups"


def test_who_is_known_is_asked_about_while_strangers_keep_the_hub_busy(identity: Identity, hub: FakeHub) -> None:
    async def main() -> str:
        await identity.identify("ada-token", 0)
        hub.answers.clear()
        guesses = [asyncio.create_task(identity.identify(f"guess-{number}", 70_000)) for number in range(500)]
        while len(hub.asked) < 5:  # as many of them as are asked about at once
            await asyncio.to_thread(hub.asks.wait)
            hub.asks.clear()
        known = asyncio.create_task(identity.identify("ada-token", 70_000))
        while len(hub.asked) < 6:
            await asyncio.to_thread(hub.asks.wait)
            hub.asks.clear()
        hub.answers.set()
        person = await known
        assert not all(guess.done() for guess in guesses), "they wait for each other, and it for none of them"
        for guess in guesses:
            guess.cancel()
        return person.user

    assert asyncio.run(main()) == "ada"


def test_of_many_in_one_group_the_hub_is_asked_once(identity: Identity, hub: FakeHub) -> None:
    hub.group_properties["ml"] = {"kind": "course"}

    async def together() -> set[tuple[tuple[str, str], ...]]:
        return set(await asyncio.gather(*(identity.ask_about_group("ml", 0) for _ in range(50))))

    assert asyncio.run(together()) == {(("kind", "course"),)}
    assert len(hub.asked) == 1


def test_who_is_known_is_asked_about_while_groups_and_strangers_keep_the_hub_busy(
    identity: Identity, hub: FakeHub
) -> None:
    async def main() -> tuple[str, int]:
        await identity.identify("ada-token", 0)
        before = len(hub.asked)
        hub.answers.clear()
        guesses = [asyncio.create_task(identity.identify(f"guess-{number}", 70_000)) for number in range(50)]
        groups = [asyncio.create_task(identity.ask_about_group(f"g{number}", 70_000)) for number in range(50)]
        while len(hub.asked) < before + 5:  # as many of both as are asked about at once
            await asyncio.to_thread(hub.asks.wait)
            hub.asks.clear()
        known = asyncio.create_task(identity.identify("ada-token", 70_000))
        while "/hub/api/user" not in hub.asked[before + 5 :]:
            await asyncio.to_thread(hub.asks.wait)
            hub.asks.clear()
        asked_of = sum(path.startswith("/hub/api/groups/") for path in hub.asked)
        hub.answers.set()
        person = await known
        for one in (*guesses, *groups):
            one.cancel()
        await asyncio.gather(*guesses, *groups, return_exceptions=True)
        return person.user, asked_of

    assert asyncio.run(main()) == ("ada", 2)


def test_a_hub_that_cannot_say_is_not_asked_of_the_same_group_again_at_once(identity: Identity, hub: FakeHub) -> None:
    hub.status = 500
    for group in ("ml", "ml", "bio"):
        with pytest.raises(HubSilent, match="it answered 500"):
            asyncio.run(identity.ask_about_group(group, 0))
    assert hub.asked == ["/hub/api/groups/ml", "/hub/api/groups/bio"]
    hub.status = 404
    assert asyncio.run(identity.ask_about_group("ml", 600_000)) == ()


def test_who_waited_while_the_hub_was_away_does_not_wait_once_more(
    identity: Identity, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_worker.broker.identity._ANSWER_S", 0.3)
    hub.answers.clear()

    async def together() -> list[BaseException | tuple[tuple[str, str], ...]]:
        asked = (identity.ask_about_group(f"g{number}", 0) for number in range(50))
        return await asyncio.gather(*asked, return_exceptions=True)

    said = asyncio.run(together())
    asked = len(hub.asked)
    hub.answers.set()
    assert all(isinstance(one, HubAway) for one in said)
    assert asked == 2


@pytest.mark.parametrize("token", ["two\nlines", "\x00", "tök"])
def test_a_token_that_is_none_is_not_the_hubs_silence(identity: Identity, hub: FakeHub, token: str) -> None:
    with pytest.raises(NotAllowed, match="does not know"):
        who(identity, token)
    assert hub.asked == []
    assert who(identity, "ada-token").user == "ada"


def test_an_answer_that_is_no_answer_is_the_hubs_silence(identity: Identity, hub: FakeHub) -> None:
    hub.users["ada-token"] = {"name": "ada", "kind": "user", "scopes": None, "groups": 7}
    with pytest.raises(NotAllowed, match="could not be read"):
        who(identity, "ada-token")


def test_an_answer_that_goes_too_deep_is_the_hubs_silence(identity: Identity, hub: FakeHub) -> None:
    hub.body = b'{"more": ' + b"[" * 100_000
    with pytest.raises(HubSilent, match="could not be read"):
        who(identity, "ada-token")


def test_no_token_goes_where_the_hub_sends_it(identity: Identity, hub: FakeHub) -> None:
    other = FakeHub()
    with other.serving():
        hub.elsewhere = f"http://127.0.0.1:{other.server_port}"
        with pytest.raises(HubSilent, match="it answered 302"):
            who(identity, "ada-token")
    assert other.asked == []


def test_an_answer_that_comes_byte_by_byte_is_not_waited_for(
    identity: Identity, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_worker.broker.identity._ANSWER_S", 0.3)
    hub.pause_s = 0.05
    with pytest.raises(HubAway):
        who(identity, "ada-token")
