"""Modules of the notebook's own are there by name, as source."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest

from .module_book import Book


def test_a_class_of_a_local_module_is_that_class_on_both_sides(book: Book) -> None:
    book.write("shapes.py", "class Square:\n    def __init__(self, side): self.side = side\n")
    square = book.local("import shapes\nshapes.Square(3)")
    found = book.gpu("import shapes\n(type(q) is shapes.Square, shapes.Square(q.side + 1))", q=square)
    assert found[0]
    assert type(found[1]) is square.__class__
    assert found[1].side == 4


def test_a_value_alone_brings_its_module(book: Book) -> None:
    book.write("shapes.py", "class Square:\n    area = 4\n")
    assert book.gpu("q.area", q=book.local("import shapes\nshapes.Square()")) == 4


def test_a_cell_may_import_a_module_that_the_notebook_has_not(book: Book) -> None:
    book.write("fresh.py", "class Leaf: pass\n")
    leaf = book.gpu("import fresh\nfresh.Leaf()")
    assert type(leaf) is sys.modules["fresh"].Leaf


def test_what_such_a_module_prints_and_draws_happens_once(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    book.write("fresh.py", "import random\nprint('loading')\nseen = random.random()\n")
    state = random.getstate()
    book.gpu("import fresh")
    assert book.answer["printed"] == "loading\n"
    assert capsys.readouterr().out == ""
    assert "fresh" in sys.modules
    assert random.getstate() == state


def test_a_module_that_the_notebook_has_loaded_is_loaded_unnoticed(book: Book) -> None:
    book.write("loud.py", "import random\nprint('loading')\nrandom.seed(1)\n")
    book.local("import loud")
    found = book.gpu(
        "import random\nrandom.seed(5)\nimport loud\na = random.random()\nrandom.seed(5)\na == random.random()"
    )
    assert found
    assert book.answer["printed"] == ""


def test_packages_with_relative_imports(book: Book) -> None:
    book.write("pack/__init__.py", "from .inner.deep import depth\nfrom . import near\n")
    book.write("pack/near.py", "from .inner import deep\nwhere = deep.__name__\n")
    book.write("pack/inner/__init__.py", "")
    book.write("pack/inner/deep.py", "from ..near import __name__ as other\ndepth = 2\n")
    found = book.gpu("import pack\npack.depth, pack.near.where, pack.inner.deep.other, pack.__package__")
    assert found == (2, "pack.inner.deep", "pack.near", "pack")


def test_a_module_says_of_itself_what_it_says_in_the_notebook(book: Book) -> None:
    book.write("pack/__init__.py", "")
    book.write("pack/part.py", '"""About."""\nhere = __file__\n')
    question = """
        import pack.part
        part = pack.part
        spec = part.__spec__
        (part.__name__, part.__doc__, part.__file__, part.here, part.__package__, pack.__path__, repr(part), spec.name,
         spec.origin, spec.parent, spec.has_location, list(pack.__spec__.submodule_search_locations))
    """
    assert book.gpu(question) == book.local(question)


def test_packages_without_an_init_file(book: Book) -> None:
    book.write("space/ship.py", "crew = 3\n")
    book.write("space/port/dock.py", "boats = 4\n")
    assert book.gpu("import space.ship\nfrom space.port import dock\nspace.ship.crew, dock.boats") == (3, 4)
    assert book.gpu("space.ship.crew, len(space.__path__), space.__file__") == book.local(
        "import space.ship\nspace.ship.crew, len(space.__path__), space.__file__"
    )


def test_a_package_without_an_init_file_whose_parent_is_taken_out(book: Book) -> None:
    book.write("space/port/dock.py", "boats = 4\n")
    book.local("import sys, space.port.dock as dock\ndel sys.modules['space']")
    assert book.gpu("import space.port.dock as d\nd.boats") == 4


def test_a_package_is_imported_from_an_archive(book: Book) -> None:
    import zipfile

    archive = book.folder / "lib.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("zipped/__init__.py", "from .part import x\n")
        made.writestr("zipped/part.py", "x = 7\n")
    sys.path.insert(0, str(archive))
    assert book.gpu("import zipped\nzipped.x") == 7
    assert book.local("import zipped\nzipped.x") == book.gpu("zipped.x") == 7


def test_source_is_found_by_inspect_and_by_tracebacks(book: Book) -> None:
    book.write("code.txt", "")
    book.write("failing.py", "def fail():\n    # why\n    raise ValueError('no')\n")
    book.local("import failing")
    assert book.gpu("import failing, inspect\ninspect.getsource(failing.fail)").splitlines()[1] == "    # why"
    with pytest.raises(RuntimeError) as caught:
        book.gpu("failing.fail()")
    assert f'File "{book.folder / "failing.py"}", line 3, in fail' in str(caught.value)
    assert "raise ValueError('no')" in str(caught.value)


def test_the_source_that_is_shown_is_the_one_that_runs(book: Book) -> None:
    book.is_shared = True
    book.write("edited.py", "def f():\n    raise ValueError('old')\n")
    book.local("import edited")
    book.write("edited.py", "# moved\n\ndef f():\n    raise KeyError('new')\n")
    with pytest.raises(RuntimeError) as caught:
        book.gpu("import edited\nedited.f()")
    assert "raise ValueError('old')" in str(caught.value)


def test_a_traceback_through_an_import_has_only_the_users_lines(book: Book) -> None:
    book.write("outer.py", "import broken\n")
    book.write("broken.py", "1 / 0\n")
    with pytest.raises(RuntimeError) as caught:
        book.gpu("import outer")
    lines = [line for line in str(caught.value).splitlines() if line.lstrip().startswith("File")]
    assert [Path(line.split('"')[1]).name for line in lines if "/tests/" not in line] == [
        "<cell>",
        "outer.py",
        "broken.py",
    ]


def test_a_file_of_the_same_name_there_does_not_win(book: Book) -> None:
    (book.executor.folder / "twin.py").write_text("side = 'executor'\n")
    book.write("twin.py", "side = 'notebook'\n")
    assert (
        book.gpu(f"import sys\nsys.path.insert(0, {str(book.executor.folder)!r})\nimport twin\ntwin.side") == "notebook"
    )


def test_what_is_installed_or_of_the_standard_library_is_not_sent(book: Book) -> None:
    book.write("colorsys.py", "mine = True\n")
    book.write("plain.py", "import colorsys, json, cloudpickle\n")
    assert not book.gpu("import plain, colorsys\nhasattr(colorsys, 'mine')")
    assert book.shipment is not None
    assert book.shipment.entries is not None
    names = {name for name in book.shipment.entries if not name.startswith("tests")}
    assert "plain" in names
    assert names.isdisjoint({"colorsys", "json", "cloudpickle", "pytest", "bulletin", "bulletin.state", "sys"})


@pytest.mark.parametrize("is_imported", [True, False])
def test_a_module_of_ones_own_that_was_put_in_the_place_of_another(
    book: Book, monkeypatch: pytest.MonkeyPatch, *, is_imported: bool
) -> None:
    book.local("import colorsys, json")
    path = book.write("colorsys.py", "mine = True\n")
    spec = importlib.util.spec_from_file_location("colorsys", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "colorsys", module)
    imports, used = (["colorsys"], []) if is_imported else ([], ["colorsys"])
    shipment, _ = book.modules.out(imports, used=used)
    assert shipment.entries is not None
    assert "colorsys" in shipment.entries
