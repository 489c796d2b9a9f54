"""News for the user, as what was decided of what they asked for: said where the user looks, and once."""

from bulletin.wire import messages as say
from bulletin.wire.messages.allowance_requests import AllowanceReport, AskAllowances
from bulletin_magic.connection.session_events import AllowancesAsked, PoolStatusAsked

from .stage import Stage, cell

GRANTED = say.News("a-1-granted", "lea granted it", "a-1")


def test_news_that_comes_between_two_cells_is_said_with_the_next_one_and_once() -> None:
    stage = Stage()
    stage.hot()
    stage.broker(say.Pong(news=(GRANTED,)))
    assert stage.notes() == []
    stage.do(cell("c2"))
    stage.broker(say.Pong(news=(GRANTED, say.News("a-2-declined", "sam declined that", "a-2"))))
    assert stage.notes() == ["lea granted it", "sam declined that"]


def test_news_is_said_to_who_looks_at_the_pool() -> None:
    stage = Stage()
    stage.welcome()
    stage.broker(say.Pong(news=(GRANTED,)))
    stage.do(PoolStatusAsked())
    assert stage.notes() == ["lea granted it"]


def test_what_is_decided_twice_in_the_same_words_is_said_twice() -> None:
    stage = Stage()
    stage.welcome()
    for name in ("a-1", "a-2", "a-2"):
        stage.broker(say.Pong(news=(say.News(f"{name}-declined", "sam declined it", name),)))
    stage.do(PoolStatusAsked())
    assert stage.notes() == ["sam declined it"] * 2


def test_who_waits_for_a_decision_reads_it_in_the_answer_alone() -> None:
    stage = Stage()
    stage.welcome()
    stage.do(AllowancesAsked(AskAllowances(), awaited="a-1"))
    stage.broker(say.Pong(news=(GRANTED, say.News("a-2-declined", "sam declined that", "a-2"))))
    stage.broker(AllowanceReport(rows=(), slot_word="GPU"))
    assert stage.notes() == ["sam declined that"]
    stage.broker(say.Pong(news=(GRANTED,)))
    stage.do(PoolStatusAsked())
    assert stage.notes() == []


def test_what_was_said_last_is_known_however_much_was_said() -> None:
    stage = Stage()
    stage.welcome()
    for number in range(1_000):
        stage.broker(say.Pong(news=(say.News(f"a-{number}-declined", "no", f"a-{number}"),)))
    stage.do(PoolStatusAsked())
    assert len(stage.notes()) == 1_000
    assert len(stage.session._broker._said) < 300, "a notebook that is open for long keeps little"
    stage.broker(say.Pong(news=(say.News("a-999-declined", "no", "a-999"),)))
    stage.do(PoolStatusAsked())
    assert stage.notes() == []
