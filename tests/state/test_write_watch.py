"""Memory that the kernel watches: whoever writes to it, by whatever way, the digests are those of its content."""

import ctypes
import ctypes.util
import gc
import mmap
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bulletin.state import page_scan, pinned_memory
from bulletin.state.block_digests import BLOCK_BYTES, BlockDigests, digests_of
from bulletin.state.page_scan import PAGE_BYTES, PageScan
from bulletin.state.write_watch import LEAST_BYTES, WriteWatch

from .notebook import Notebook

SIZE = LEAST_BYTES + 3 * BLOCK_BYTES + 12_345
LIBRARY = ctypes.CDLL(None, use_errno=True)


def can_watch() -> bool:
    try:
        scan = PageScan()
    except OSError:
        return False
    found = page_scan.check(scan)
    scan.close()
    return found


watches = pytest.mark.skipif(not can_watch(), reason="this kernel does not tell who has written where")


def _links_of_descriptors() -> Iterator[str]:
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing
            yield str(descriptor.readlink())


class Memory:
    """An array, and the digests of its memory as a region has them."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.view = memoryview(array).cast("B")
        self.address: int = array.ctypes.data
        self.digests = BlockDigests()

    def look(self) -> bytes:
        return self.digests.compute(self.view, self.address)

    @property
    def is_watched(self) -> bool:
        span: Any = self.digests._span
        return span is not None and span.is_watched

    def watch(self) -> "Memory":
        self.look()
        self.look()
        assert self.is_watched, f"this process has open: {[*_links_of_descriptors()]}"
        return self


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory(np.ones(SIZE, dtype=np.uint8))
    yield made
    del made
    gc.collect()


def by_ctypes(memory: Memory, at: int, _: Path) -> None:
    ctypes.memset(memory.address + at, 7, 3)


def by_a_thread(memory: Memory, at: int, _: Path) -> None:
    thread = threading.Thread(target=memory.array.__setitem__, args=(at, 7))
    thread.start()
    thread.join()


def by_numpy_outside_the_lock(memory: Memory, at: int, _: Path) -> None:
    thread = threading.Thread(target=np.add, args=(memory.array, 1), kwargs={"out": memory.array})
    thread.start()
    thread.join()


def by_readinto(memory: Memory, at: int, folder: Path) -> None:
    (folder / "bytes").write_bytes(b"7" * 5000)
    with (folder / "bytes").open("rb", buffering=0) as file:
        file.readinto(memory.view[at : at + 5000])


def by_preadv(memory: Memory, at: int, folder: Path) -> None:
    (folder / "bytes").write_bytes(b"7" * 100)
    descriptor = os.open(folder / "bytes", os.O_RDONLY)
    os.preadv(descriptor, [memory.view[at : at + 50], memory.view[at + 50 : at + 100]], 0)
    os.close(descriptor)


def by_direct_input(memory: Memory, at: int, folder: Path) -> None:
    (folder / "bytes").write_bytes(b"7" * 8192)
    try:
        descriptor = os.open(folder / "bytes", os.O_RDONLY | os.O_DIRECT)
    except OSError:
        pytest.skip("this file system has no direct input")
    start = -(-(memory.address + at) // PAGE_BYTES) * PAGE_BYTES - memory.address
    os.readv(descriptor, [memory.view[start : start + 4096]])
    os.close(descriptor)


def by_a_socket(memory: Memory, at: int, _: Path) -> None:
    one, other = socket.socketpair()
    with one, other:
        one.send(b"7" * 100)
        other.recv_into(memory.view[at : at + 100])


def by_the_memory_file(memory: Memory, at: int, _: Path) -> None:
    with Path("/proc/self/mem").open("r+b", buffering=0) as file:
        file.seek(memory.address + at)
        file.write(b"7777")


def by_another_process(memory: Memory, at: int, _: Path) -> None:
    program = (
        "import ctypes, sys; pid, at = map(int, sys.argv[1:]); c = ctypes.CDLL(None, use_errno=True)\n"
        "text = ctypes.create_string_buffer(b'7777', 4)\n"
        "class Range(ctypes.Structure): _fields_ = [('at', ctypes.c_void_p), ('size', ctypes.c_size_t)]\n"
        "here, there = Range(ctypes.addressof(text), 4), Range(at, 4)\n"
        "written = c.process_vm_writev(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)\n"
        "sys.exit(0 if written == 4 else 3)\n"
    )
    LIBRARY.prctl(0x59616D61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)  # any process of ours may
    done = subprocess.run([sys.executable, "-c", program, str(os.getpid()), str(memory.address + at)], check=False)
    if done.returncode:
        pytest.skip("no process may write to another's memory here")


def by_giving_it_up(memory: Memory, at: int, _: Path) -> None:
    start = -(-(memory.address + at) // PAGE_BYTES) * PAGE_BYTES
    assert LIBRARY.madvise(ctypes.c_void_p(start), ctypes.c_size_t(PAGE_BYTES), 4) == 0


def by_giving_much_up(memory: Memory, at: int, _: Path) -> None:
    start = -(-(memory.address + at) // PAGE_BYTES) * PAGE_BYTES
    assert LIBRARY.madvise(ctypes.c_void_p(start), ctypes.c_size_t(4 << 20), 4) == 0


def by_a_mapping_over_it(memory: Memory, at: int, _: Path) -> None:
    start = -(-(memory.address + at) // PAGE_BYTES) * PAGE_BYTES
    LIBRARY.mmap.restype = ctypes.c_void_p
    private, anonymous, fixed, read_write = 0x02, 0x20, 0x10, 3
    arguments = ctypes.c_void_p(start), ctypes.c_size_t(4 * PAGE_BYTES), read_write, private | anonymous | fixed, -1
    assert LIBRARY.mmap(*arguments, ctypes.c_long(0)) == start


def by_the_parent_after_a_fork(memory: Memory, at: int, _: Path) -> None:
    here, there = os.pipe()
    child = os.fork()
    if not child:
        os.close(there)
        os.read(here, 1)
        os._exit(0)
    memory.array[at] = 7
    os.close(here)
    os.close(there)
    os.waitpid(child, 0)


def by_making_large_pages(memory: Memory, at: int, _: Path) -> None:
    memory.array[at] = 7
    start = -(-(memory.address + at) // (2 << 20)) * (2 << 20)
    LIBRARY.madvise(ctypes.c_void_p(start), ctypes.c_size_t(2 << 20), 25)  # the kernel may do so at any time
    memory.array[start - memory.address + 5] = 8


def by_paging_out(memory: Memory, at: int, _: Path) -> None:
    memory.array[at : at + 5000] = 7
    start = -(-(memory.address + at) // PAGE_BYTES) * PAGE_BYTES
    LIBRARY.madvise(ctypes.c_void_p(start), ctypes.c_size_t(PAGE_BYTES), 21)


WAYS: list[Callable[[Memory, int, Path], None]] = [
    by_ctypes, by_a_thread, by_numpy_outside_the_lock, by_readinto, by_preadv, by_direct_input, by_a_socket,
    by_the_memory_file, by_another_process, by_giving_it_up, by_giving_much_up, by_a_mapping_over_it,
    by_the_parent_after_a_fork, by_making_large_pages, by_paging_out,
]  # fmt: skip


def test_a_kernel_that_can_be_asked_finds_what_it_must() -> None:
    try:
        scan = PageScan()
    except OSError as problem:
        pytest.skip(f"it cannot be asked: {problem}")
    assert page_scan.check(scan)
    scan.close()


@watches
@pytest.mark.parametrize("write", WAYS)
@pytest.mark.parametrize("at", [0, 5 * BLOCK_BYTES - 2])
def test_a_write_is_seen_by_whatever_way_it_came(
    write: Callable[[Memory, int, Path], None], at: int, memory: Memory, tmp_path: Path
) -> None:
    before = memory.watch().look()
    write(memory, at, tmp_path)
    found = memory.look()
    assert found == digests_of(memory.view) != before


@watches
def test_nothing_is_read_again_that_nobody_has_written(memory: Memory) -> None:
    memory.watch()
    span: Any = memory.digests._span
    number = span.number
    memory.look()
    memory.array[6 * BLOCK_BYTES] = 7
    memory.look()
    assert span.written_since(number) == [6] or span.written_since(number) == [5, 6]
    assert memory.is_watched


@watches
@pytest.mark.parametrize("at", [0, 1, SIZE - 1, SIZE - 2])
def test_the_ends_of_a_range_are_read_since_others_may_share_their_pages(at: int, memory: Memory) -> None:
    before = memory.watch().look()
    memory.array[at] = 7
    assert memory.look() == digests_of(memory.view) != before


@watches
def test_two_who_look_at_the_same_memory_both_see_each_write(memory: Memory) -> None:
    other = Memory(memory.array)
    memory.watch()
    other.watch()
    for number, (one, two) in enumerate([(memory, other), (other, memory), (memory, memory), (other, other)]):
        memory.array[4 * BLOCK_BYTES + number] = 9
        assert one.look() == digests_of(memory.view)
        assert two.look() == digests_of(memory.view)
    assert memory.look() == other.look()


@watches
def test_who_looks_at_a_part_of_watched_memory_takes_nothing_from_who_looks_at_all(memory: Memory) -> None:
    memory.watch()
    part = Memory(memory.array[BLOCK_BYTES : BLOCK_BYTES + LEAST_BYTES + 4096])
    part.look()
    memory.array[2 * BLOCK_BYTES] = 9
    assert part.look() == digests_of(part.view)
    assert part.look() == digests_of(part.view)
    assert memory.look() == digests_of(memory.view)


@watches
@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_in_whatever_order_the_digests_are_those_of_the_content(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    array = np.ones(SIZE + 4096, dtype=np.uint8)
    looks = [Memory(array), Memory(array), Memory(array[3:SIZE]), Memory(array[4096:])]
    ways = [way for way in WAYS if way not in {by_a_mapping_over_it, by_another_process, by_the_parent_after_a_fork}]
    for _ in range(60):
        for _ in range(chance.choice([0, 0, 1, 1, 3])):
            chance.choice(ways)(looks[0], chance.randrange(SIZE - (5 << 20)), tmp_path)
        for one in chance.sample(looks, chance.randrange(1, 3)):
            assert one.look() == digests_of(one.view)
        if chance.random() < 0.1:
            looks[chance.randrange(4)] = Memory(array[: chance.choice([SIZE, SIZE + 4096])])


@watches
def test_a_write_during_a_look_is_found_by_the_next(memory: Memory) -> None:
    memory.watch()
    ends = threading.Event()

    def write() -> None:
        chance = random.Random(1)
        while not ends.is_set():
            memory.array[chance.randrange(SIZE)] += 1

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        memory.look()
    ends.set()
    for thread in threads:
        thread.join()
    assert memory.look() == digests_of(memory.view)


@watches
def test_a_fork_asks_about_its_own_memory(memory: Memory) -> None:
    memory.watch()
    child = os.fork()
    if not child:
        memory.array[4 * BLOCK_BYTES] = 9
        is_right = memory.look() == digests_of(memory.view)
        memory.array[5 * BLOCK_BYTES] = 9
        os._exit(0 if is_right and memory.look() == digests_of(memory.view) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    memory.array[6 * BLOCK_BYTES] = 9
    assert memory.look() == digests_of(memory.view)
    assert memory.is_watched


@watches
def test_memory_that_another_process_may_write_is_not_watched(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.write_bytes(bytes(SIZE))
    with path.open("r+b") as file:
        shared = mmap.mmap(file.fileno(), SIZE)
        of_a_file = mmap.mmap(file.fileno(), SIZE, flags=mmap.MAP_PRIVATE)
    anonymous = mmap.mmap(-1, SIZE)
    looks = [Memory(np.frombuffer(mapping, dtype=np.uint8)) for mapping in (shared, of_a_file, anonymous)]
    for one in looks:
        one.look()
        one.look()
        assert not one.is_watched
    child = os.fork()
    if not child:
        anonymous[5 * BLOCK_BYTES] = 9
        os._exit(0)
    os.waitpid(child, 0)
    with path.open("r+b") as file:
        file.seek(4 * BLOCK_BYTES)
        file.write(b"written to the file")
    for one in looks:
        assert one.look() == digests_of(one.view)


@pytest.mark.parametrize(
    "opens",
    [
        lambda: os.eventfd(0),
        lambda: LIBRARY.inotify_init(),
        lambda: os.pidfd_open(os.getpid()),
        lambda: os.open(".", os.O_RDONLY),
        lambda: os.open("/dev/null", os.O_RDWR),
        lambda: os.memfd_create("memory"),
        lambda: socket.socket().detach(),
    ],
    ids=["eventfd", "inotify", "pidfd", "folder", "null", "memory", "socket"],
)
def test_what_a_program_has_open_every_day_is_no_way_to_write_unseen(opens: Callable[[], int]) -> None:
    descriptor = opens()
    assert not pinned_memory.may_be_pinned()
    os.close(descriptor)


@watches
def test_nothing_is_watched_while_a_file_is_open_for_direct_input(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0" * 8192)
    try:
        descriptor = os.open(tmp_path / "file", os.O_RDONLY | os.O_DIRECT)
    except OSError:
        pytest.skip("this file system has no direct input")
    assert pinned_memory.may_be_pinned()
    memory.look()
    memory.look()
    assert not memory.is_watched
    os.close(descriptor)
    assert not pinned_memory.may_be_pinned()


@watches
def test_who_opens_a_way_for_devices_is_watched_no_more_once_something_was_written(memory: Memory) -> None:
    memory.watch()
    context = ctypes.c_ulong(0)
    setup = {"x86_64": 206, "aarch64": 0}[os.uname().machine]
    if LIBRARY.syscall(setup, 8, ctypes.byref(context)):
        pytest.skip("there are no requests under way here")
    memory.array[5 * BLOCK_BYTES] = 9
    assert memory.look() == digests_of(memory.view)
    assert not memory.is_watched
    LIBRARY.syscall(setup + 1, context)


@watches
def test_what_is_written_all_over_is_watched_no_more_for_a_while(memory: Memory) -> None:
    memory.watch()
    for _ in range(5):
        memory.array += 1
        assert memory.look() == digests_of(memory.view)
    assert not memory.is_watched
    for _ in range(8):
        memory.look()
    assert memory.is_watched


@watches
def test_memory_of_an_array_that_is_gone_is_free_for_another() -> None:
    for _ in range(3):
        mapping = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        one = Memory(np.frombuffer(mapping, dtype=np.uint8)).watch()
        one.array[:] = 3
        assert one.look() == digests_of(one.view)
        del one, mapping
        gc.collect()


@watches
def test_a_kernel_that_finds_too_little_is_not_asked() -> None:
    real = PageScan()
    forgetful: Any = SimpleNamespace(watch=real.watch, forget=real.forget, written=lambda *_: [])
    blind: Any = SimpleNamespace(watch=real.watch, forget=real.forget, written=lambda start, end: [(start, end)])
    assert page_scan.check(real)
    assert not page_scan.check(forgetful)
    assert not page_scan.check(blind)
    real.close()


def test_where_no_descriptor_is_to_be_had_everything_is_hashed() -> None:
    program = (
        "import resource, numpy as np\n"
        "from bulletin.state.block_digests import BlockDigests, digests_of\n"
        "array, one = np.ones(20 << 20, np.uint8), BlockDigests()\n"
        "one.compute(memoryview(array), array.ctypes.data)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))\n"
        "for at in range(4):\n"
        "    array[at << 20] = 7\n"
        "    assert one.compute(memoryview(array), array.ctypes.data) == digests_of(memoryview(array))\n"
        "assert one._span is None\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(Path(__file__).parents[2])})


@watches
def test_nobody_needs_rights_for_it() -> None:
    if os.getuid():
        pytest.skip("the others have run without rights")
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        LIBRARY.prctl(4, 1, 0, 0, 0)  # as after an exec: its files in /proc are its own
        watch = WriteWatch()
        array = np.ones(SIZE, dtype=np.uint8)
        os._exit(0 if watch.begin(array.ctypes.data, SIZE, BLOCK_BYTES) is not None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@watches
def test_a_large_array_that_nobody_changed_is_watched_on_both_sides_and_comes_back_changed(notebook: Notebook) -> None:
    notebook.local("import numpy as np\nx = np.ones(2_000_000)")
    for _ in range(3):
        notebook.gpu("len(x)")
    watched = [region for region in notebook.table.regions.values() if region._blocks._span is not None]
    assert len(watched) == 1
    notebook.gpu("x[1_000_000] = 5; x[0] = 6")
    assert (notebook.ns["x"][1_000_000], notebook.ns["x"][0]) == (5, 6)
    notebook.local("x[1_500_000] = 7")
    notebook.gpu("found = float(x[1_500_000]), float(x[1_000_000]), float(x.sum())")
    assert notebook.ns["found"] == (7, 5, 2_000_015.0)
