"""What sessions of notebooks are called: names by which their broker knows whose they are, also after it was restarted.

Nodes know the names of sessions that had cells there, and tell them to a broker that has forgotten them: in a name is
a proof of the notebook that it was drawn for, which nobody makes who does not know the pool's secret.
"""

import hashlib
import hmac
from collections.abc import Collection, Mapping, MutableMapping

import msgspec

from bulletin.ids import KernelId, SessionId, UserName
from bulletin.wire import keys

_PROOF_BYTES = 16
#: A session that is nobody's is forgotten after so long: who comes by then is known by it.
_FORGET_MS = 20_000


class NotebookSession(msgspec.Struct):
    """The session that stands for a notebook, and when that last asked for a place, or was granted one, by it."""

    name: SessionId
    used_ms: int = 0
    #: When it was found last to have a connection or a lease; None before anybody looked.
    seen_ms: int | None = None


def drop_unused(
    sessions: MutableMapping[tuple[UserName, KernelId], NotebookSession], in_use: Collection[SessionId], now_ms: int
) -> None:
    """Forget sessions that have neither connection nor lease: a program may call itself a new notebook each time."""
    for whose, one in list(sessions.items()):
        if one.seen_ms is None or one.name in in_use:
            one.seen_ms = now_ms
        if now_ms - one.seen_ms > _FORGET_MS:
            del sessions[whose]


class SessionNames:
    """Draws names of sessions, and tells whose one is."""

    def __init__(self, secret: str, unproved: Mapping[SessionId, UserName] | None = None) -> None:
        """Take the pool's secret, which nodes of other hosts do not have.

        `unproved` are sessions that a broker has named which put no proof in names, by the ledger, and whose they are:
        which of their user's notebooks one is of, nodes are believed.
        """
        self._unproved = {one: user for one, user in (unproved or {}).items() if "-" not in one.removeprefix("s-")}
        self._key = hashlib.sha256(b"bulletin session names\0" + secret.encode()).digest()

    def draw(self, user: UserName, kernel: KernelId) -> SessionId:
        """Draw a name for the session of a notebook that has none."""
        name = keys.make_id()
        return SessionId(f"s-{name}-{self._prove(name, user, kernel)}")

    def is_of(self, session: SessionId, user: UserName, kernel: KernelId) -> bool:
        """Tell whether a session was drawn for this notebook."""
        if session in self._unproved:
            return self._unproved[session] == user
        name, _, proof = session.removeprefix("s-").rpartition("-")
        return hmac.compare_digest(proof.encode(), self._prove(name, user, kernel).encode())

    def _prove(self, name: str, user: UserName, kernel: KernelId) -> str:
        words = "".join(f"{len(word)}:{word}" for word in (name, user, kernel))  # no two are written the same
        return hmac.new(self._key, words.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()[: 2 * _PROOF_BYTES]
