"""What weak references lead to lives on while a library on the other side holds it, and for the thread of the cells."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .notebook import Notebook

LIBRARY = """
import threading, weakref
_sinks = set()

class Source:
    def __init__(self): self.downstreams = weakref.WeakSet()
    def emit(self, value):
        for sink in list(self.downstreams): sink.take(value)

class Sink:
    def __init__(self, source, into):
        self.into = into
        source.downstreams.add(self)
        _sinks.add(self)
    def take(self, value): self.into.append(value)

def end(): _sinks.clear()

class Tries:
    def __init__(self): self._local = threading.local()
    def __getstate__(self): return {}
    def __setstate__(self, state): self._local = threading.local()
    def note(self, count): self._local.count = count
    @property
    def count(self): return getattr(self._local, "count", None)
"""


@pytest.fixture
def flowing(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("flowing", LIBRARY)
    return notebook


def test_what_a_library_on_the_pool_holds_goes_on_there(flowing: Notebook) -> None:
    flowing.gpu("import flowing; source, got = flowing.Source(), []; _ = flowing.Sink(source, got); del _")
    for number in range(3):
        flowing.gpu(f"source.emit({number})")
    assert flowing["got"] == [0, 1, 2]
    flowing.local("source.emit(3)")
    assert flowing.gpu("source.emit(4); got").extra["result"] == [0, 1, 2, 3, 4]
    flowing.gpu("flowing.end()")
    flowing.gpu("source.emit(5)")
    flowing.gpu("source.emit(6)")
    assert flowing.local("got[:5], 6 in got, len(source.downstreams)") == ([0, 1, 2, 3, 4], False, 0)


def test_what_a_thread_has_of_its_own_comes_along_where_a_class_leaves_it_out(flowing: Notebook) -> None:
    flowing.local("import flowing; t = flowing.Tries(); t.note(2)")
    assert flowing.gpu("t.count").extra["result"] == 2
    flowing.gpu("t.note([3])")
    assert flowing.local("t.count") == [3]


def test_what_the_notebook_takes_out_of_a_library_is_gone_on_both_sides(flowing: Notebook) -> None:
    flowing.local("import flowing, weakref\nclass Own: pass\nflowing.extra = Own(); r = weakref.ref(flowing.extra)")
    assert flowing.gpu("r() is flowing.extra").extra["result"] is True
    assert flowing.gpu("r() is flowing.extra").extra["result"] is flowing.local("r() is flowing.extra") is True
    flowing.local("del flowing.extra")
    flowing.gpu("r() is None")
    assert flowing.gpu("r() is None").extra["result"] is flowing.local("r() is None") is True
