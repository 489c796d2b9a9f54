"""The log shows whatever clients wrote, and obeys none of it."""

import subprocess
import sys

import structlog

from gpu_worker.event_log import MOST_A_MINUTE, LineLimit

WRITES = """
import structlog
from gpu_worker import event_log
event_log.configure("broker")
structlog.get_logger().info("granted", lease="l-1\\x1bc", label="a\\nevent=forged by=root", count=3)
"""


def test_a_line_of_the_log_holds_no_control_characters_and_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", WRITES], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert line.isprintable()
    assert "lease=l-1?c" in line
    assert 'label="a event=forged by=root"' in line
    assert line.endswith("count=3")


def test_of_one_event_so_many_lines_are_written_in_a_minute_and_the_next_says_what_was_left_out() -> None:
    now_s = 0.0
    limit = LineLimit(3, lambda: now_s)

    def write(event: str) -> dict[str, object] | None:
        try:
            return dict(limit(None, "info", {"event": event}))
        except structlog.DropEvent:
            return None

    assert [write("hello refused") is not None for _ in range(5)] == [True] * 3 + [False] * 2
    assert write("cell") == {"event": "cell"}, "another event has its own"
    now_s = 61.0
    assert write("hello refused") == {"event": "hello refused", "left_out": 2}
    assert write("hello refused") == {"event": "hello refused"}


def test_who_is_refused_ten_thousand_times_fills_no_log() -> None:
    writes = WRITES.partition("structlog.get_logger()")[0] + (
        "for _ in range(10_000): structlog.get_logger().info('hello refused', code='not-allowed')"
    )
    done = subprocess.run([sys.executable, "-c", writes], capture_output=True, text=True, check=True)
    assert 0 < len(done.stderr.splitlines()) <= 2 * MOST_A_MINUTE  # a minute may end meanwhile


FAULT = """
from gpu_worker import event_log
from gpu_worker.faults import Faults
event_log.configure("broker")

def serve(ticket):
    raise ValueError("nobody expected this")

with Faults("broker").contain(lambda: None):
    serve("ticket-of-ann")
"""


def test_a_traceback_says_where_and_no_ticket_or_token() -> None:
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert "nobody expected this" in line
    assert "'name': 'serve'" in line
    assert "ticket-of-ann" not in line
