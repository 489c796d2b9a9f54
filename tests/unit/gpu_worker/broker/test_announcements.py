"""What an admin announces: who may, who hears of it how often, until when, and what a restart leaves of it."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from bulletin.errors import LedgerAway
from bulletin.wire import messages as wire
from bulletin.wire.messages.announcements import SENTENCE_LIMIT, Announce, AskAnnouncement
from bulletin.wire.messages.own_cells import AskOwn
from gpu_worker.broker.announcement_board import ANNOUNCED
from gpu_worker.broker.ledger import Ledger
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, HOUR_MS, BrokerParts

DOWN = Announce(sentence="the pool is down from six on", for_ms=HOUR_MS)
SAID = "Announcement by root: the pool is down from six on"


def tell(broker: BrokerParts) -> list[str]:
    """Let a second pass: everybody hears where they stand. Return what is announced to whom waits in it."""
    broker.to_sessions.clear()
    broker.now_ms += 1_000
    asyncio.run(broker.shell.tell_queue())
    told = [message for _, message in broker.to_sessions if isinstance(message, wire.Queued)]
    assert told
    return [one.announcement for one in told if one.announcement]


def test_who_waits_is_told_once_and_who_comes_later_is_told_too(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    broker.submit(ANN, "cell-a")
    broker.ask(ADMIN, DOWN)
    assert [tell(broker), tell(broker), tell(broker)] == [[SAID], [], []]
    broker.submit(ANN, "cell-a")
    assert tell(broker) == [SAID], "a link that was cut may have lost it"
    broker.submit(EVE, "cell-e2")
    assert [tell(broker), tell(broker)] == [[SAID], []]


def test_a_new_one_takes_the_place_of_the_last_and_is_told_again(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    broker.submit(ANN, "cell-a")
    broker.ask(ADMIN, DOWN)
    tell(broker)
    broker.ask(ADMIN, Announce(sentence="It is up again!", for_ms=HOUR_MS))
    assert [tell(broker), tell(broker)] == [["Announcement by root: It is up again!"], []]


def test_it_is_over_at_its_time_or_when_it_is_taken_back(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    broker.ask(ADMIN, DOWN)
    assert broker.ask(ANN, AskOwn()).announcement == SAID
    broker.now_ms += HOUR_MS
    broker.submit(ANN, "cell-a")
    assert tell(broker) == []
    assert broker.ask(ANN, AskAnnouncement()).announcement is None
    assert broker.ask(ANN, AskOwn()).announcement == ""
    broker.ask(ADMIN, DOWN)
    assert broker.ask(ADMIN, Announce(is_undone=True)).announcement is None
    assert tell(broker) == []
    assert broker.ask(ADMIN, Announce(is_undone=True)).announcement is None, "said again, it is as is wanted"


def test_admins_alone_announce_and_with_an_end_and_in_words_that_move_no_cursor(broker: BrokerParts) -> None:
    assert "Only admins" in broker.refusal(ANN, DOWN)
    assert "Only admins" in broker.refusal(ANN, Announce(is_undone=True))
    assert "an end" in broker.refusal(ADMIN, Announce(sentence="For ever."))
    assert "an end" in broker.refusal(ADMIN, Announce(sentence="For long.", for_ms=32 * 24 * HOUR_MS))
    assert "Say what" in broker.refusal(ADMIN, Announce(sentence="\x1b\u202e \n", for_ms=HOUR_MS))
    long = "\x1b[2J" + "é" * (SENTENCE_LIMIT - 4)
    found = broker.ask(ADMIN, Announce(sentence=long, for_ms=HOUR_MS)).announcement
    assert found is not None
    assert (found.sentence, found.by, found.left_ms) == ("[2J" + "é" * (SENTENCE_LIMIT - 4), "root", HOUR_MS)


def test_a_broker_that_is_started_again_announces_it_on_and_the_ledger_says_who_did(broker: BrokerParts) -> None:
    broker.ask(ADMIN, DOWN)
    again = BrokerParts(broker.ledger)
    again.now_ms = HOUR_MS - 1
    asyncio.run(again.console.recall())
    found = again.ask(ANN, AskAnnouncement()).announcement
    assert found is not None
    assert (found.sentence, found.left_ms) == ("the pool is down from six on", 1)
    again.ask(ADMIN, Announce(is_undone=True))
    third = BrokerParts(broker.ledger)
    asyncio.run(third.console.recall())
    assert third.ask(ANN, AskAnnouncement()).announcement is None
    assert [one["by"] for one in broker.ledger.event_payloads(ANNOUNCED)] == ["root", "root"]


def test_what_is_taken_back_while_the_ledger_is_away_does_not_come_back_with_a_restart(
    tmp_path: Path, fill_disk: Callable[[Path], AbstractContextManager[None]]
) -> None:
    path, late = tmp_path / "ledger.db", tmp_path / "late.jsonl"
    with Ledger.open(f"sqlite:///{path}") as ledger:
        broker = BrokerParts(ledger, late=late)
        broker.ask(ADMIN, DOWN)
        with fill_disk(path):
            assert broker.ask(ADMIN, Announce(is_undone=True)).announcement is None
            broker.ask(ADMIN, Announce(sentence="It is up again!", for_ms=HOUR_MS))
            broker.ask(ADMIN, Announce(is_undone=True))
        with late.open("ab") as file:
            file.write(b'{"id": "torn')  # its writer was killed
        again = BrokerParts(ledger, late=late)
        asyncio.run(again.console.recall())
        assert again.ask(ANN, AskAnnouncement()).announcement is None
        assert [note["sentence"] for note in ledger.event_payloads(ANNOUNCED)] == [
            "the pool is down from six on",
            "",
            "It is up again!",
            "",
        ]
        asyncio.run(again.console.recall())
        assert len(ledger.event_payloads(ANNOUNCED)) == 4, "each is written once"


def test_what_is_said_while_the_ledger_is_away_is_in_it_when_it_is_back(
    tmp_path: Path, fill_disk: Callable[[Path], AbstractContextManager[None]]
) -> None:
    path, late = tmp_path / "ledger.db", tmp_path / "late.jsonl"

    with Ledger.open(f"sqlite:///{path}") as ledger:
        broker = BrokerParts(ledger, late=late)
        with fill_disk(path):
            broker.ask(ADMIN, DOWN)
            with pytest.raises(LedgerAway):
                asyncio.run(broker.notes.hand_on())
        asyncio.run(broker.notes.hand_on())
        assert not late.exists()
        assert [note["sentence"] for note in ledger.event_payloads(ANNOUNCED)] == [DOWN.sentence]
