# ruff: noqa: E501  cells are one line each
"""Bytes in memory (`io.BytesIO`) and views of them, and pools of threads that have ended, are the same in each cell."""

import sys

import pytest

from bulletin.errors import CannotReturn, CannotSend
from tests.state.notebook import Notebook


def test_a_view_of_bytes_in_memory_looks_into_them_on_both_sides(notebook: Notebook) -> None:
    notebook.local("import io; b = io.BytesIO(b'abcdef'); m = b.getbuffer(); part = m[2:4]; kept = [b, m]; b.seek(3)")
    notebook.gpu("m[0] = 65; part[1] = 66; b.tell()")
    assert notebook.local("b.getvalue(), bytes(m), kept[0] is b, kept[1] is m, b.tell()") == (
        b"AbcBef",
        b"AbcBef",
        True,
        True,
        3,
    )
    notebook.local("m[5] = 67")
    assert notebook.gpu("b.getvalue(), bytes(part)").extra["result"] == (b"AbcBeC", b"cB")


def test_bytes_in_memory_may_grow_once_their_view_is_released(notebook: Notebook) -> None:
    notebook.local("import io; b = io.BytesIO(b'abc'); m = b.getbuffer(); kept = [b]; b.name = 'mine'")
    notebook.gpu("m.release(); b.write(b'123456')")
    assert notebook.local("b.getvalue(), kept[0] is b, b.name") == (b"123456", True, "mine")
    assert notebook.local("try: m[0]\nexcept ValueError as error: told = str(error)") is None
    assert "released" in notebook["told"]
    assert notebook.gpu("b.write(b'7'); b.getvalue()").extra["result"] == b"1234567"


def test_a_pool_of_threads_that_has_ended_is_the_same_one_in_each_cell(notebook: Notebook) -> None:
    notebook.local(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(3, 'mine') as pool: found = [pool.submit(abs, -n) for n in range(3)]\n"
        "kept = [pool]"
    )
    told = "try: pool.submit(abs, 1)\nexcept RuntimeError as error: told = str(error)"
    notebook.gpu(
        f"{told}\nown = ThreadPoolExecutor(1); own.shutdown(); kept.append(own); pool.note = [f.result() for f in found]"
    )
    assert notebook.local("pool._max_workers, pool is kept[0], own is kept[1], pool.note, told") == (
        3,
        True,
        True,
        [0, 1, 2],
        "cannot schedule new futures after shutdown",
    )


def test_a_view_of_what_a_class_of_ones_own_does_with_bytes_is_refused_before_the_cell(notebook: Notebook) -> None:
    notebook.local("import io\nclass Own(io.BytesIO): pass\nb = Own(b'hello')\nv = b.getbuffer()")
    with pytest.raises(CannotSend, match="'v'"):
        notebook.gpu("v[0] = 65")
    assert notebook.local("bytes(v)") == b"hello"


def test_what_is_in_memory_and_closed_is_closed_on_both_sides(notebook: Notebook) -> None:
    notebook.local("import io; b, s = io.BytesIO(b'abc'), io.StringIO('xyz'); kept = [b, s]")
    notebook.gpu("b.close(); c = io.BytesIO(); c.close()")
    assert notebook.local("b.closed, kept[0] is b, s.closed, c.closed") == (True, True, False, True)
    notebook.local("s.close()")
    assert notebook.gpu("b.closed, s.closed, kept[1] is s, c.closed").extra["result"] == (True, True, True, True)
    with pytest.raises(ValueError, match="closed"):
        notebook.local("s.getvalue()")


def test_what_is_closed_keeps_what_people_gave_it(notebook: Notebook) -> None:
    notebook.local("import io; b, s = io.BytesIO(b'x'), io.StringIO('y'); b.name = 'data.bin'; b.close(); kept = [b]")
    assert notebook.gpu("b.name, b.closed").extra["result"] == ("data.bin", True)
    notebook.gpu("s.name = ['mine']; s.me = s; s.close(); b.name += '.gz'")
    assert notebook.local("s.name, s.me is s, s.closed, b.name, kept[0] is b") == (
        ["mine"],
        True,
        True,
        "data.bin.gz",
        True,
    )
    notebook.local("del b.name; s.name.append(1)")
    assert notebook.gpu("hasattr(b, 'name'), s.name, s.me is s").extra["result"] == (False, ["mine", 1], True)


def test_bytes_whose_view_a_cell_has_released_are_closed_on_both_sides(notebook: Notebook) -> None:
    notebook.local("import io; d = io.BytesIO(b'abc'); m = d.getbuffer(); kept = [d]; d.name = 'mine'")
    notebook.gpu("m.release(); d.close()")
    assert notebook.local("d.closed, kept[0] is d, d.name") == (True, True, "mine")
    assert notebook.gpu("d.closed, kept[0] is d").extra["result"] == (True, True)
    with pytest.raises(ValueError, match="released"):
        notebook.local("m[0]")


def test_a_buffer_stays_open_in_a_notebook_whose_cell_fails_on_its_way_back(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.local("import io, sys; b = io.BytesIO(b'abc')")
    notebook.local(
        "class Lost:\n    def __setstate__(self, state):\n        if hasattr(sys, 'lost'): raise KeyError('lost')"
    )
    notebook.local("x = Lost(); x.n = 1")
    monkeypatch.setattr(sys, "lost", True, raising=False)
    with pytest.raises(CannotReturn, match="lost"):
        notebook.gpu("b.close(); x.n = 2")
    assert notebook.local("b.getvalue()") == b"abc"


def test_a_view_into_memory_of_a_library_goes_on_looking_there(notebook: Notebook) -> None:
    pytest.importorskip("bitarray")
    notebook.local("from bitarray import bitarray; b = bitarray('10101111'); m = memoryview(b); kept = [b, m]")
    notebook.gpu("b.invert(0)")
    assert notebook.local("b.to01(), m[0], kept[0] is b, kept[1] is m, m.obj is b") == (
        "00101111",
        47,
        True,
        True,
        True,
    )
    notebook.gpu("m[0] = 255")
    assert notebook.local("b.to01(), m[0], m.obj is b") == ("11111111", 255, True)
    notebook.local("m[0] = 1")
    assert notebook.gpu("b.to01(), m.obj is b").extra["result"] == ("00000001", True)
