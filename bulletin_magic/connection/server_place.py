"""The place that the hub has reserved for a server: the first notebook of it that starts has it, and one at a time."""

import fcntl
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bulletin.ids import KernelId, RequestId

_NAME_LENGTH = 128


class ServerPlace:
    """Has the place for as long as this process lives.

    What was reserved is taken up once: a kernel that was restarted has none of the variables that are there, and asks
    anew, as a notebook of the same kind.
    """

    def __init__(self, name: str, options: str, file: int) -> None:
        self._name, self._file = name, file
        #: Of `%%gpu`: those of each cell of this notebook.
        self.options = options
        self._is_first = os.fstat(file).st_size == 0
        self._is_taken = not self._is_first
        if self._is_first:
            os.write(file, b"taken\n")

    @classmethod
    def claim(cls, environ: Mapping[str, str]) -> "ServerPlace | None":
        """Claim the place of this kernel's server; None where it has none, or another notebook of it has that."""
        name = environ.get("BULLETIN_PLACE", "")
        if not name or len(name) > _NAME_LENGTH or not name.replace("-", "").isalnum():
            return None
        path = Path(tempfile.gettempdir()) / f"bulletin-{name}"
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return None
        return cls(name, environ.get("BULLETIN_PLACE_OPTIONS", ""), file)

    @property
    def kernel(self) -> KernelId | None:
        """The name by which the broker knows for whom the place is; None where it was taken up by another kernel."""
        return KernelId(self._name) if self._is_first else None

    def take_request(self) -> RequestId | None:
        """Take the name of the request by which the place was asked for, once."""
        is_taken, self._is_taken = self._is_taken, True
        return None if is_taken else RequestId(self._name)
