"""The log shows whatever clients wrote, and obeys none of it."""

import subprocess
import sys

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
