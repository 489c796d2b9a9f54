"""Modules of the notebook's own that nobody has loaded yet."""

import importlib.util
import os
import sys

import pytest

from bulletin.errors import BulletinError, ModulesTooLarge

from .module_book import Book


def test_a_module_that_a_function_imports_later(book: Book) -> None:
    book.write("early.py", "def go():\n    import late\n    from helpers import part\n    return late.x + part.y\n")
    book.write("late.py", "x = 1\n")
    book.write("helpers/__init__.py", "")
    book.write("helpers/part.py", "y = 2\n")
    book.local("import early")
    assert book.gpu("import early\nearly.go()") == 3


def test_a_module_of_a_package_that_only_a_computed_name_leads_to(book: Book) -> None:
    book.write(
        "plug/__init__.py", "import importlib\ndef get(n): return importlib.import_module(f'.{n}', __name__).x\n"
    )
    book.write("plug/kinds/__init__.py", "")
    book.write("plug/kinds/one.py", "x = 1\n")
    assert book.gpu("import plug\nplug.get('kinds.one')") == 1


def test_a_package_with_very_many_files_sends_what_is_named(book: Book) -> None:
    book.write("wide/__init__.py", "from . import m7\n")
    for number in range(320):
        book.write(f"wide/m{number}.py", "x = 1\n")
    assert book.gpu("import wide\nwide.m7.x") == 1
    assert book.shipment is not None
    assert book.shipment.entries is not None
    assert [name for name in book.shipment.entries if name.startswith("wide")] == ["wide", "wide.m7"]


def test_a_file_that_python_has_not_noticed_yet_is_found(book: Book) -> None:
    before = book.folder.stat()
    with pytest.raises(ModuleNotFoundError):
        book.local("import latest")
    (book.folder / "latest.py").write_text("class Late: pass\n")
    os.utime(book.folder, ns=(before.st_atime_ns, before.st_mtime_ns))  # within one tick of the clock
    assert type(book.gpu("import latest\nlatest.Late()")) is sys.modules["latest"].Late


def test_nothing_is_run_to_find_out_what_is_needed(book: Book) -> None:
    book.write("trap/__init__.py", "raise RuntimeError('ran')\n")
    book.write("trap/inner.py", "raise RuntimeError('ran')\n")
    book.write("user.py", "def f():\n    from trap.inner import x\n")
    book.local("import user")
    shipment, _ = book.modules.out(["trap.inner"])
    assert {"trap", "trap.inner"} <= shipment.entries.keys()  # type: ignore[union-attr]
    assert "trap" not in sys.modules


def test_a_missing_module_is_missing_as_it_is_in_the_notebook(book: Book) -> None:
    with pytest.raises(RuntimeError, match="ModuleNotFoundError: No module named 'absent'"):
        book.gpu("import absent")


def test_a_compiled_module_is_named_when_it_is_needed(book: Book) -> None:
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    (book.folder / f"fast{suffix}").write_bytes(b"")
    book.write("slow.py", "try:\n    import fast\nexcept ImportError:\n    fast = None\n")
    assert book.gpu("import slow\nslow.fast is None")
    with pytest.raises(RuntimeError, match=r"ModuleNotFoundError: No module named 'fast': .*fast.*compiled"):
        book.gpu("import fast")


def test_too_much_source_is_an_error_that_names_the_largest(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.write("small.py", "x = 1\n")
    book.write("huge.py", f"x = '{'a' * 3_000_000}'\n")
    monkeypatch.setattr("bulletin.state.modules.notebook.MAX_SOURCES_BYTES", 2_000_000)
    with pytest.raises(ModulesTooLarge, match=r"[\d.]+ MB of source, and 2 MB may travel; the largest, 'huge'"):
        book.modules.out(["small", "huge"])
    with pytest.raises(BulletinError):
        book.modules.out(["huge"])


def test_what_the_executor_has_is_not_sent_again(book: Book) -> None:
    book.write("steady.py", "x = 1\n")
    book.gpu("import steady")
    book.gpu("steady.x")
    assert book.shipment is not None
    assert book.shipment.texts == {}
    assert book.shipment.attributes == {}
    book.gpu("steady.x")
    assert book.shipment.entries is None


def test_a_module_that_the_executor_found_by_itself_is_run_again_as_the_notebook_has_it(book: Book) -> None:
    book.is_shared = True
    book.write("shared.py", "x = 1\n")
    book.gpu(f"import sys\nsys.path.insert(0, {str(book.folder)!r})\npart = 'sha'\nheld = __import__(part + 'red')")
    book.write("shared.py", "x = 22\n")
    book.local("import shared")
    assert book.gpu("import shared\n(shared.x, shared is held)") == (22, True)
