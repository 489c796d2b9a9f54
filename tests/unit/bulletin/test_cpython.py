"""What `bulletin.cpython` relies on is true of the Python that runs this. A failure says which module to look into.

    python -m pytest -p no:cacheprovider tests/unit/bulletin/test_cpython.py

It needs pytest, pytest-timeout and this folder, and nothing else that a new version of Python may not have yet.
"""

import abc
import copyreg
import datetime as dt
import importlib.abc
import importlib.machinery
import io
import os
import pickle
import pickletools
import re
import sys
import sysconfig
import threading
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import pytest

from bulletin.cpython import class_layout, import_system, pickle_memo, raw_memory, refcounts, referrers, thread_hooks

THIS = f"on {sys.implementation.name} {sys.version.split()[0]}"


class Plain:
    """A class of a `class` statement."""


class Slotted:
    __slots__ = ("one", "two")


class Memoizing(pickle.Pickler):
    """A pickler whose memo has begun before the first object, as the one of `bulletin.state.encoder`."""

    def persistent_id(self, _value: object) -> None:
        return None


class Placing(pickle.Unpickler):
    def persistent_load(self, pid: int) -> object:
        return ("ground", pid)


def test_every_holder_counts_once() -> None:
    assert not sysconfig.get_config_var("Py_GIL_DISABLED"), f"reference counts are not exact {THIS}, without the GIL"
    value = object()
    alone = sys.getrefcount(value)
    holders = [[value], {"key": value}, (value,)]
    assert sys.getrefcount(value) == alone + len(holders), f"a container is not one holder {THIS}: see refcounts"


def stream_of(root: object) -> tuple[list[object], pickle.Pickler]:
    """The nodes of a value's stream with the memo that also holds them, as `Encoder._nodes` has them."""
    pickler = Memoizing(io.BytesIO(), protocol=5)
    pickler.dump(root)
    found = pickle_memo.read_memo(pickler)
    nodes: list[object] = [None] * len(found)
    for place, value in found.values():
        nodes[place] = value
    found.clear()
    value = None
    return nodes, pickler


class MadeForPickle:
    """Its state is a container that nobody but the stream holds, and one that the instance holds as well."""

    def __init__(self) -> None:
        self.kept: list[str] = ["kept"]

    def __reduce__(self) -> Any:
        return MadeForPickle, (), {"kept": self.kept, "made": [["now"]]}


def test_a_tuple_has_the_addresses_of_its_items_behind_its_head() -> None:
    items = (object(), "text", 7, [1], None)
    found = [int.from_bytes(raw_memory.addresses_in(items)[n : n + 8], sys.byteorder) for n in range(0, 40, 8)]
    assert found == list(map(id, items)), f"a tuple is laid out in another way {THIS}: see raw_memory"


def test_without_a_memo_an_object_is_written_each_time() -> None:
    texts = ["text" * 10] * 3
    written = pickle_memo.dumps_without_memo(texts)
    assert pickle.loads(written) == texts, f"`Pickler.fast` writes something else {THIS}: see pickle_memo"
    assert written.count(b"text" * 10) == 3, f"`Pickler.fast` has a memo {THIS}: see pickle_memo"


def test_what_exists_for_a_stream_alone_is_taken_out_of_its_nodes() -> None:
    root = MadeForPickle()
    nodes, pickler = stream_of(root)
    refcounts.take_out_temporaries(nodes, root, {})
    left = [node for node in nodes if isinstance(node, list | dict | tuple)]
    assert left == [["kept"]], f"temporaries of a stream are not told from what somebody holds {THIS}: see refcounts"
    pickler.clear_memo()


def test_what_an_object_of_c_code_alone_held_is_taken_out_once_the_memo_is_cleared() -> None:
    inner = [object()]
    nodes: list[object] = [MappingProxyType({}), inner, [1]]
    refcounts.take_out_unheld(nodes, nodes[0], {})
    assert nodes[1] is inner, f"what a variable holds is taken for unheld {THIS}: see refcounts"
    assert nodes[2] is None, f"what nothing holds is taken for held {THIS}: see refcounts"


def test_what_only_our_containers_hold_is_told_from_what_others_hold_too() -> None:
    ours: list[Any] = [[object()], {"key": (object(), Plain())}, object()]
    shared, pattern = [object()], object()
    ours += [shared, (pattern, [pattern])]
    ours[1]["key"][1].part = (object(),)
    own = {id(ours[0]), id(ours[0][0]), id(ours[1]["key"][0]), id(ours[1]["key"][1].part[0]), id(ours[2])}
    others = {id(shared), id(shared[0]), id(pattern)}
    found = referrers.held_by_others(own | others, [ours])
    assert found == others, f"who holds an object is not counted right {THIS}: see referrers"
    assert referrers.held_by_others(own | others, [ours, ours]) == others, "a container that is named twice counts once"
    del pattern
    assert referrers.held_by_others(own | others, [ours]) == {id(shared), id(shared[0])}


def test_an_instance_whose_dict_somebody_else_holds_is_told_from_others() -> None:
    lender, other = Plain(), Plain()
    lender.part, other.part = 1, 2  # type: ignore[attr-defined]
    held = vars(lender)
    nodes: list[object] = [lender, held, other, None]
    found = refcounts.find_dict_sharers(nodes, {Plain}, set())
    assert found == {id(lender)}, f"the own dict of an instance is not held as it was {THIS}: see refcounts"
    assert nodes[1] is None
    assert held == {"part": 1}


def test_a_value_that_a_variable_holds_alone_is_told_from_one_that_others_hold() -> None:
    alone, kept = Plain(), Plain()
    holder = [kept]
    assert not refcounts.is_held_elsewhere(alone), f"what a variable holds alone seems held {THIS}: see refcounts"
    assert refcounts.is_held_elsewhere(kept), f"a second holder is not counted {THIS}: see refcounts"
    assert holder


def test_the_collector_finds_containers_instances_and_closures_that_hold_an_object() -> None:
    value, instance = [1], Plain()
    instance.part = value  # type: ignore[attr-defined]
    in_dict, in_list = {"key": value}, [value]

    def closed_over() -> list[int]:
        return value

    assert closed_over.__closure__ is not None
    found = referrers.holders_of(value)
    for holder in (in_dict, in_list, closed_over.__closure__[0]):
        assert any(other is holder for other in found), f"{type(holder).__name__} is not found {THIS}: see referrers"
    is_found = any(other is instance or other is vars(instance) for other in found)
    assert is_found, f"neither an instance nor its dict is found {THIS}: see referrers"


def test_what_a_read_only_view_looks_at_is_found() -> None:
    behind = {"key": 1}
    assert referrers.behind_proxy(MappingProxyType(behind)) is behind, f"{THIS}: see referrers"
    own = referrers.behind_proxy(vars(Plain))  # type: ignore[arg-type]
    assert referrers.class_of_attributes(own) is Plain, f"{THIS}: see referrers"
    assert referrers.class_of_attributes({"__module__": "nowhere"}) is None


def test_the_module_of_a_dict_is_found() -> None:
    module = ModuleType("nobody_has_it")
    assert referrers.module_of_globals(vars(module)) is module, f"{THIS}: see referrers"


def test_the_dict_of_an_iterator_is_found_until_its_end() -> None:
    through = {"a": 1, "b": 2}
    for make in (iter, reversed, lambda of: iter(of.values()), lambda of: iter(of.items())):
        iterator: Any = make(through)
        assert referrers.dict_of_iterator(iterator) is through, f"{THIS}: see referrers"
        assert referrers.id_behind_iterator(iterator) == [id(through)]
        list(iterator)
        assert referrers.dict_of_iterator(iterator) is None, f"{THIS}: see referrers"


def test_what_a_value_of_threads_was_made_with_is_found() -> None:
    class Local(threading.local):
        def __init__(self, *args: int, **options: int) -> None:
            self.held = args, options

    assert referrers.arguments_of_local(Local(1, two=2)) == ((1,), {"two": 2}), f"{THIS}: see referrers"
    assert referrers.arguments_of_local(Local(1)) == ((1,), {}), f"{THIS}: see referrers"
    assert referrers.arguments_of_local(Local()) == ((), {}), f"{THIS}: see referrers"


def test_classes_of_a_class_statement_are_told_from_those_of_c_code() -> None:
    class Derived(Plain):
        pass

    class OfC(OrderedDict[str, int]):
        pass

    for kind in (Plain, Slotted, Derived, abc.ABC, OfC):
        assert class_layout.is_python_class(kind), f"{kind.__name__} {THIS}: see class_layout"
    for kind in (int, dict, OrderedDict, type, memoryview, dt.datetime):
        assert not class_layout.is_python_class(kind), f"{kind.__name__} {THIS}: see class_layout"
        assert class_layout.is_immutable(kind), f"{kind.__name__} {THIS}: see class_layout"
    assert not class_layout.is_immutable(Derived), f"{THIS}: see class_layout"
    assert class_layout.is_python_all_through(Derived)
    assert not class_layout.is_python_all_through(OfC), f"{THIS}: see class_layout"


def test_an_instance_of_python_is_as_large_as_its_slots() -> None:
    class Both(Slotted):
        pass

    class More(Exception):
        pass

    for kind, slots in ((Plain, 0), (Slotted, 2), (Both, 2)):
        assert class_layout.holds_slots_only(kind, slots), f"{kind.__name__} {THIS}: see class_layout"
    assert not class_layout.holds_slots_only(Slotted, 1), f"{THIS}: see class_layout"
    assert not class_layout.holds_slots_only(More, 0), f"{THIS}: see class_layout"
    assert class_layout.holds_more_than(More, object) is not class_layout.holds_more_than(object, object)


def test_the_registry_of_an_abstract_class_can_be_read_and_set() -> None:
    made: Any = type.__new__(abc.ABCMeta, "Made", (), {"part": abc.abstractmethod(lambda _: None)})
    class_layout.make_abstract(made)
    assert made.__abstractmethods__ == {"part"}, f"{THIS}: see class_layout"
    made.register(int)
    assert class_layout.registered_with(made) == [int], f"{THIS}: see class_layout"
    class_layout.register_anew(made, [str])
    assert class_layout.registered_with(made) == [str], f"{THIS}: see class_layout"
    assert isinstance("", made)
    assert not isinstance(1, made), f"an answer from before is remembered {THIS}: see class_layout"


def test_both_sides_of_pickle_give_an_object_the_same_place() -> None:
    shared = ["twice"]
    value = {"a": [shared, (shared, "text", 1 << 70, 2.5)], "b": Plain(), "c": {frozenset({"x"}), b"bytes"}}
    file = io.BytesIO()
    ground = {id(name): (place, name) for place, name in enumerate(("first", "second"))}
    pickler = Memoizing(file, protocol=5)
    pickle_memo.set_memo(pickler, ground)
    pickler.dump(value)
    written = dict(pickle_memo.read_memo(pickler).values())
    data = pickle_memo.ground_preamble((0, 1)) + file.getvalue()
    unpickler = Placing(io.BytesIO(data))
    unpickler.load()
    read = pickle_memo.objects_in_order(unpickler)
    assert read[:2] == [("ground", 0), ("ground", 1)], f"{THIS}: see pickle_memo"
    assert len(read) == len(written), f"{THIS}: see pickle_memo"
    for place, held in enumerate(read[2:], 2):
        assert type(held) is type(written[place]), f"place {place} differs {THIS}: see pickle_memo"


def test_pickle_makes_instances_by_the_function_that_is_known() -> None:
    assert Plain().__reduce_ex__(5)[0] is pickle_memo.new_object, f"{THIS}: see pickle_memo"
    assert pickle_memo.module_holding(Plain, "Plain") == __name__
    copyreg.add_extension("builtins", "complex", 0xF0)  # type: ignore[arg-type]
    try:
        assert pickle_memo.EXTENSIONS[0xF0] == ("builtins", "complex"), f"{THIS}: see pickle_memo"
    finally:
        copyreg.remove_extension("builtins", "complex", 0xF0)  # type: ignore[arg-type]


def test_pickle_writes_only_opcodes_that_the_decoder_knows() -> None:
    value: list[Any] = [
        None, True, 1, 300, -5, 1 << 40, 1 << 3000, 2.5, "text", "long" * 100, b"b", b"b" * 300, bytearray(b"x"), (),
        (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [1], [1, 2], {"a": 1}, {"a": 1, "b": 2}, {1, 2}, frozenset({1}), Plain(),
        Plain, len, 1j, OrderedDict(a=1), dt.date(2026, 1, 1), ValueError("x"), list(range(300)),
    ]  # fmt: skip
    value.append(value)
    source = (Path(__file__).parents[3] / "bulletin/state/decoder.py").read_text()
    known = set(re.findall(r"\b[A-Z][A-Z_]*[0-9]{0,1}\b", source))
    written = {opcode.name for opcode, _, _ in pickletools.genops(pickle.dumps(value, protocol=5))}
    assert written - known == set(), f"{THIS}: see bulletin/state/decoder.py"


def test_an_array_of_numpy_has_where_its_data_begin_behind_its_head() -> None:
    numpy = pytest.importorskip("numpy")
    for array in (numpy.arange(5), numpy.arange(9)[3:], numpy.zeros((0, 2)), numpy.ones((2, 2)).T):
        start = raw_memory.first_field_of(array)
        assert int.from_bytes(start, sys.byteorder) == array.__array_interface__["data"][0], f"{THIS}: see raw_memory"


def test_the_flags_of_an_array_of_numpy_hold_the_array_behind_their_head() -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(5)
    assert raw_memory.held_first_by(array.flags) is array, f"{THIS}: see raw_memory"
    assert not any(raw_memory.first_field_of(numpy.float64(2).flags)), f"{THIS}: see raw_memory"


def test_memory_is_read_and_written_by_its_address() -> None:
    memory = bytearray(b"abcdef")
    view = memoryview(memory)
    start = raw_memory.address_of(memory)
    assert raw_memory.address_of(view[2:]) == start + 2, f"{THIS}: see raw_memory"
    raw_memory.view_of(start, 6)[1:3] = b"XY"
    assert memory == b"aXYdef", f"{THIS}: see raw_memory"
    view.release()
    memory.append(0)  # it was given back each time: what holds a buffer keeps its owner from growing
    assert raw_memory.address_of(b"read-only") > 0


def test_every_thread_passes_the_hook_in_its_own_context_and_leaves_it() -> None:
    kind: Any = threading.Thread
    kept = kind.start, kind._bootstrap_inner
    seen: list[tuple[str, int]] = []

    @contextmanager
    def note(what: str) -> Iterator[None]:
        seen.append((f"{what} begins", threading.get_ident()))
        yield
        seen.append((f"{what} ends", threading.get_ident()))

    class Own(threading.Thread):
        def run(self) -> None:
            seen.append(("run", threading.get_ident()))

    try:
        thread_hooks.surround_threads(lambda _: note("start"), lambda _: note("thread"))
        thread = Own()
        thread.start()
        thread.join()
    finally:
        kind.start, kind._bootstrap_inner = kept
    here, there = threading.get_ident(), thread.ident
    in_thread = [what for what, number in seen if number == there and number != here]
    assert in_thread == ["thread begins", "run", "thread ends"], f"{THIS}: see thread_hooks"
    assert [what for what, number in seen if number == here] == ["start begins", "start ends"]


@pytest.mark.skipif(thread_hooks.ThreadHandle is None, reason="threads have handles since Python 3.13")
def test_a_thread_handle_is_made_as_it_was() -> None:
    assert not thread_hooks.make_thread_handle(is_done=False).is_done(), f"{THIS}: see thread_hooks"
    assert thread_hooks.make_thread_handle(is_done=True).is_done(), f"{THIS}: see thread_hooks"
    assert type(threading.Thread()._handle) is thread_hooks.ThreadHandle  # type: ignore[attr-defined]


def test_threads_have_handles_from_python_3_13_on() -> None:
    assert (thread_hooks.ThreadHandle is not None) == (sys.version_info >= (3, 13)), f"{THIS}: see thread_hooks"


def test_a_lock_knows_whether_this_thread_holds_it() -> None:
    lock = threading.RLock()
    assert not thread_hooks.is_owned_by_this_thread(lock)
    with lock:
        assert thread_hooks.is_owned_by_this_thread(lock), f"{THIS}: see thread_hooks"


class Loader(importlib.abc.InspectLoader):
    """Runs a module that fails."""

    def get_source(self, fullname: str) -> str:
        return "1 / 0"

    def get_code(self, fullname: str) -> Any:
        return compile(self.get_source(fullname), "of_the_user.py", "exec")

    @import_system.as_import_machinery
    def exec_module(self, module: ModuleType) -> None:
        assert import_system.is_being_imported(module.__spec__), f"{THIS}: see import_system"
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> Any:
        return importlib.machinery.ModuleSpec(fullname, Loader()) if fullname == "cpython_test_fails" else None


def test_frames_of_a_loader_that_is_marked_are_cut_out_of_tracebacks() -> None:
    finder = Finder()
    sys.meta_path.append(finder)
    try:
        with pytest.raises(ZeroDivisionError) as caught:
            import cpython_test_fails  # type: ignore[import-not-found]  # noqa: F401
    finally:
        sys.meta_path.remove(finder)
    files = [Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files[-2:] == [Path(__file__).name, "of_the_user.py"], f"{files} {THIS}: see import_system"


def test_a_module_that_is_imported_is_no_longer_half_way() -> None:
    assert not import_system.is_being_imported(abc.__spec__)
    assert not import_system.is_being_imported(None)


def test_the_environment_is_read_as_the_system_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLETIN_TEST_ÄÖ", "ß")
    found = import_system.read_environ()
    assert found[os.fsencode("BULLETIN_TEST_ÄÖ")] == os.fsencode("ß"), f"{THIS}: see import_system"
    assert found == dict(os.environb), f"{THIS}: see import_system"
