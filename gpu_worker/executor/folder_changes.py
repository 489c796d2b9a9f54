"""What cells have made of a folder that follows them, as a look at it finds it: by paths below the folder."""

from typing import NamedTuple

from bulletin.wire.messages import FileVersion
from gpu_worker.executor.file_signatures import Signature


class FolderChanges(NamedTuple):
    """What cells have made, changed and removed, by paths."""

    folders: list[str]
    files: dict[str, Signature]
    links: dict[str, str]
    removed_files: dict[str, FileVersion]
    removed_folders: list[str]
    #: What was removed for a folder, or for what is none: to be gone before that is made.
    in_the_way: set[str]
    #: What has a name now that the notebook cannot be told, which no look has found before.
    unnamed: list[str]
    #: What is neither file, folder nor link, and what it is, where no look has found it before.
    special: dict[str, str]
    #: Folders that nobody can look into, which could be looked into before; and what may have gone into any of them.
    closed: list[str]
    hidden: set[str]
