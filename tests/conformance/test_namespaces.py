"""What executors with namespaces of their own see and reach of each other: nothing, with the same Unix user, too."""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.wire.messages import Namespaces
from gpu_worker.agent.executor_process import ExecutorProcess
from gpu_worker.agent.node_protections import find_namespace_problem
from gpu_worker.agent.process_tree import UseGauge
from gpu_worker.executor.agent_link import UNHEARD
from tests.conformance.agent_side import DEADLINE_S, LEAVES, MAY_BE_TRACED, TRACER, TRACES, Agent, Session
from tests.other_users import in_mount_namespace, with_readable_python

if problem := find_namespace_problem():
    pytest.skip(f"no namespaces here: {problem}", allow_module_level=True)

MIB = 2**20
#: Any ids without a name: nobody's.
ALICE, BOB = 61_001, 61_002


@pytest.fixture(scope="module")
def tenants(agent: Agent) -> Iterator[tuple[Session, Session]]:
    """Two executors of one node."""
    first, second = (agent.fork(namespaces=Namespaces(scratch_bytes=64 * MIB)) for _ in range(2))
    try:
        yield first, second
    finally:
        first.close()
        second.close()


def said(session: Session, source: str) -> str:
    """What a cell prints; it must come to its end."""
    result = session.run(source)
    assert result.outcome == "returned", result.error
    return result.stdout


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"])
def test_what_one_writes_where_everybody_may_nobody_else_finds(tenants: tuple[Session, Session], folder: str) -> None:
    if not Path(folder).is_dir():
        pytest.skip(f"no {folder} here")
    first, second = tenants
    name = f"{folder}/secret-{os.getpid()}"
    said(first, f"import os\nopen({name!r}, 'w').close()\nprint(os.listdir({folder!r}))")
    assert said(second, f"import os\nprint(os.path.exists({name!r}), os.listdir({folder!r}))").startswith("False")
    assert not Path(name).exists()
    assert said(first, f"print(os.path.exists({name!r}))") == "True\n"


def test_nobody_sees_processes_of_others_nor_their_environment(tenants: tuple[Session, Session]) -> None:
    for session in tenants:
        seen = said(
            session,
            "import os\nfor p in sorted((p for p in os.listdir('/proc') if p.isdigit()), key=int):\n"
            "    print(p, open(f'/proc/{p}/comm').read().strip(), len(open(f'/proc/{p}/environ').read()) > 0)",
        )
        lines = seen.splitlines()
        assert lines[0] == "1 cat False"  # with an empty environment
        assert [line.split()[0] for line in lines[1:]] == [said(session, "print(os.getpid())").strip()]


def test_signals_reach_nobody_else(agent: Agent, tenants: tuple[Session, Session]) -> None:
    _, second = tenants
    attacker = agent.fork(namespaces=Namespaces())
    kill_all = (
        "import contextlib, os, signal\nown = {int(name) for name in os.listdir('/proc/self/task')}\n"
        "for pid in {*range(1, 70_000), -1} - own:\n    with contextlib.suppress(OSError):\n"
        "        os.kill(pid, signal.SIGKILL)\nprint('tried')"
    )
    assert said(attacker, kill_all) == "tried\n"
    attacker.close()
    assert said(second, "print('still here')") == "still here\n"
    assert agent.process.poll() is None


def test_shared_memory_of_system_v_is_each_ones_own(tenants: tuple[Session, Session]) -> None:
    first, second = tenants
    get = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    assert int(said(first, get + "print(libc.shmget(4711, 4096, 0o1666))")) >= 0
    assert int(said(second, get + "print(libc.shmget(4711, 4096, 0o666))")) == -1


def test_shared_memory_that_no_process_has_mapped_is_limited(agent: Agent) -> None:
    take = (
        "import ctypes\nlibc = ctypes.CDLL(None)\nprint(sum(libc.shmget(key, 16 * 2**20, 0o1600) >= 0 "
        "for key in range(4711, 4721)))"
    )
    session = agent.fork(namespaces=Namespaces(scratch_bytes=64 * MIB))
    assert said(session, take) == "4\n", "of 16 MiB each"
    session.close()


def test_semaphores_that_no_process_has_are_limited(agent: Agent) -> None:
    take = (
        "import ctypes\nlibc = ctypes.CDLL(None)\nheld = 0\nfor size in (32_000, 8_000, 500):\n"
        "    while held < 1_000_000 and libc.semget(0, size, 0o600) >= 0:\n        held += size\nprint(held)"
    )
    session = agent.fork(namespaces=Namespaces())
    assert 32_000 < int(said(session, take)) <= 65_536
    session.close()


def test_files_without_anything_in_them_count(agent: Agent) -> None:
    session = agent.fork(namespaces=Namespaces(scratch_bytes=8 * MIB))
    folder = Path(f"/proc/{session.pid}/root/tmp")
    before = UseGauge(0).read([], [folder]).memory_bytes
    said(session, "for number in range(20_000):\n    open(f'/tmp/{number}', 'w').close()")
    assert UseGauge(0).read([], [folder]).memory_bytes - before > 16 * MIB
    session.close()


def test_nobody_takes_all_terminals_of_the_system(tenants: tuple[Session, Session]) -> None:
    first, second = tenants
    take = "import os\nopened = []\ntry:\n    while len(opened) < 4_000:\n        opened.append(os.openpty())\n"
    assert said(first, take + "except OSError:\n    print(len(opened))") == "64\n"
    assert said(second, "import os\nprint(len(os.openpty()))") == "2\n"


def test_a_device_that_is_not_the_leases_is_not_there(agent: Agent) -> None:
    outside = {f"/dev/{name}" for name in ("null", "kmsg", "nvidiactl", "nvidia0", "kvm", "fuse")}
    session = agent.fork(namespaces=Namespaces(devices=("/dev/kmsg", "/dev/is-not-here")))
    try:
        seen = said(session, f"import os\nprint(*[path for path in {sorted(outside)} if os.path.exists(path)])")
        assert seen.split() == [path for path in ("/dev/kmsg", "/dev/null") if Path(path).exists()]
        used = said(session, "import pty\nprint(os.read(os.open('/dev/urandom', 0), 3) != b'', len(pty.openpty()))")
        assert used == "True 2\n"
    finally:
        session.close()


def test_what_is_written_to_them_is_limited(agent: Agent) -> None:
    session = agent.fork(namespaces=Namespaces(scratch_bytes=8 * MIB))
    try:
        for folder in ("/tmp", "/dev/shm"):
            full = session.run(f"with open('{folder}/large', 'wb') as file:\n    file.write(bytes({16 * MIB}))")
            assert "No space left on device" in full.error
    finally:
        session.close()


def test_the_folder_that_it_starts_in_its_home_and_its_libraries_stay(agent: Agent, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work):
        folder.mkdir()
    (home / "kept").write_text("mine")
    session = agent.fork(namespaces=Namespaces(), folder=str(work), HOME=str(home))
    try:
        seen = said(session, "import os, bulletin.units\nprint(os.getcwd(), open(os.path.expanduser('~/kept')).read())")
        assert seen == f"{work} mine\n"
        said(session, "open('result', 'w').write('done')")
        assert (work / "result").read_text() == "done"
        assert said(session, f"print(os.listdir({str(tmp_path.parent)!r}))") == f"['{tmp_path.name}']\n"
    finally:
        session.close()


def test_no_way_leads_back_to_the_hosts_folders(agent: Agent, tmp_path: Path) -> None:
    """Its current folder may be one that lies below what is hidden from it."""
    outside = tmp_path / "outside"
    outside.write_text("of the host")
    session = agent.fork(namespaces=Namespaces())
    try:
        climbed = "import os\npath = os.getcwd()\nwhile not os.path.samefile(path, path + '/..'):\n    path += '/..'\n"
        assert said(session, f"{climbed}print(os.path.exists(path + {str(outside)!r}))") == "False\n"
    finally:
        session.close()


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_init(pid: int, session: Session) -> bool:
    """Whether a process is the first one of the pid namespace that an executor is in; others may be ending still."""
    spaces = (Path(f"/proc/{one}/ns/pid").readlink() for one in (pid, session.pid))
    return pid != session.pid and len(set(spaces)) == 1


@pytest.mark.parametrize("end", ["close", "kill", "exit"])
def test_with_an_executor_all_of_its_namespace_ends(agent: Agent, end: str) -> None:
    session = agent.fork(namespaces=Namespaces())
    forget = "import ctypes\nctypes.CDLL(None).prctl(36, 0)\n"  # it adopts no orphans any more
    said(session, forget + LEAVES)
    (init,) = (pid for pid in children_of(agent.process.pid) if _is_init(pid, session))
    (left,) = children_of(init)
    stray = os.pidfd_open(left)
    if end == "exit":
        session.start("import os\nos._exit(3)")
    elif end == "kill":
        signal.pidfd_send_signal(session.pidfd, signal.SIGKILL)
    else:
        session.close()
    # One whose link is closed ends by itself, if nobody was quicker.
    expected = {"exit": {3}, "kill": {-signal.SIGKILL}, "close": {UNHEARD, -signal.SIGKILL}}
    assert agent.exit_status(session.pid) in expected[end]
    ended = select.poll()
    ended.register(stray, select.POLLIN)
    assert ended.poll(0), "it ends before anybody is told that the executor is gone"
    os.close(stray)
    if end != "close":
        session.close()


def test_who_traces_an_executor_does_not_keep_it(agent: Agent) -> None:
    """Its end would be told to its tracer alone, and its slot be given to nobody."""
    session = agent.fork(namespaces=Namespaces())
    (init,) = (pid for pid in children_of(agent.process.pid) if _is_init(pid, session))
    assert session.run(TRACES).stdout == "traced\n"
    ExecutorProcess(session.pid, init).kill_group()
    assert agent.exit_status(session.pid) == -signal.SIGKILL
    session.close()


def test_who_traces_an_executor_from_elsewhere_does_not_keep_it(agent: Agent) -> None:
    """As a user's own programs beside the pool may."""
    session = agent.fork(namespaces=Namespaces())
    (init,) = (pid for pid in children_of(agent.process.pid) if _is_init(pid, session))
    session.run(MAY_BE_TRACED)
    tracer = subprocess.Popen(
        [sys.executable, "-c", TRACER, str(session.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert tracer.stdout is not None
    assert tracer.stdout.readline() == "0\n"
    ExecutorProcess(session.pid, init).kill_group()
    assert agent.exit_status(session.pid) == -signal.SIGKILL
    assert tracer.poll() is None
    tracer.communicate()
    session.close()


def test_nothing_outlives_a_zygote_that_is_killed() -> None:
    agent = Agent()
    session = agent.fork(namespaces=Namespaces())
    said(session, "import ctypes\nctypes.CDLL(None).prctl(36, 0)\n" + LEAVES)
    children = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text().split()
    init = os.pidfd_open(next(int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "cat\n"))
    agent.process.kill()
    assert session.is_gone()
    ended = select.poll()
    ended.register(init, select.POLLIN)
    assert ended.poll(DEADLINE_S * 1000), "with it goes all that is in its namespace"
    os.close(init)
    session.close()
    agent.close()


def test_a_signal_means_to_an_executor_what_it_always_means(agent: Agent) -> None:
    """The first process of a pid namespace would not be ended by signals of its own."""
    session = agent.fork(namespaces=Namespaces())
    session.start("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)")
    assert agent.exit_status(session.pid) == -signal.SIGTERM
    session.close()


def test_the_stop_button_reaches_cells_and_their_programs(tenants: tuple[Session, Session]) -> None:
    stopped = tenants[0].run("print('begins', flush=True)\nwhile True:\n    pass", stop_at="begins")
    assert stopped.outcome == "interrupted"


def test_a_tenant_with_a_user_of_its_own_reaches_no_other(agent_of_users: Agent) -> None:
    alice, bob = (
        agent_of_users.fork(uid=uid, gid=uid, groups=(uid,), namespaces=Namespaces(), SECRET=f"of {uid}")
        for uid in (ALICE, BOB)
    )
    try:
        said(alice, "import os\nos.umask(0)\nfor folder in ('/tmp', '/dev/shm'):\n    open(folder + '/file', 'w')")
        found = said(
            bob,
            "import os\nprint(os.getuid(), [os.path.exists(f + '/file') for f in ('/tmp', '/dev/shm')])\n"
            "print([p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())])",
        )
        assert found == f"{BOB} [False, False]\n[]\n"
        reach = "import os\ntry:\n    print(os.{call})\nexcept OSError as error:\n    print(type(error).__name__)"
        assert said(bob, reach.format(call="kill(1, 9)")) == "PermissionError\n"
        assert said(bob, reach.format(call="listdir('/proc/1/fd')")) == "PermissionError\n"
        assert said(bob, "import ctypes\nprint(ctypes.CDLL(None).umount2(b'/tmp', 2))") == "-1\n"
    finally:
        alice.close()
        bob.close()


#: What a system has in /run: doors to what starts processes and writes the log, names, and where all may write.
HAS_MANAGERS = (
    "mount -t tmpfs tmpfs /run",
    f"mkdir -p /run/dbus /run/user/{ALICE} /run/systemd/journal /run/systemd/resolve /run/anybodys /run/service",
    f"touch /run/dbus/system_bus_socket /run/user/{ALICE}/bus /run/systemd/notify /run/systemd/journal/socket",
    "touch /run/systemd/resolve/resolv.conf /run/service/socket",
    f"chown -R {ALICE} /run/user/{ALICE}",
    "chmod 1777 /run/anybodys",
)


def test_what_would_start_a_process_outside_or_write_the_agents_log_is_out_of_reach(tmp_path: Path) -> None:
    agent = Agent(under=in_mount_namespace([*with_readable_python(tmp_path), *HAS_MANAGERS]))
    alice, bob = (agent.fork(uid=uid, gid=uid, groups=(uid,), namespaces=Namespaces()) for uid in (ALICE, BOB))
    try:
        found = said(
            alice,
            "import os\nfor folder, _, files in sorted(os.walk('/run')):\n    for file in files:\n"
            "        print(folder + '/' + file)",
        )
        assert found.split() == ["/run/service/socket", "/run/systemd/resolve/resolv.conf"]
        full = alice.run("with open('/run/anybodys/file', 'wb') as file:\n    file.write(bytes(2 * 2**20))")
        assert "No space left on device" in full.error, "it takes none of the host's memory"
        assert said(bob, "import os\nprint(os.listdir('/run/anybodys'))") == "[]\n"
        own = "import os\ntry:\n    os.mkdir('/run/user/x')\nexcept OSError as error:\n    print(type(error).__name__)"
        assert said(alice, own) == "PermissionError\n"
    finally:
        alice.close()
        bob.close()
        agent.close()


def test_programs_that_are_set_uid_or_set_gid_give_nothing(agent_of_users: Agent) -> None:
    """Such as crontab and at, by which a user leaves work for later, or one that another user has left."""
    program = Path("/usr/bin", f"bulletin-test-{os.getpid()}")
    alice = agent_of_users.fork(uid=ALICE, gid=ALICE, groups=(ALICE,), namespaces=Namespaces())
    try:
        shutil.copyfile(shutil.which("id") or "", program)
        os.chown(program, 0, 0)
        program.chmod(0o6755)
        ids = f"import subprocess\nprint(subprocess.run([{str(program)!r}], capture_output=True, text=True).stdout)"
        assert f"uid={ALICE}" in (told := said(alice, ids))
        assert "euid" not in told
        assert "egid" not in told
    finally:
        program.unlink(missing_ok=True)
        alice.close()


def test_temporary_files_go_to_the_own_tmp_where_the_agents_folder_is_inside_the_nodes(
    agent: Agent, tmp_path: Path
) -> None:
    session = agent.fork(namespaces=Namespaces(), TMPDIR=str(tmp_path))
    try:
        asked = "import os, tempfile\nwith tempfile.NamedTemporaryFile() as file: print(os.path.dirname(file.name))"
        assert said(session, asked) == "/tmp\n"
        assert said(session, "print(os.environ.get('TMPDIR'))") == "None\n"
    finally:
        session.close()


def test_who_shares_a_unix_user_may_share_tmp(agent: Agent, tmp_path: Path) -> None:
    session = agent.fork(namespaces=Namespaces(has_own_tmp=False))
    try:
        (tmp_path / "notebook").write_text("data")
        assert said(session, f"print(open({str(tmp_path / 'notebook')!r}).read())") == "data\n"
        assert said(session, "import os\nprint([p for p in os.listdir('/proc') if p.isdigit()])") == "['1', '2']\n"
    finally:
        session.close()


#: Starts processes that start processes, until no more can be had. Says how many there are then.
BOMB = """
import os, time
reader, writer = os.pipe()
while True:
    try:
        if os.fork() == 0:
            os.write(writer, b".")
    except OSError:
        break
if os.getpid() != here:
    time.sleep(1000)
os.set_blocking(reader, False)
most = len(os.read(reader, 65536))
"""


@pytest.mark.skipif(
    tuple(map(int, os.uname().release.split(".")[:2])) < (6, 14), reason="Linux limits pid namespaces from 6.14 on"
)
def test_a_fork_bomb_ends_at_the_limit_of_its_namespace(agent: Agent, tenants: tuple[Session, Session]) -> None:
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    bomb = agent.fork(namespaces=Namespaces(), processes=100)
    said(bomb, "import os\nhere = os.getpid()")
    assert 100 < int(said(bomb, BOMB + "print(most)")) <= 100 + 302
    assert said(tenants[0], "import subprocess\nprint(subprocess.run(['true']).returncode)") == "0\n"
    bomb.close()
    assert int(Path("/proc/sys/kernel/pid_max").read_text()) == most, "the host's own limit is as it was"


def test_a_fork_bomb_ends_at_the_limit_of_its_unix_user(agent_of_users: Agent) -> None:
    alice = agent_of_users.fork(uid=ALICE, gid=ALICE, user_processes=60)
    bob = agent_of_users.fork(uid=BOB, gid=BOB, user_processes=60)
    said(alice, "import os\nhere = os.getpid()")
    assert 20 < int(said(alice, BOMB + "print(most)")) <= 60
    assert said(bob, "import subprocess\nprint(subprocess.run(['true']).returncode)") == "0\n"
    alice.close()
    bob.close()
