"""What comes on a kernel's shell channel is passed on, whatever it is; first requests of pages are noted."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import zmq
from jupyter_client.session import Session

from bulletin_magic.output.page_arrivals import FIRST_REQUEST, ArrivalListener

KEY = b"the kernel's"


class Channel:
    """A kernel's shell channel with a listener at it: what is passed on, and who was heard."""

    def __init__(self) -> None:
        self.passed: list[Sequence[Any]] = []
        self.heard: list[str] = []
        self.kernel = SimpleNamespace(session=Session(key=KEY), shell_channel_thread_main=self.passed.append)
        ArrivalListener(self.kernel, self.heard.append).install()

    def take(self, parts: Sequence[bytes]) -> None:
        self.kernel.shell_channel_thread_main([zmq.Frame(part) for part in parts])


def ask(page: Session, request: str = FIRST_REQUEST) -> list[bytes]:
    return [b"page", *page.serialize(page.msg(request))]


def test_a_page_is_heard_by_its_first_request_alone() -> None:
    channel, page = Channel(), Session(key=KEY)
    channel.take(ask(page, "execute_request"))
    assert channel.heard == []
    channel.take(ask(page))
    assert channel.heard == [page.session]
    channel.take(ask(Session(key=b"another")))
    assert channel.heard == [page.session], "it may not ask"
    assert len(channel.passed) == 3


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b"junk"],
        [b"<IDS|MSG>"],
        [b"<IDS|MSG>", b"signature"],
        [b"page", b"<IDS|MSG>", b"signature"],
        [b"<IDS|MSG>", b"signature", b"kernel_info_request"],
    ],
)
def test_what_is_no_message_is_passed_on_to_who_says_so(parts: list[bytes]) -> None:
    channel = Channel()
    channel.take(parts)
    assert [[frame.bytes for frame in passed] for passed in channel.passed] == [parts]
    assert channel.heard == []
