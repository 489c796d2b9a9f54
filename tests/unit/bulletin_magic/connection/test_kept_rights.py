"""A file that a cell has changed takes the place of what others may open, or may not."""

import errno
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import xxhash

from bulletin.wire.messages import FileVersion, FolderFound, FolderProbe, StoreFile
from bulletin_magic.connection.folder_listing import FolderLimits
from bulletin_magic.connection.folder_server import FolderServer
from bulletin_magic.connection.kept_rights import set_rights

Replace = Callable[[int], os.stat_result]

only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root has files of any group")
LIST = "system.posix_acl_access"
#: The user may read and write, user 61000 may read, the group nothing; what is granted at most is to read.
ENTRIES = ((0x01, 6, 2**32 - 1), (0x02, 4, 61_000), (0x04, 0, 2**32 - 1), (0x10, 4, 2**32 - 1), (0x20, 0, 2**32 - 1))


@pytest.fixture
def before(tmp_path: Path) -> Path:
    (tmp_path / "data").write_text("as it was")
    return tmp_path / "data"


@pytest.fixture
def replace(before: Path) -> Replace:
    """Put a new file with this mode in its place."""

    def run(mode: int) -> os.stat_result:
        parent = os.open(before.parent, os.O_RDONLY)
        descriptor = os.open(before.with_name("new"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            set_rights(descriptor, mode, parent, before.name)
        finally:
            os.close(descriptor)
            os.close(parent)
        return before.with_name("new").replace(before).stat()

    return run


@only_root
def test_it_stays_its_groups(before: Path, replace: Replace) -> None:
    os.chown(before, -1, 61_000)
    facts = replace(0o640)
    assert (facts.st_gid, stat.S_IMODE(facts.st_mode)) == (61_000, 0o640)


@only_root
def test_where_it_cannot_be_its_groups_no_other_group_may_open_it(
    before: Path, replace: Replace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "not a group of this user")

    monkeypatch.setattr(os, "fchown", refuse)
    os.chown(before, -1, 61_000)
    assert stat.S_IMODE(replace(0o664).st_mode) == 0o604


def test_whom_its_access_list_names_may_open_it_and_nobody_else(before: Path, replace: Replace) -> None:
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in ENTRIES)
    try:
        os.setxattr(before, LIST, listed)
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")
    facts = replace(0o640)
    assert os.getxattr(before, LIST) == listed
    assert stat.S_IMODE(facts.st_mode) == 0o640


def test_a_list_of_its_folder_opens_it_to_nobody_who_could_not_open_it_before(before: Path, replace: Replace) -> None:
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in ENTRIES)
    try:
        os.setxattr(before.parent, "system.posix_acl_default", listed)
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")
    replace(0o640)
    with pytest.raises(OSError, match="No data available"):
        os.getxattr(before, LIST)


def test_a_new_one_has_its_mode(before: Path, replace: Replace) -> None:
    before.unlink()
    assert stat.S_IMODE(replace(0o644).st_mode) == 0o644


@only_root
@pytest.mark.parametrize("is_another_there", [False, True])
def test_what_somebody_has_put_in_its_place_meanwhile_gives_it_no_group(
    tmp_path: Path, *, is_another_there: bool
) -> None:
    """Whoever may write to the folder may take away what they cannot read, and put a file of another group there."""
    folder, data = tmp_path.resolve(), b"as the cell has it"
    server = FolderServer(FolderLimits)
    server.announce(FolderProbe(path=str(folder), token=".bulletin-token"), "0123456789abcdef")
    server.answer(FolderFound(root=str(folder), is_shared=False), ())
    (folder / "data").write_text("as it was")
    facts = (folder / "data").stat()
    (folder / "data").unlink()
    if is_another_there:
        (folder / "data").write_text("another")
        os.chown(folder / "data", -1, 61_000)
    stored = StoreFile(
        number=1,
        root=str(folder),
        path="data",
        offset=0,
        total=len(data),
        mode=0o664,
        digest=xxhash.xxh3_128_hexdigest(data),
        base=FileVersion(facts.st_size, facts.st_mtime_ns),
    )
    server.answer(stored, (data,))
    written = next(path for path in folder.iterdir() if path.is_file() and path.read_bytes() == data)
    assert (written.name != "data") == is_another_there, "beside it"
    assert (written.stat().st_gid, stat.S_IMODE(written.stat().st_mode)) == (os.getgid(), 0o604)
