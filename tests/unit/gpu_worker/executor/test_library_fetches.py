"""Libraries of the notebook on their way to a node: one that cannot come keeps no other away.

Both ends are as they are: installed libraries that are served, and who fetches them over a socket.
"""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.wire import pipe
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.messages import FetchLibrary, FindLibrary, FromFolder
from bulletin_magic.connection.library_server import LibraryServer
from gpu_worker.executor.folder_requests import FolderRequests
from gpu_worker.executor.library_fetches import LibraryFetches


class Site:
    """Where the notebook's libraries are, served. While one is fetched, some may be `upgraded`, or nobody answers."""

    def __init__(self, base: Path) -> None:
        self.folder, self.elsewhere = base / "site-packages", base / "elsewhere"
        self.folder.mkdir()
        self.elsewhere.mkdir()
        self.node = base / "libraries"
        self.upgraded, self.is_gone_at = "", ""
        ours, self._theirs = socket.socketpair()
        self.fetches = LibraryFetches(FolderRequests(ours), self.node)
        self._ours = ours
        self._server = LibraryServer(lambda: 10_000)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        unpacker: Unpacker[FromFolder] = Unpacker(FromFolder)
        while True:
            try:
                message, _ = unpacker.unpack(pipe.receive(self._theirs))
            except (EOFError, OSError):
                return
            assert isinstance(message, FindLibrary | FetchLibrary)
            if isinstance(message, FetchLibrary) and message.library == self.upgraded:
                (self.folder / message.path).write_text("X = 'of the next version'\n")
            if isinstance(message, FetchLibrary) and message.library == self.is_gone_at:
                self._theirs.shutdown(socket.SHUT_RDWR)
                return
            pipe.send(self._theirs, pack(*self._server.answer(message)))

    def install(self, name: str, *requires: str, record: str = "") -> None:
        """Install a library of one package. `record` is more of its list of files."""
        package, info = self.folder / name, self.folder / f"{name}-1.0.dist-info"
        package.mkdir()
        info.mkdir()
        (package / "__init__.py").write_text("X = 1\n")
        needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n{record}")

    def came(self) -> list[str]:
        """List the packages that can be imported on the node."""
        return sorted(
            path.parent.name for folder in self.fetches.folders for path in Path(folder).glob("*/__init__.py")
        )

    def close(self) -> None:
        self._ours.close()
        self._thread.join()
        self._theirs.close()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site(tmp_path)
    monkeypatch.syspath_prepend(made.folder)
    yield made
    made.close()


def test_one_whose_folder_is_a_link_stays_and_the_others_come(site: Site) -> None:
    """As Nix and stow install it."""
    for name in ("before_it", "linked", "after_it"):
        site.install(name)
    (site.folder / "linked").rename(site.elsewhere / "linked")
    (site.folder / "linked").symlink_to(site.elsewhere / "linked")
    sentences = site.fetches.bring(["before_it", "linked", "after_it"])
    assert site.came() == ["after_it", "before_it"]
    assert [sentence.split()[0] for sentence in sentences] == ["before-it", "after-it"]
    assert site.fetches.problems == {"linked": "its files are links to others, and links are not followed"}


def test_one_that_is_upgraded_meanwhile_stays_and_the_others_come(site: Site) -> None:
    for name in ("before_it", "upgraded", "after_it"):
        site.install(name)
    site.upgraded = "upgraded"
    site.fetches.bring(["before_it", "upgraded", "after_it"])
    assert site.came() == ["after_it", "before_it"]
    assert site.fetches.problems == {"upgraded": "upgraded/__init__.py was changed in the notebook meanwhile"}
    site.upgraded = ""
    site.fetches.bring(["upgraded"])
    assert (site.came(), site.fetches.problems) == (["after_it", "before_it", "upgraded"], {})


def test_libraries_that_come_together_come_all_or_none(site: Site) -> None:
    """Two that share a package here: one alone would be half of it."""
    site.install("first_half", record="shared/one.py,,\n")
    site.install("second_half", record="shared/two.py,,\n")
    (site.folder / "shared").mkdir()
    for name in ("one", "two"):
        (site.folder / "shared" / f"{name}.py").write_text("X = 1\n")
    site.upgraded = "second-half"
    assert site.fetches.bring(["shared"]) == []
    assert (site.came(), list(site.fetches.problems)) == ([], ["shared"])
    assert not list(site.node.rglob("*.py"))
    site.upgraded = ""
    site.fetches.bring(["shared"])
    assert site.came() == ["first_half", "second_half"]


def test_a_file_that_the_list_names_twice_comes_once(site: Site) -> None:
    site.install("twice", record="twice/__init__.py,,\n")
    site.fetches.bring(["twice"])
    assert (site.came(), site.fetches.problems) == (["twice"], {})


def test_those_that_came_before_the_notebook_was_gone_are_there(site: Site) -> None:
    for name in ("before_it", "during_it", "after_it"):
        site.install(name)
    site.is_gone_at = "during-it"
    site.fetches.bring(["before_it", "during_it", "after_it"])
    assert site.came() == ["before_it"]
    assert site.fetches.problems == dict.fromkeys(("during_it", "after_it"), "the notebook did not answer")
