"""Which tests each process begins with: live ones first, those that share something together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

TESTS = Path(__file__).parent
#: Folders whose tests wait for kernels, hubs, browsers and libraries, and about how many minutes those of each take.
LIVE_FOLDERS = {"integration": 14, "acceptance": 9, "notebooks": 4, "zoo": 3, "conformance": 2}
#: Those of all others that compute for longest. They come after the live ones, and before all else.
LONG_FOLDERS = ("state", "scheduler")


class InFile(Protocol):
    """A test, as far as its place says when it runs."""

    path: Path


T = TypeVar("T", bound=InFile)


def deal(tests: Sequence[T], processes: int) -> list[list[T]]:
    """Divide tests among so many processes: folders of live ones whole, all others to make the shares equal.

    They are the shares that `--dist worksteal` makes of one list, in a row: what does not come out even, to the last.
    Inside a folder the order stays, but that the tests of a package are together: what they share ends with the last
    of them.
    """
    packages: dict[Path, list[T]] = {}
    for test in tests:
        packages.setdefault(test.path.parent, []).append(test)
    folders: dict[str, list[T]] = {}
    for package, found in packages.items():
        folders.setdefault(_folder(package), []).extend(found)
    shares: list[list[T]] = [[] for _ in range(processes)]
    minutes = [0] * processes
    for folder, takes in LIVE_FOLDERS.items():
        least = minutes.index(min(minutes))
        shares[least] += folders.pop(folder, [])
        minutes[least] += takes
    others = sorted(folders.items(), key=lambda one: one[0] not in LONG_FOLDERS)
    rest = [test for _, found in others for test in found]
    given = 0
    for number, share in enumerate(shares):
        size = (len(tests) - given) // (processes - number)
        missing = max(0, size - len(share))
        share += rest[:missing]
        del rest[:missing]
        given += size
    shares[-1] += rest
    return shares


def _folder(package: Path) -> str:
    below = package.relative_to(TESTS).parts if package.is_relative_to(TESTS) else ()
    return below[0] if below else ""
