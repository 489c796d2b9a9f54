"""`with gpu:` rewritten: whatever a block does to its place, it does from where it runs."""

import ast
import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from bulletin import offload
from bulletin.errors import CannotOffload
from bulletin.offload import Gpu, gpu
from bulletin_magic.running.blocks import rewrite_gpu_blocks


class InProcessTaker:
    """Takes work, and runs it at once: what counts is that the block was taken out of its place."""

    is_able = True

    def __init__(self) -> None:
        self.works: list[str] = []
        self.entered = 0

    def check(self, options: Mapping[str, object]) -> None:
        """Any will do."""

    def run(self, work: Callable[[], Any], options: Mapping[str, object], *, is_block: bool) -> object:
        self.works.append(work.__code__.co_name)
        return asyncio.run(work()) if inspect.iscoroutinefunction(work) else work()

    def ran_here(self) -> None:
        self.entered += 1


@pytest.fixture
def taker() -> Iterator[InProcessTaker]:
    taker, before = InProcessTaker(), offload.taker()
    offload.serve(taker)
    yield taker
    offload.serve(before)


def run(source: str, **names: object) -> dict[str, Any]:
    """The namespace after a cell, which is rewritten."""
    namespace: dict[str, Any] = {"gpu": gpu, **names}
    exec(compile(rewrite_gpu_blocks(ast.parse(source), ["gpu"]), "<cell>", "exec"), namespace)
    return namespace


#: What comes of each is `result`, whether its blocks are taken or not.
PROGRAMS = {
    "names of the notebook": "x = 1\nwith gpu:\n    x += 1\n    y = x\ndel x\nresult = y",
    "names that are deleted": "x = 1\nwith gpu:\n    del x\nresult = 'x' in globals()",
    "locals": """
def f(a):
    b = []
    with gpu:
        a += 1
        b.append(a)
        c = a
    return a, b, c
result = f(1)""",
    "a local that is not bound yet": "def f():\n    with gpu:\n        new = 3\n    return new\nresult = f()",
    "a local that goes": """
def f():
    x = 1
    with gpu:
        del x
    try:
        return x
    except UnboundLocalError:
        return 'gone'
result = f()""",
    "global and nonlocal": """
n = 0
def f():
    m = 0
    def g():
        global n
        nonlocal m
        with gpu:
            n += 1
            m += 2
    g()
    return m
result = f(), n""",
    "declared in the block": "n = 0\ndef f():\n    with gpu:\n        global n\n        n = 7\nf()\nresult = n",
    "return": """
def f(n):
    for i in range(9):
        with gpu:
            if i == n:
                return i, n
result = f(3), f(20)""",
    "return nothing": "def f():\n    with gpu:\n        return\n    return 1\nresult = f()",
    "break and continue": """
result = []
for i in range(6):
    with gpu:
        if i == 1:
            continue
        if i == 4:
            break
        for j in range(5):
            if j == 2:
                break
        else:
            continue
        result.append((i, j))
else:
    result.append('all')""",
    "break of the outer loop in an else": """
result = []
for i in range(3):
    with gpu:
        for j in range(2):
            pass
        else:
            result.append(i)
            break""",
    "super": """
class A:
    def f(self):
        return 'A'
class B(A):
    def f(self, x=1):
        with gpu:
            self.__x = x
            return super().f(), self.__x, __class__.__name__
result = B().f(2)""",
    "every way to bind": """
def f(values):
    with gpu:
        import os.path as p, math
        from sys import path as q
        (a, *b), c = values, 1
        for d in b:
            pass
        with open('/dev/null') as e:
            pass
        try:
            1 / 0
        except ZeroDivisionError as g:
            h = str(g)
        [i := k for k in b]
        match values:
            case [j, *rest]:
                pass
        def l(): return a
        class M: x = 1
        n: int = 3
        o: str
    return math.pi, a, b, c, d, e.closed, h, i, j, rest, l(), M.x, n, bool(q), p.sep
result = f([1, 2, 3])""",
    "comprehensions and lambdas": """
def f(n):
    with gpu:
        squares = [k * n for k in range(3)]
        add = lambda x, y=n: x + y + n
    return squares, add(1)
result = f(2)""",
    "closures that outlive the block": """
def f():
    x = 1
    with gpu:
        def up():
            nonlocal x
            x += 1
        up()
    up()
    return x
result = f()""",
    "finally and with": """
log = []
class C:
    def __enter__(self): log.append('in'); return self
    def __exit__(self, *what): log.append(what[0].__name__ if what[0] else 'out'); return True
def f():
    with C(), gpu as g, C() as c:
        log.append(type(c).__name__)
        raise ValueError
    log.append(repr(g))
f()
result = log""",
    "a try around it": """
def f():
    try:
        with gpu:
            1 / 0
    except ZeroDivisionError as error:
        return str(error)
    finally:
        log.append(1)
log = []
result = f(), log""",
    "a block in a block": """
def f(n):
    for i in range(n):
        with gpu:
            n += 1
            with gpu:
                if i == 2:
                    return n
                m = i
    return m
result = f(5), f(2)""",
    "a generator around it": """
def f():
    for i in range(3):
        with gpu:
            square = i * i
        yield square
result = list(f())""",
    "with options, under other names": """
from bulletin_magic import gpu as lend
import bulletin_magic as bm
big = lend(gpus=2)
x = 0
with big: x += 1
with bm.gpu(gpus=3): x += 1
with lend: x += 1
result = x""",
    "an annotated parameter": """
def f(x: int = 1, *args: int, y: str = 'a', **more: int):
    with gpu:
        x, y = args, more
    return x, y
result = f(1, 2, z=3)""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_comes_to_the_same_with_its_blocks_taken_out(name: str, taker: InProcessTaker) -> None:
    source = PROGRAMS[name]
    taken = run(source)["result"]
    assert taker.works, "no block was taken"
    assert taker.entered == 0
    plain: dict[str, Any] = {"gpu": gpu}
    exec(compile(source, "<cell>", "exec"), plain)
    assert taker.entered > 0
    assert taken == plain["result"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_nobody_takes_is_as_it_is_written(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLETIN", "off")
    plain: dict[str, Any] = {"gpu": gpu}
    exec(compile(PROGRAMS[name], "<cell>", "exec"), plain)
    assert run(PROGRAMS[name])["result"] == plain["result"]


def test_nothing_of_ours_stays_in_the_notebook(taker: InProcessTaker) -> None:
    namespace = run("with gpu:\n    x = 1")
    assert set(namespace) == {"__builtins__", "gpu", "x"}
    with pytest.raises(ZeroDivisionError):
        run("with gpu:\n    1 / 0", seen=namespace)
    assert taker.works == ["<module>", "<module>"]


def test_a_block_bears_the_name_of_where_it_stands(taker: InProcessTaker) -> None:
    run("class A:\n    def f(self):\n        with gpu: pass\nA().f()")
    run("def outer():\n    def inner():\n        with gpu: pass\n    inner()\nouter()")
    run("with gpu: pass")
    assert taker.works == ["f", "inner", "<module>"]


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def f():\n    with gpu:\n        yield 1\nlist(f())", "`yield`"),
        ("def f():\n    with gpu:\n        yield from []\nlist(f())", "`yield`"),
        ("class A:\n    with gpu:\n        x = 1", "a part of a class's body"),
        ("with gpu:\n    from os import *", r"`import \*`"),
    ],
)
def test_what_cannot_be_taken_is_refused_before_anything_of_it_runs(
    source: str, what: str, taker: InProcessTaker
) -> None:
    with pytest.raises(CannotOffload, match=f"cannot hold {what}\\. Nothing of it was run\\."):
        run(source)
    assert taker.works == []


@pytest.mark.parametrize("line", ["return 1", "break", "continue"])
def test_a_word_that_has_no_place_is_told_where_it_is_written(line: str) -> None:
    with pytest.raises(SyntaxError) as told:
        run(f"x = 1\nwith gpu:\n    {line}")
    assert told.value.lineno == 3


def test_a_cell_without_a_block_is_left_alone() -> None:
    tree = ast.parse("with open('/dev/null') as f:\n    x = 1")
    before = ast.dump(tree, include_attributes=True)
    assert ast.dump(rewrite_gpu_blocks(tree, ["gpu"]), include_attributes=True) == before


def test_a_name_that_is_the_users_own_is_as_it_was(taker: InProcessTaker) -> None:
    namespace = run("import contextlib\ngpu = contextlib.nullcontext(5)\nwith gpu as x:\n    y = x")
    assert namespace["y"] == 5
    assert taker.works == []


async def _twice(x: int) -> int:
    return 2 * x


def test_await_in_a_block(taker: InProcessTaker) -> None:
    found = run(
        "async def f(n):\n    with gpu:\n        n = await twice(n)\n    return n\n"
        "async def g():\n    async with gpu:\n        return [x async for x in h()]\n"
        "async def h():\n    yield 1\n",
        twice=_twice,
    )
    for name in ("f", "g"):  # the loop is ours here, so each block brings its own
        code = found[name].__code__
        assert "run_block" in code.co_names
    assert asyncio.run(_outside(lambda: found["f"](4))) == 8
    assert asyncio.run(_outside(found["g"])) == [1]
    assert taker.works == ["f", "g"]


async def _outside(make: Callable[[], Any]) -> Any:
    """Run a coroutine that runs a loop of its own: in a thread."""
    return await asyncio.to_thread(lambda: _drive(make()))


def _drive(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something outside its block")


def test_a_decorated_function_is_taken_with_its_arguments(taker: InProcessTaker) -> None:
    @gpu
    def add(a: list[int], *more: int, twice: bool = False) -> list[int]:
        """Adds."""
        a.extend(more * (1 + twice))
        return a

    own = [1]
    assert add(own, 2, twice=True) is own
    assert own == [1, 2, 2]
    assert (add.__name__, add.__doc__) == ("add", "Adds.")
    assert len(taker.works) == 1


def test_a_decorated_method_and_a_decorated_coroutine(taker: InProcessTaker) -> None:
    class A:
        @gpu(gpus=2)
        def f(self, x: int) -> tuple[object, int]:
            return self, x

    @gpu
    async def g(x: int) -> int:
        return x + 1

    a = A()
    assert a.f(3) == (a, 3)
    assert inspect.iscoroutinefunction(g)
    assert asyncio.run(_outside(lambda: g(1))) == 2
    assert len(taker.works) == 2


def test_what_is_no_function_is_refused_where_it_is_decorated() -> None:
    def values() -> Iterator[int]:
        yield 1

    with pytest.raises(CannotOffload, match=r"cannot run the generator values\(\)"):
        gpu(values)
    with pytest.raises(CannotOffload, match="this is a class"):
        gpu(type("A", (), {}))
    word: Any = "fast"
    with pytest.raises(CannotOffload, match=r"options by their names, and this is a str.*with gpu\(gpus=2"):
        gpu(word)


def test_without_a_notebook_everything_runs_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLETIN", "off")

    @gpu
    def f(x: int) -> int:
        return x + 1

    @gpu
    async def g(x: int) -> int:
        return x + 2

    assert (f(1), asyncio.run(g(1))) == (2, 3)
    with gpu(gpus=4) as lent:
        assert repr(lent) == "gpu(gpus=4)"


def test_it_travels_by_its_name() -> None:
    import pickle

    assert pickle.loads(pickle.dumps(gpu)) is gpu
    copy = pickle.loads(pickle.dumps(gpu(gpus=2, label="x")))
    assert isinstance(copy, Gpu)
    assert repr(copy) == "gpu(gpus=2, label='x')"
