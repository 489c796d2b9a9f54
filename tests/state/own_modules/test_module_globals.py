"""What modules of the notebook's own hold is kept alike on both sides."""

import pytest

from .module_book import Book


@pytest.mark.parametrize("is_one_cell", [True, False])
@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("V = 1\n", "mod.V = 50"),
        ("V = 1\n", "mod.V = 1.0"),
        ("V = 0.0\n", "mod.V = -0.0"),
        ("V = 1\n", "mod.W = 'new'"),
        ("V = 1\nW = 2\n", "del mod.V"),
        ("V = []\n", "mod.V.append([1, {'a': (2,)}])"),
        ("V = {'b': 1, 'a': 2}\n", "mod.V['b'] = mod.V.pop('b')"),
        ("V = {1, 2}\n", "mod.V.discard(1)"),
        ("V = 0\ndef bump():\n    global V\n    V += 1\n", "mod.bump()"),
    ],
)
def test_globals_that_the_notebook_has_changed(book: Book, text: str, change: str, is_one_cell: bool) -> None:
    book.write("mod.py", text)
    book.local(f"import mod\n{change}" if is_one_cell else "import mod")
    if not is_one_cell:
        book.gpu("import mod")
        book.local(change)
    question = "import mod\nrepr([(n, v) for n, v in vars(mod).items() if n in {'V', 'W'}])"
    assert book.gpu(question) == book.local(question)
    assert book.gpu(question) == book.local(question)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("V = 1\n", "mod.V += 1"),
        ("V = 1\n", "mod.V = True"),
        ("V = 1\n", "del mod.V\nmod.W = 3"),
        ("V = []\n", "mod.V.append(None)"),
        ("V = 0\ndef bump():\n    global V\n    V += 1\n", "mod.bump()"),
    ],
)
@pytest.mark.parametrize("first", ["local", "gpu"])
def test_globals_that_a_cell_has_changed(book: Book, text: str, change: str, first: str) -> None:
    book.write("mod.py", text)
    if first == "local":
        book.local("import mod")
    there = book.gpu(f"import mod\n{change}\nrepr([(n, v) for n, v in vars(mod).items() if n in {{'V', 'W'}}])")
    here = book.local("import mod\nrepr([(n, v) for n, v in vars(mod).items() if n in {'V', 'W'}])")
    assert here == there
    assert book.gpu("import mod\nrepr([(n, v) for n, v in vars(mod).items() if n in {'V', 'W'}])") == here


def test_globals_that_a_cell_has_changed_before_it_raised(book: Book) -> None:
    book.write("mod.py", "n = 0\n")
    book.local("import mod")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        book.gpu("import mod\nmod.n = 4\n1 / 0")
    assert book.local("mod.n") == 4


def test_globals_go_to_and_fro(book: Book) -> None:
    book.write("mod.py", "n = 0\nlog = []\n")
    book.local("import mod")
    for turn in range(3):
        book.local(f"mod.n += 1\nmod.log.append('here {turn}')")
        book.gpu(f"import mod\nmod.n += 10\nmod.log.append('there {turn}')")
    assert book.local("mod.n, len(mod.log)") == (33, 6)
    assert book.gpu("mod.n, mod.log[-1]") == (33, "there 2")
    assert book.shipment is not None
    assert book.shipment.attributes == {}  # what came from there is not sent there


def test_a_container_that_was_changed_stays_itself_for_those_who_hold_it(book: Book) -> None:
    book.write("conf.py", "options = {'a': 1}\nnames = ['x']\n")
    book.write("uses.py", "from conf import options, names\nclass Kept: held = (options, names)\n")
    book.local("import conf, uses")
    book.gpu("import conf, uses")
    question = """
        import conf, uses
        options, names = uses.Kept.held
        (options, options is uses.options, options is conf.options, names, names is uses.names, names is conf.names)
    """
    changes = (
        "conf.options['a'] = {}",
        "conf.names.append({})",
        "conf.names = [*conf.names]",
        "conf.options = {{1: {}}}",
    )
    for change in changes:
        book.local(change.format(2))
        assert book.gpu(question) == book.local(question)
    for change in changes:
        book.gpu(change.format(3))
        assert book.local(question) == book.gpu(question)


def test_what_a_module_computes_of_its_machine_stays_of_its_machine(book: Book) -> None:
    book.write("place.py", "import os\nprocess = os.getpid()\nif process:\n    device = f'dev{process}'\n")
    book.local("import place")
    assert book.gpu("import place, os\nplace.process == os.getpid() and place.device.endswith(str(os.getpid()))")
    assert book.local("import os\nplace.process == os.getpid()")


def test_a_reload_starts_globals_anew(book: Book) -> None:
    book.write("mod.py", "n = 0\n")
    book.local("import mod, importlib\nmod.n = 5\nmod.extra = 'kept'")
    assert book.gpu("import mod\n(mod.n, mod.extra)") == (5, "kept")
    book.local("importlib.reload(mod)")
    assert book.gpu("mod.n, mod.extra") == book.local("mod.n, mod.extra") == (0, "kept")


def test_a_reload_undoes_what_was_on_its_way_to_a_module(book: Book) -> None:
    book.write("mod.py", "n = 0\n")
    book.local("import mod\nmod.n = 5")
    book.gpu("1")
    book.local("import importlib\nimportlib.reload(mod)\nmod.extra = 2")
    assert book.gpu("import mod\n(mod.n, mod.extra)") == (0, 2)


def test_what_is_not_plain_data_stays_on_its_side(book: Book) -> None:
    book.write("mod.py", "import threading\nlock = threading.Lock()\nitems = []\nloop = []\nloop.append(loop)\n")
    book.local("import mod\nmod.items.append(mod.lock)\nmod.made = object()")
    assert book.gpu("import mod\nmod.items.append(object())\nhasattr(mod, 'made'), len(mod.items)") == (False, 1)
    assert book.local("mod.items == [mod.lock]")
