"""News for the user, as what was decided of what they asked for: said where the user looks, and once."""

from bulletin.wire import messages as say
from bulletin_magic.connection.session_events import PoolStatusAsked

from .stage import Stage, cell


def test_news_that_comes_between_two_cells_is_said_with_the_next_one_and_once() -> None:
    stage = Stage()
    stage.hot()
    stage.broker(say.Pong(news=("lea granted it",)))
    assert stage.notes() == []
    stage.do(cell("c2"))
    stage.broker(say.Pong(news=("lea granted it", "sam declined that")))
    assert stage.notes() == ["lea granted it", "sam declined that"]


def test_news_is_said_to_who_looks_at_the_pool() -> None:
    stage = Stage()
    stage.welcome()
    stage.broker(say.Pong(news=("lea granted it",)))
    stage.do(PoolStatusAsked())
    assert stage.notes() == ["lea granted it"]
