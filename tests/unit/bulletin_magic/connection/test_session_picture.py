"""What a session shows of the pool when somebody asks how it stands."""

from bulletin.codes import RefusalCode
from bulletin.errors import NoPool
from bulletin.wire import messages as say
from bulletin_magic.connection.deliveries import PoolStatus
from bulletin_magic.connection.session_events import PoolStatusAsked

from .stage import HELLO, Stage, failure

PICTURE = say.Picture(slots=(), waiting=(), recent=(), counters={}, uptime_ms=1, slot_word="GPU")


def test_the_pool_can_be_looked_at_by_a_stranger_and_by_a_friend() -> None:
    stage = Stage()
    stage.do(PoolStatusAsked())
    assert stage.said_to_broker() == [HELLO]
    stage.welcome()
    assert stage.said_to_broker() == [say.Look()]
    stage.broker(PICTURE)
    stage.broker(PICTURE)
    assert stage.delivered() == [PoolStatus(picture=PICTURE, lease=None)]
    stage.do(PoolStatusAsked())
    assert stage.said_to_broker() == [say.Look()]


def test_a_pool_that_shows_no_picture_is_no_pool() -> None:
    stage = Stage()
    stage.do(PoolStatusAsked())
    stage.wait(5_000)
    assert isinstance(failure(stage), NoPool)
    assert stage.session.deadline_ms is None


def test_who_has_asked_too_fast_is_known_and_the_next_question_is_answered() -> None:
    stage = Stage()
    stage.do(PoolStatusAsked())
    stage.welcome()
    stage.broker(say.Refusal(code=RefusalCode.TOO_FAST, sentence="wait some seconds"))
    assert "wait some seconds" in str(failure(stage))
    stage.said_to_broker()
    stage.do(PoolStatusAsked())
    assert stage.said_to_broker() == [say.Look()]


def test_a_greeting_that_was_lost_is_said_again_with_the_next_question() -> None:
    stage = Stage()
    stage.do(PoolStatusAsked())
    stage.wait(5_000)
    assert isinstance(failure(stage), NoPool)
    stage.said_to_broker()
    stage.do(PoolStatusAsked())
    assert stage.said_to_broker() == [HELLO]
    stage.welcome()
    assert stage.said_to_broker() == [say.Look()]
