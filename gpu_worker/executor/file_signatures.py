"""What tells whether a file was touched, or has the content of another."""

import os
import stat
from pathlib import Path
from typing import NamedTuple

import xxhash

_BLOCK = 2**20


class Signature(NamedTuple):
    """What tells that a file here was not touched; of a folder only which one it is."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


def signature_of(facts: os.stat_result) -> Signature:
    """Take it from what the system says of a file, link or folder."""
    if stat.S_ISDIR(facts.st_mode):  # its times are those of what is in it
        return Signature(facts.st_ino, 0, 0, 0)
    return Signature(facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def signature_at(path: Path) -> Signature | None:
    """Look what has this name now; None where nothing has."""
    try:
        return signature_of(path.lstat())
    except OSError:
        return None


def digest_of(descriptor: int) -> str:
    """Compute the digest of a file's content. Raises OSError."""
    seen, offset = xxhash.xxh3_128(), 0
    while data := os.pread(descriptor, _BLOCK, offset):
        seen.update(data)
        offset += len(data)
    return seen.hexdigest()
