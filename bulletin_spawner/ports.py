"""Free TCP ports of this host, for a hub that chooses its own."""

import socket
from collections.abc import Sequence

#: How far above a wanted port to look before any free one is taken.
_REACH = 100


def find_free_ports(wanted: Sequence[int], host: str = "127.0.0.1") -> list[int]:
    """Find a free port for each wanted one: itself, else the next above it; 0 takes any.

    All are different. They are free at this moment only: whoever asks binds them at once.
    """
    held: list[socket.socket] = []
    try:
        held.extend(_hold(port, host) for port in wanted)
        return [sock.getsockname()[1] for sock in held]
    finally:
        for sock in held:
            sock.close()


def _hold(port: int, host: str) -> socket.socket:
    """Bind this port, or the next free one; 0 binds any. Raises OSError where none is free."""
    candidates = [*range(port, port + _REACH), 0] if port else [0]
    for candidate in candidates:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what has just been closed is free
        try:
            sock.bind((host, candidate))
            sock.listen(1)
        except OSError:
            sock.close()
        else:
            return sock
    raise OSError(f"no free port on {host}")
