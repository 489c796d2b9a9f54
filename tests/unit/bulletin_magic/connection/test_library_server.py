"""The notebook's libraries, asked by somebody who wants more than is in them."""

import sys
from pathlib import Path

import msgspec
import pytest

from bulletin.libraries import platform
from bulletin.wire.messages import FetchLibrary, FindLibrary, FolderReply, Library
from bulletin_magic.connection.library_server import LibraryServer


class Site:
    """A folder of libraries, and a secret beside it."""

    def __init__(self, base: Path) -> None:
        self.folder = base / "site-packages"
        self.folder.mkdir()
        self.secret = base / "secret"
        self.secret.write_text("secret")
        self.largest_bytes = 10_000
        self.server = LibraryServer(lambda: self.largest_bytes)

    def install(self, name: str, record: str, **files: str) -> None:
        info = self.folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        for path, text in files.items():
            (self.folder / f"{path}.py").write_text(text)
        (info / "RECORD").write_text(record)

    def find(self, there: str = "", **names: str) -> list[Library]:
        reply, blobs = self.server.answer(FindLibrary(number=1, platform=there or platform(), **names))
        assert not reply.problem
        return msgspec.msgpack.decode(b"".join(map(bytes, blobs)), type=list[Library])

    def fetch(self, library: str, path: str) -> tuple[FolderReply, bytes]:
        reply, blobs = self.server.answer(FetchLibrary(number=1, library=library, path=path, offset=0, size=99))
        return reply, b"".join(map(bytes, blobs))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path)
    monkeypatch.setattr(sys, "path", [str(made.folder), *sys.path])
    return made


def test_what_its_list_names_is_served_once_it_was_described(site: Site) -> None:
    site.install("tool", "tool.py,,\n", tool="X = 1\n")
    assert site.fetch("tool", "tool.py")[0].problem == "the notebook does not serve that file"
    [library] = site.find(module="tool")
    assert [(file.path, file.size) for file in library.files] == [("tool.py", 6)]
    assert site.fetch("tool", "tool.py") == (site.fetch("tool", "tool.py")[0], b"X = 1\n")
    site.server.forget()
    assert site.fetch("tool", "tool.py")[1] == b""


@pytest.mark.parametrize(
    ("record", "is_found"),
    [
        ("tools/__init__.py,,\n", True),
        ("other/x.py,,\ntools.py,sha256=x,9\n", True),
        ("tools.cpython-311-x86_64-linux-gnu.so,,\n" if sys.version_info[:2] == (3, 11) else "tools.so,,\n", True),
        ('"tools/a,b.txt",,\n', True),
        ("tools2/__init__.py,,\n", False),
        ("tools-1.0.dist-info/METADATA,,\n", False),
        ("tools.txt,,\n", False),
        ("other/tools/__init__.py,,\n", False),
    ],
)
def test_a_module_is_found_in_the_library_of_another_name_that_has_it(site: Site, record: str, is_found: bool) -> None:
    site.install("toolset", record)
    assert [one.name for one in site.find(module="tools")] == (["toolset"] if is_found else [])


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "./../secret", "tool/../../secret", "other.py"])
def test_what_is_not_in_the_library_is_not_served(site: Site, path: str) -> None:
    site.install("tool", f"tool.py,,\n{path},,\nother.py,,\n" if path != "other.py" else "tool.py,,\n", tool="X = 1\n")
    (site.folder / "other.py").write_text("Y = 2\n") if path == "other.py" else None
    [library] = site.find(library="tool")
    assert [file.path for file in library.files] == ["tool.py"]
    assert site.fetch("tool", path)[1] == b""


@pytest.mark.parametrize(
    ("tags", "glibc", "comes"),
    [
        ("Tag: cp311-cp311-manylinux_2_28_x86_64", "2.27", False),
        ("Tag: cp311-cp311-manylinux_2_28_x86_64", "2.28", True),
        ("Tag: cp311-cp311-manylinux_2_28_x86_64", "", True),  # one of a version before this was said
        ("Tag: cp311-cp311-manylinux_2_28_x86_64\nTag: cp311-cp311-manylinux2014_x86_64", "2.17", True),
        ("Tag: cp311-cp311-manylinux2014_x86_64", "2.9", False),
        ("Tag: cp311-cp311-linux_x86_64", "2.9", True),  # built here: for which, nobody knows
        ("", "2.9", True),
    ],
)
def test_what_is_compiled_for_a_newer_system_does_not_come(site: Site, tags: str, glibc: str, comes: bool) -> None:
    site.install("tool", "tool.py,,\nfast.so,,\n", tool="X = 1\n")
    (site.folder / "fast.so").write_bytes(b"ELF")
    (site.folder / "tool-1.0.dist-info" / "WHEEL").write_text(f"Wheel-Version: 1.0\n{tags}\n")
    [library] = site.find(library="tool", glibc=glibc)
    assert bool(library.files) == comes
    assert comes or (glibc in library.problem and "glibc" in library.problem)


def test_a_library_with_a_link_among_its_files_is_not_served(site: Site) -> None:
    site.install("tool", "tool.py,,\nlink.py,,\n", tool="X = 1\n")
    (site.folder / "link.py").symlink_to(site.secret)
    [library] = site.find(library="tool")
    assert (library.files, library.problem) == ((), "its files are links to others, and links are not followed")
    assert [site.fetch("tool", path)[1] for path in ("tool.py", "link.py")] == [b"", b""]


def test_a_file_that_becomes_a_link_after_it_was_described_leads_nowhere(site: Site) -> None:
    site.install("tool", "tool.py,,\n", tool="X = 1\n")
    site.find(module="tool")
    (site.folder / "tool.py").unlink()
    (site.folder / "tool.py").symlink_to(site.secret)
    reply, data = site.fetch("tool", "tool.py")
    assert (bool(reply.problem), data) == (True, b"")


def test_programs_and_bytecode_stay(site: Site) -> None:
    site.install("tool", "tool.py,,\n../../../bin/tool,,\n__pycache__/tool.cpython-311.pyc,,\n", tool="X = 1\n")
    [library] = site.find(library="tool")
    assert [file.path for file in library.files] == ["tool.py"]


def test_compiled_ones_are_for_one_kind_of_machine(site: Site) -> None:
    site.install("fast", "fast.abi3.so,,\n")
    (site.folder / "fast.abi3.so").write_bytes(b"\x7fELF")
    [library] = site.find(library="fast", there=".cpython-311-riscv64-linux-gnu.so linux-riscv64")
    assert (library.files, library.problem) == ((), "it is compiled for another kind of machine than the node")
    assert site.find(library="fast")[0].problem == ""


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"direct_url.json": '{"dir_info": {"editable": true}, "url": "file:///src"}'}, "installed from its sources"),
        ({"RECORD": None}, "is not written down"),
        ({"RECORD": "gone.py,,\n"}, "none of its files"),
    ],
)
def test_one_whose_files_cannot_be_told_says_why(site: Site, facts: dict[str, str | None], why: str) -> None:
    site.install("odd", "odd.py,,\n", odd="X = 1\n")
    for name, text in facts.items():
        path = site.folder / "odd-1.0.dist-info" / name
        path.unlink() if text is None else path.write_text(text)
    [library] = site.find(library="odd")
    assert library.files == ()
    assert why in library.problem


def test_what_is_not_installed_is_not_there(site: Site) -> None:
    assert site.find(module="nowhere_at_all") == site.find(library="../../etc") == []


def test_a_library_whose_folder_is_a_link_is_not_served(site: Site, tmp_path: Path) -> None:
    site.install("tool", "tool/__init__.py,,\n")
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "__init__.py").write_text("X = 1\n")
    (site.folder / "tool").symlink_to(tmp_path / "tool")
    [library] = site.find(library="tool")
    assert (library.files, library.problem) == ((), "its files are links to others, and links are not followed")


def test_a_file_that_the_list_names_twice_is_one(site: Site) -> None:
    site.install("tool", "tool.py,,\ntool.py,sha256=00,6\n", tool="X = 1\n")
    [library] = site.find(library="tool")
    assert [file.path for file in library.files] == ["tool.py"]
