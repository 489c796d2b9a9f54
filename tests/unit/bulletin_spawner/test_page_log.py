"""What visitors of the page have logged fills no disk, and moves no cursor."""

import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from tornado import web
from tornado.httputil import HTTPServerRequest, RequestStartLine
from tornado.log import access_log

from bulletin_spawner.service.page_log import MOST_A_MINUTE, MOST_CHARACTERS, PrintableLines, VisitorLimit
from bulletin_spawner.service.web_app import log_request

REQUEST = "%d %s %s (%s) %.0f ms"


class _Lines(logging.Handler):
    """Keeps what would be written."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.addFilter(VisitorLimit(clock_s))
        self.setFormatter(PrintableLines("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def now_s() -> list[float]:
    return [60.0]


@pytest.fixture
def written(now_s: list[float]) -> _Lines:
    return _Lines(lambda: now_s[0])


@pytest.fixture
def log(written: _Lines) -> Iterator[logging.Logger]:
    logger = logging.getLogger("visitors")
    logger.setLevel(logging.INFO)
    logger.addHandler(written)
    yield logger
    logger.removeHandler(written)


@pytest.mark.parametrize("path", ["/\x9b2J", "/\x1b]0;x\x07", "/\u202eevil", "/a\nforged line"])
def test_what_a_terminal_would_obey_is_replaced_and_a_line_stays_one(
    log: logging.Logger, written: _Lines, path: str
) -> None:
    log.warning(REQUEST, 404, "GET", path, "1.2.3.4", 1.0)
    (line,) = written.lines
    assert line.isprintable()
    assert line.startswith("404 GET /")


def test_a_path_of_ten_thousands_of_characters_is_cut(log: logging.Logger, written: _Lines) -> None:
    log.warning(REQUEST, 404, "GET", "/" + "x" * 60_000, "1.2.3.4", 1.0)
    assert len(written.lines[0]) == MOST_CHARACTERS + len("...")


def test_of_one_kind_so_many_lines_are_written_in_a_minute_and_the_next_says_what_was_left_out(
    log: logging.Logger, written: _Lines, now_s: list[float]
) -> None:
    for number in range(MOST_A_MINUTE + 50):
        log.warning(REQUEST, 404, "GET", f"/{number}%s", "1.2.3.4", 1.0)
    log.info(REQUEST, 200, "GET", "/me", "1.2.3.4", 1.0)
    assert len(written.lines) == MOST_A_MINUTE + 1, "who is let in is another kind"
    now_s[0] += 60
    log.warning(REQUEST, 404, "GET", "/50%s", "1.2.3.4", 1.0)
    assert written.lines[-1] == "404 GET /50%s (1.2.3.4) 1 ms (and 50 before it, left out)"


@pytest.fixture
def visits(written: _Lines, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Lines]:
    """The lines of Tornado's own log of what was asked."""
    monkeypatch.setattr(access_log, "handlers", [written])
    level = access_log.level
    access_log.setLevel(logging.INFO)  # and not its attribute: a logger remembers what it is to write until it is told
    yield written
    access_log.setLevel(level)


def visit(method: str, path: str, user: str = "", status: int = 200) -> None:
    """Let the page answer a request and log it."""
    connection = SimpleNamespace(set_close_callback=lambda _: None, no_keep_alive=False)
    start = RequestStartLine(method, path, "HTTP/1.0")
    asked = HTTPServerRequest(start_line=start, connection=connection)  # type: ignore[arg-type]  # Tornado's, of nobody
    handler = web.RequestHandler(web.Application(), asked)
    handler.current_user = {"name": user} if user else None
    handler.set_status(status)
    log_request(handler)


@pytest.mark.parametrize(
    "others",
    [
        ("GET", "eve", 200),
        ("GET", "ann", 200),
        ("GET", "", 302),
        ("DELETE", "", 200),
        ("DELETE", "eve", 200),
        ("POST", "ann", 200),
    ],
)
def test_what_somebody_changes_is_written_however_much_else_is_asked(
    visits: _Lines, others: tuple[str, str, int]
) -> None:
    """Some pages that are left open ask more often than lines are written; a stranger may as well."""
    method, user, status = others
    for _ in range(MOST_A_MINUTE + 1):
        visit(method, "/api/v1/me", user, status)
    visit("DELETE", "/api/v1/nodes/n1/drain", "ann")
    assert len(visits.lines) == MOST_A_MINUTE + 1
    assert visits.lines[-1].startswith("200 DELETE /api/v1/nodes/n1/drain")


def test_methods_that_a_stranger_makes_up_are_one_kind(visits: _Lines) -> None:
    for number in range(MOST_A_MINUTE + 50):
        visit(f"M{number}", "/", status=405)
    assert len(visits.lines) == MOST_A_MINUTE


def test_a_traceback_has_its_lines_and_nothing_else(log: logging.Logger, written: _Lines) -> None:
    try:
        raise ValueError("\x9b2J")
    except ValueError:
        log.exception("failed")
    lines = written.lines[0].split("\n")
    assert (lines[0], lines[-1]) == ("failed", "ValueError: ?2J")
    assert all(line.isprintable() for line in lines)
