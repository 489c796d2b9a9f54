"""What processes use together is counted once, and exactly where it may be too much."""

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_worker.agent import process_tree
from gpu_worker.agent.process_tree import UseGauge, find_descendants, find_shared_memory, open_descendants
from tests.integration.conftest import until

MB = 10**6
#: Has 100 MB, forks three processes that see them too, and lets each write over them when it is told to.
FAMILY = """
import os, sys
large = bytearray(b'x' * 100_000_000)
reader, writer = os.pipe()
children = []
for _ in range(3):
    children.append(os.fork())
    if children[-1] == 0:
        os.read(reader, 1)
        for at in range(0, len(large), 4096):
            large[at] = 1
        os.write(1, b'written\\n')
        os.read(reader, 1)
        os._exit(0)
print('ready', flush=True)
for line in sys.stdin:
    os.write(writer, b'...')
"""


GROWS = """
import sys
large = []
print('ready', flush=True)
for line in sys.stdin:
    large.append(b'x' * 100_000_000)
    print('grown', flush=True)
"""


@pytest.fixture
def family() -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen([sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    for pid in find_descendants(process.pid):
        os.kill(pid, 9)
    process.kill()
    process.communicate()


def test_what_processes_share_counts_once_where_it_matters(family: "subprocess.Popen[str]") -> None:
    quick = UseGauge(1000 * MB).read([family.pid], [])
    assert quick.memory_bytes > 400 * MB, "nobody needs to know exactly"
    assert quick.processes == 4
    gauge = UseGauge(200 * MB)
    for _ in range(2):  # the second time without a walk through the pages
        assert 100 * MB < gauge.read([family.pid], []).memory_bytes < 200 * MB
    assert family.stdin is not None
    assert family.stdout is not None
    family.stdin.write("go\n")
    family.stdin.flush()
    assert [family.stdout.readline() for _ in range(3)] == ["written\n"] * 3
    until(lambda: gauge.read([family.pid], []).memory_bytes > 300 * MB, "it to be found that now each has its own")


def test_a_growing_process_is_found_out_although_an_exact_look_was_made_just_before() -> None:
    process = subprocess.Popen([sys.executable, "-c", GROWS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    gauge, seen = UseGauge(150 * MB), []
    for _ in range(3):
        process.stdout.readline()
        seen.append(gauge.read([process.pid], []).memory_bytes // MB)
        process.stdin.write("more\n")
        process.stdin.flush()
    process.kill()
    process.communicate()
    assert seen[0] < 100 <= seen[1] < 150 < 200 <= seen[2]


def test_files_in_memory_count_and_only_once_where_they_are_mapped() -> None:
    before = UseGauge(0).read([os.getpid()], []).memory_bytes
    with_files = UseGauge(0).read([os.getpid()], [Path("/dev/shm")]).memory_bytes
    used = os.statvfs("/dev/shm")
    assert with_files >= before
    in_files = (used.f_blocks - used.f_bfree) * used.f_frsize + (used.f_files - used.f_ffree) * 1024
    assert with_files - before <= in_files + MB, "it is this process, which may have grown"


def _has_secret_memory() -> bool:
    found = int(ctypes.CDLL(None).syscall(447, 0))
    if found >= 0:
        os.close(found)
    return found >= 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root sees mappings of others")
@pytest.mark.parametrize(
    "takes",
    [
        "import os\nkept = os.memfd_create('x')\nfor _ in range(20):\n    os.write(kept, bytes(10_000_000))",
        (
            "import mmap\nkept = mmap.mmap(-1, 200_000_000)\nfor at in range(0, 200_000_000, 10_000_000):\n"
            "    kept[at : at + 10_000_000] = b'x' * 10_000_000\nkept.madvise(mmap.MADV_DONTNEED)"
        ),
        pytest.param(
            "import ctypes, mmap, os\nkept, part = ctypes.CDLL(None).syscall(447, 0), 2**22\n"
            "os.ftruncate(kept, 50 * part)\nfor number in range(50):\n"
            "    with mmap.mmap(kept, part, offset=number * part) as some:\n        some[:] = b'x' * part",
            marks=pytest.mark.skipif(not _has_secret_memory(), reason="this system has no secret memory"),
        ),
    ],
    ids=["a memfd that is not mapped", "a mapping whose pages were given back", "secret memory"],
)
def test_shared_memory_without_a_name_counts_also_where_no_process_uses_it(takes: str) -> None:
    program = f"{takes}\nimport os, sys\nif os.fork():\n    print('ready', flush=True)\nsys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    use = UseGauge(150 * MB).read([process.pid], [])
    process.communicate()
    assert 200 * MB < use.memory_bytes < 300 * MB, "once, though two processes have it"


#: Reads one page of each 2 MB, all of them the same page of zeros: what it has are tables of pages.
READS = """
import mmap, sys
size = 40_000 * 2**21
seen = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
seen.madvise(15)
for at in range(0, size, 2**21):
    seen[at]
print('ready', flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root sees what mappings are of")
def test_long_lists_of_mappings_are_looked_through_part_by_part_and_by_one_thread_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Threads that look through them would keep the one that serves all users waiting."""
    searches = list[str]()

    class Noted:
        """A lock that notes its uses, and whether two are at once."""

        def __enter__(self) -> None:
            assert taken.acquire(blocking=False)
            searches.append("begun")

        def __exit__(self, *_: object) -> None:
            taken.release()

    taken = threading.Lock()
    before = find_shared_memory([os.getpid()])
    mapped = [mmap.mmap(-1, MB, mmap.MAP_SHARED) for _ in range(5)]
    for one in mapped:
        one.write(b"x" * MB)
    monkeypatch.setattr(process_tree, "_PART_BYTES", 100)
    monkeypatch.setattr(process_tree, "_searching", Noted())
    assert find_shared_memory([os.getpid()]) - before >= 5 * MB
    assert len(searches) > len(mapped)
    for one in mapped:
        one.close()


def test_tables_of_pages_count_too() -> None:
    process = subprocess.Popen([sys.executable, "-c", READS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    gauge = UseGauge(100 * MB)
    seen = [gauge.read([process.pid], []).memory_bytes for _ in range(2)]
    process.communicate()
    assert min(seen) > 150 * MB


@pytest.mark.skipif(
    os.getuid() != 0 or not os.access("/dev/fuse", os.R_OK), reason="only root mounts a file system without a server"
)
def test_a_file_whose_server_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None)
    assert libc.mount(b"silent", os.fsencode(tmp_path), b"fuse", 0, options) == 0
    opens = "import os, sys\nos.open(sys.argv[1], os.O_PATH)\nprint('ready', flush=True)\nsys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", opens, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    looked: list[int] = []
    looking = threading.Thread(target=lambda: looked.append(find_shared_memory([process.pid])), daemon=True)
    looking.start()
    looking.join(10)
    is_done = not looking.is_alive()
    os.close(server)  # whoever waits for it is told that it is gone
    process.communicate()
    libc.umount2(os.fsencode(tmp_path), 2)
    looking.join()
    assert is_done
    assert looked == [0]


#: The thread that it began with has ended; another has 200 MB, in its own memory or in a file that only it has open.
OUTLIVES = """
import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
def go_on():
    if sys.argv[1] == 'memory':
        large = b'x' * 200_000_000
    else:
        libc.unshare(0x400)
        kept = os.memfd_create('x')
        for _ in range(20):
            os.write(kept, bytes(10_000_000))
    print('ready', flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=go_on).start()
if sys.argv[2] == 'ends':
    libc.syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root sees files of others")
@pytest.mark.parametrize(("has", "first"), [("memory", "ends"), ("file", "ends"), ("file", "stays")])
def test_threads_hide_nothing_from_a_look_at_their_process(has: str, first: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", OUTLIVES, has, first], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    use = UseGauge(100 * MB).read([process.pid], [])
    process.communicate()
    assert 200 * MB < use.memory_bytes < 300 * MB
    assert use.processes == 2


def test_who_is_gone_uses_nothing() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    use = UseGauge(1).read([gone.pid], [Path(f"/proc/{gone.pid}/root/tmp")])
    assert (use.memory_bytes, use.processes) == (0, 0)


@pytest.mark.parametrize(("most", "count"), [(10, 3), (2, 2), (0, 0)])
def test_of_what_has_left_a_processs_group_descriptors_are_opened(
    family: "subprocess.Popen[str]", most: int, count: int
) -> None:
    opened = open_descendants(family.pid, most)
    for descriptor in opened:
        signal.pidfd_send_signal(descriptor, 0)
        os.close(descriptor)
    assert len(opened) == count


def test_what_is_in_a_processs_group_ends_with_that() -> None:
    forks = "import os, sys\nif os.fork():\n    print('ready', flush=True)\nsys.stdin.read()"
    leader = subprocess.Popen(
        [sys.executable, "-c", forks], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert leader.stdout is not None
    assert leader.stdout.readline() == b"ready\n"
    assert len(find_descendants(leader.pid)) == 1
    assert open_descendants(leader.pid, 10) == []
    leader.communicate()
    assert open_descendants(leader.pid, 10) == []
