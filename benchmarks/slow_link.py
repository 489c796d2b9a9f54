"""A link between two hosts that is as slow as it is told to be: by programs, since not every kernel has netem.

Each host gets a device of its own (TUN) with a route to the other. What one sends is read here, waits for the link to
be free and then as long as its way takes, and is written to the other. Packets are large, so that a program keeps up.
"""

import contextlib
import fcntl
import os
import queue
import struct
import subprocess
import threading
import time
from collections.abc import Iterator

from tests.integration.hosts import Host

_MTU = 60_000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
#: So much waits before what comes next is dropped, as in a switch: a tenth of a second of the link.
_MOST_WAITING_S = 0.1


def _device(host: Host, other: Host, name: str) -> int:
    """Make a device on a host by which it reaches the other; what reads and writes its packets."""
    file = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(file, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TUN | _IFF_NO_PI))
    inside = ("ip", "-n", host.network)
    for words in (
        ("ip", "link", "set", name, "netns", host.network),
        (*inside, "link", "set", name, "mtu", str(_MTU), "up"),
        (*inside, "address", "add", host.address, "peer", other.address, "dev", name),
    ):
        subprocess.run(words, check=True)
    return file


def _pass(source: int, target: int, bytes_per_s: float, way_s: float) -> None:
    """Pass on what comes, until the source is closed."""
    waiting: queue.SimpleQueue[tuple[float, bytes] | None] = queue.SimpleQueue()

    def deliver() -> None:
        while (one := waiting.get()) is not None:
            due, packet = one
            if (early := due - time.monotonic()) > 0:
                time.sleep(early)
            with contextlib.suppress(OSError):  # the device is gone
                os.write(target, packet)

    delivers = threading.Thread(target=deliver)
    delivers.start()
    free_at = 0.0
    with contextlib.suppress(OSError):
        while packet := os.read(source, _MTU + 100):
            now = time.monotonic()
            free_at = max(free_at, now)
            if free_at - now < _MOST_WAITING_S:
                free_at += len(packet) / bytes_per_s
                waiting.put((free_at + way_s, packet))
    waiting.put(None)
    delivers.join()


@contextlib.contextmanager
def slow_link(one: Host, other: Host, bits_per_s: float, round_trip_s: float) -> Iterator[None]:
    """Lead connections between two hosts, from now on, over a link of this speed, until the end of the block."""
    files = [_device(one, other, "slow0"), _device(other, one, "slow1")]
    ways = [
        threading.Thread(target=_pass, args=(*pair, bits_per_s / 8, round_trip_s / 2), daemon=True)
        for pair in (files, files[::-1])
    ]
    for way in ways:
        way.start()
    try:
        yield
    finally:
        for host, name in ((one, "slow0"), (other, "slow1")):
            subprocess.run(["ip", "-n", host.network, "link", "del", name], check=True)  # ends what reads it
        for way in ways:
            way.join()
        for file in files:
            os.close(file)
