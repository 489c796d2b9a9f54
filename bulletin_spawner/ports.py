"""TCP ports of this host: free ones for a hub that chooses its own, and one that nobody else gets while it runs."""

import socket
from collections.abc import Sequence

from bulletin.errors import BadConfig

#: How far above a wanted port to look before any free one is taken.
_REACH = 100
#: Those that this process holds, until it ends.
_held: list[socket.socket] = []


def hold_port(port: int, host: str = "127.0.0.1") -> int:
    """Hold a port for a process of the same Unix user that will listen there, until this one ends; 0 is any free one.

    It is bound and never listens: who asks to share it (SO_REUSEPORT) can listen, and only this user may ask. So nobody
    else gets it when that process dies.

    Raises
    ------
    BadConfig
        If somebody else has it.
    """
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise BadConfig(
            f"The page of the pool cannot have port {port} of {host} ({error.strerror}): another program has it, "
            f"and would get what is meant for the page. End it (`ss -ltnp sport = :{port}` names it), or give the page "
            "another port: configure(c, port=...)."
        ) from None
    _held.append(sock)
    number: int = sock.getsockname()[1]
    return number


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
