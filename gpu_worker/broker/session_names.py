"""What sessions of notebooks are called: names by which their broker knows whose they are, also after it was restarted.

Nodes know the names of sessions that had cells there, and tell them to a broker that has forgotten them: in a name is
a proof of the notebook that it was drawn for, which nobody makes who does not know the pool's secret.
"""

import hashlib
import hmac

from bulletin.ids import KernelId, SessionId, UserName
from bulletin.wire import keys

_PROOF_BYTES = 16


class SessionNames:
    """Draws names of sessions, and tells whose one is."""

    def __init__(self, secret: str) -> None:
        """Take the pool's secret, which nodes of other hosts do not have."""
        self._key = hashlib.sha256(b"bulletin session names\0" + secret.encode()).digest()

    def draw(self, user: UserName, kernel: KernelId) -> SessionId:
        """Draw a name for the session of a notebook that has none."""
        name = keys.make_id()
        return SessionId(f"s-{name}-{self._sign(name, user, kernel)}")

    def stand_in(self, user: UserName, kernel: KernelId) -> SessionId:
        """Name the session of a notebook of which nodes tell a name that is not its own: the same one each time."""
        name = self._sign(user, kernel)
        return SessionId(f"s-{name}-{self._sign(name, user, kernel)}")

    def is_of(self, session: SessionId, user: UserName, kernel: KernelId) -> bool:
        """Tell whether a session was drawn for this notebook."""
        name, _, proof = session.removeprefix("s-").rpartition("-")
        return hmac.compare_digest(proof.encode(), self._sign(name, user, kernel).encode())

    def _sign(self, *words: str) -> str:
        text = "".join(f"{len(word)}:{word}" for word in words)  # no two are written the same
        return hmac.new(self._key, text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()[: 2 * _PROOF_BYTES]
