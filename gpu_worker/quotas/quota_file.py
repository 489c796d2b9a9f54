"""The quota file on its disk: read with its version, and replaced whole, with its owner and mode, or not at all."""

import contextlib
import errno
import os
import secrets
import shutil
import stat
from hashlib import sha256
from pathlib import Path

import msgspec

from bulletin.errors import NotDone
from gpu_worker.quotas import read_content

#: What a file that is not whole yet is called, behind the name of the quota file.
_UNFINISHED = ".unfinished-"
_MOST_LINKS = 1


class QuotaText(msgspec.Struct, frozen=True):
    """What stands in the file, and the version that this is."""

    content: bytes

    @property
    def version(self) -> str:
        """Name these bytes: the same ones have the same name."""
        return version_of(self.content)


def version_of(content: bytes) -> str:
    """Name the text of a quota file by what stands in it, in twelve letters."""
    return sha256(content).hexdigest()[:12]


def read_text(path: Path) -> QuotaText:
    """Read the file as it is. Raises BadConfig, as `read_quotas` does."""
    return QuotaText(read_content(str(path)))


class NewText:
    """A text for the file that lies beside it, whole and safe on the disk: `put_in_place` is all that is left to do."""

    def __init__(self, path: Path, content: bytes) -> None:
        """Write it. A link stays one: what it points to is replaced.

        Raises
        ------
        NotDone
            With why not and what to do. The file is as it was.
        """
        self._named, self._content = path, content
        self._target = Path(os.path.realpath(path))
        try:
            found = self._target.stat()
            _check(path, self._target, found)
            self._remove_unfinished()
            self._beside = self._target.with_name(f"{self._target.name}{_UNFINISHED}{secrets.token_hex(4)}")
            self._write(found)
        except OSError as error:
            raise NotDone(_sentence(path, error)) from None

    def put_in_place(self, expected: str) -> None:
        """Replace the file, if it still has the version that is expected. Raises NotDone, and the file is as it was."""
        try:
            if read_text(self._target).version != expected:
                raise NotDone(
                    f"{self._named} was changed in this moment by somebody else. Nothing of yours was written: look at "
                    "it again."
                )
            self._beside.replace(self._target)
            _flush_folder(self._target.parent)
        except OSError as error:
            raise NotDone(_sentence(self._named, error)) from None
        finally:
            self.throw_away()

    def throw_away(self) -> None:
        """Leave nothing of it behind, where it is not in its place."""
        with contextlib.suppress(OSError):
            self._beside.unlink(missing_ok=True)

    def _write(self, found: os.stat_result) -> None:
        handle = os.open(self._beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self._content)
                file.flush()
                if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(handle, found.st_uid, found.st_gid)
                shutil.copystat(self._target, self._beside)  # with its access list, where it has one
                os.utime(handle)
                os.fsync(handle)
        except BaseException:
            self.throw_away()
            raise

    def _remove_unfinished(self) -> None:
        """Remove what a broker left that was killed while it wrote."""
        for left in self._target.parent.glob(f"{_escaped(self._target.name)}{_UNFINISHED}*"):
            with contextlib.suppress(OSError):
                left.unlink()


def obstacle(path: Path) -> str:
    """Say why the file cannot be changed from here, as a sentence; empty where it can, as far as can be seen."""
    target = Path(os.path.realpath(path))
    try:
        _check(path, target, target.stat())
    except NotDone as error:
        return str(error)
    except OSError as error:
        return _sentence(path, error)
    return ""


def _check(path: Path, target: Path, found: os.stat_result) -> None:
    """Raise NotDone, or an OSError, where the file cannot be replaced as the same one."""
    if not stat.S_ISREG(found.st_mode):
        raise NotDone(f"{path} is not a file. Name a file with Pool.quota_file.")
    if found.st_nlink > _MOST_LINKS:
        raise NotDone(
            f"{path} has {found.st_nlink} names (hard links), and a change would be seen by one of them. Change it "
            "where it is kept, or make it a file of its own."
        )
    if os.statvfs(target.parent).f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    if not os.access(target, os.W_OK) or not os.access(target.parent, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    if os.geteuid() not in (0, found.st_uid):
        raise NotDone(
            f"{path} belongs to another user than the pool's broker, and would belong to the broker's after a change. "
            "Give it to the pool's user with chown, or change it by hand."
        )


def _sentence(path: Path, error: OSError) -> str:
    """Say what stood in the way, and what to do."""
    match error.errno:
        case errno.EROFS:
            return (
                f"{path} is on a disk that is read only here, as a config map of Kubernetes is. Change it where it "
                "comes from; the broker reads it again by itself."
            )
        case errno.EACCES | errno.EPERM:
            return (
                f"The pool's broker may not change {path}: its user must own the file and may write into its folder. "
                "Give it that, or change the file by hand; the broker reads it again by itself."
            )
        case errno.ENOSPC | errno.EDQUOT:
            return f"The disk of {path} is full. Nothing was changed: the file is as it was. Make room, and try again."
        case errno.ENOENT:
            return f"{path} is not there any more. Write it again, or correct Pool.quota_file."
    return f"{path} could not be changed: {error.strerror or error}. It is as it was."


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
