"""Who asked for more is told what was decided, once, in a notebook: at once where one is open, else in the next."""

import asyncio

import pytest

from bulletin.units import DAY_MS
from bulletin.wire.messages.allowance_requests import AllowanceReport, DecideAllowance, RequestAllowance
from bulletin.wire.messages.own_cells import AskOwn, OwnReport
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, HOUR_MS, BrokerParts

MORE_TIME = RequestAllowance(walltime_ms=4 * HOUR_MS, why="my thesis")


@pytest.fixture
def broker(ledger: Ledger) -> BrokerParts:
    return restarted(ledger)


def restarted(ledger: Ledger) -> BrokerParts:
    broker = BrokerParts(ledger)
    broker.now_ms = 1_000 * DAY_MS
    asyncio.run(broker.console.recall())
    return broker


def ask(broker: BrokerParts, person: Person = ANN) -> str:
    report = broker.ask(person, MORE_TIME)
    assert isinstance(report, AllowanceReport)
    return report.rows[0].id


def decide(broker: BrokerParts, name: str, *, is_granted: bool = True, sentence: str = "") -> None:
    decision = DecideAllowance(id=name, is_granted=is_granted, for_ms=2 * DAY_MS, sentence=sentence)
    assert isinstance(broker.ask(ADMIN, decision), AllowanceReport)


def told_to_ann(broker: BrokerParts) -> list[str]:
    return [one.sentence for one in broker.console.allowances.news.take(ANN.user)]


def own(broker: BrokerParts) -> OwnReport:
    report = broker.ask(ANN, AskOwn())
    assert isinstance(report, OwnReport)
    return report


def test_a_decision_is_told_with_who_decided_and_until_when(broker: BrokerParts) -> None:
    name = ask(broker)
    assert (own(broker).awaits_decision, own(broker).decided) == (True, ())
    decide(broker, name, sentence="good luck")
    [told] = told_to_ann(broker)
    assert told.startswith("root granted what you asked for: cells of up to 4 h in project 'maths', until ")
    assert told.endswith(" (2 days, where you asked for 24 h). “good luck”")
    [listed] = own(broker).decided
    assert (f"{listed.title}: {listed.sentence}", listed.is_granted) == (told, True)
    assert not own(broker).awaits_decision
    decide(broker, name, is_granted=False)
    [ended] = told_to_ann(broker)
    assert ended == "root ended what you were granted: cells of up to 4 h in project 'maths'."
    assert [one.title for one in own(broker).decided] == ["root ended what you were granted"]
    broker.now_ms += 2 * DAY_MS
    assert own(broker).decided == ()


def test_it_is_told_once_also_by_a_broker_that_was_started_again(broker: BrokerParts, ledger: Ledger) -> None:
    decide(broker, ask(broker), is_granted=False)
    again = restarted(ledger)
    assert len(again.console.allowances.news.take(ANN.user)) == 1
    asyncio.run(again.console.allowances.news.keep_told())
    assert restarted(ledger).console.allowances.news.take(ANN.user) == ()
    assert again.console.allowances.news.take(ANN.user) == ()


def test_what_was_decided_before_any_broker_told_decisions_is_not_told(ledger: Ledger) -> None:
    earlier = BrokerParts(ledger)  # one that wrote down no word of what is told
    earlier.now_ms = 1_000 * DAY_MS - 1
    decide(earlier, ask(earlier), is_granted=False)
    broker = restarted(ledger)
    assert told_to_ann(broker) == []
    broker.now_ms += 1
    decide(broker, ask(broker), is_granted=False)
    [told] = told_to_ann(restarted(ledger))
    assert told.startswith("root declined")


def test_a_grant_that_is_over_before_anybody_could_be_told_is_not_told(broker: BrokerParts) -> None:
    decide(broker, ask(broker))
    broker.now_ms += 2 * DAY_MS
    assert told_to_ann(broker) == []


def test_each_decision_has_its_own_id_also_where_the_words_are_the_same(broker: BrokerParts) -> None:
    names = list[str]()
    for _ in range(2):
        names.append(ask(broker))
        decide(broker, names[-1], is_granted=False, sentence="use batch")
    news = broker.console.allowances.news.take(ANN.user)
    assert len({one.sentence for one in news}) == 1
    assert [one.id for one in news] == [f"{name}-declined" for name in names]
    assert [one.about for one in news] == names


def test_what_a_user_did_and_what_others_asked_for_is_no_news(broker: BrokerParts) -> None:
    name = ask(broker)
    broker.ask(ANN, DecideAllowance(id=name, is_granted=False))
    decide(broker, ask(broker, EVE))
    assert broker.console.allowances.news.take(ANN.user) == own(broker).decided == ()
