"""How executors are born, what they may see, and how they and their zygote die."""

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bulletin.ids import CellId, LeaseId
from bulletin.wire import pipe
from bulletin.wire.frames import pack
from bulletin.wire.messages import Chunk, Fork, Ping, Took
from gpu_worker.executor.agent_link import UNHEARD
from tests.conformance.agent_side import DEADLINE_S, LEAVES, MAY_BE_TRACED, TRACER, TRACES, Agent, Session


def test_a_zygote_says_what_it_has_imported(agent: Agent) -> None:
    assert agent.warm.imported == ("numpy", "matplotlib")
    assert agent.warm.failed == {}  # what is not installed is no failure


def test_a_library_that_breaks_does_not_end_the_zygote(tmp_path, capfd) -> None:
    (tmp_path / "breaks_badly.py").write_text("raise RuntimeError('no driver')")
    (tmp_path / "needs_more.py").write_text("import this_is_not_installed")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    agent = Agent(preload="breaks_badly, needs_more,json", PYTHONPATH=path)
    try:
        assert agent.warm.imported == ("json",)
        assert agent.warm.failed == {
            "breaks_badly": "RuntimeError: no driver",
            "needs_more": "No module named 'this_is_not_installed'",
        }
        session = agent.fork()
        assert session.run("print(1)").stdout == "1\n"
        session.close()
    finally:
        agent.close()


def test_secrets_of_the_pool_are_not_in_an_executor() -> None:
    agent = Agent(JUPYTERHUB_API_TOKEN="hush", JPY_API_TOKEN="hush", BULLETIN_SECRET="hush")
    session = agent.fork(CUDA_VISIBLE_DEVICES="GPU-7", JUPYTERHUB_USER="hush")
    try:
        result = session.run(
            "import os\nprint(sorted(n for n in os.environ if n.startswith(('JUPYTERHUB', 'JPY', 'BULLETIN'))))\n"
            "print(os.environ['CUDA_VISIBLE_DEVICES'])\n"
            "for process in ('self', os.getppid()):\n    print('hush' in open(f'/proc/{process}/environ').read())"
        )
        assert result.stdout == "['BULLETIN_EXECUTOR']\nGPU-7\nFalse\nFalse\n"
    finally:
        session.close()
        agent.close()


def test_an_executor_starts_in_the_notebooks_folder(agent: Agent, tmp_path) -> None:
    (tmp_path / "beside.py").write_text("here = 5")
    session = agent.fork(folder=str(tmp_path))
    assert session.run("import os, beside\nprint(os.getcwd(), beside.here)").stdout == f"{tmp_path} 5\n"
    session.close()
    elsewhere = agent.fork(folder="/not/there")
    assert elsewhere.run("print(1)").stdout == "1\n"
    elsewhere.close()


#: Finds what a tenant may write to the log by: the one socket that the zygote has made, and no agent; or one of another
#: family than the agent's, before Linux 6.16.
WAY_TO_LOG = """
import os, socket, struct
def is_way(number):
    try:
        with socket.socket(fileno=os.dup(number)) as one:
            maker, *_ = struct.unpack('iII', one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return maker == os.getppid() or one.family == socket.AF_INET
    except OSError:
        return False
log, = filter(is_way, map(int, os.listdir('/proc/self/fd')))
"""

DESCRIPTORS = """
import os
for number in sorted(map(int, os.listdir('/proc/self/fd'))):
    try:
        print(os.readlink(f'/proc/self/fd/{number}').partition(':')[0].partition(' ')[0])
    except OSError:
        pass  # that of the listing
"""


def test_an_executor_has_no_descriptor_but_its_own(tmp_path: Path) -> None:
    """Neither the pool's log nor a terminal: what a tenant can reach it can erase, and read."""
    agent = Agent(log=tmp_path / "log")
    session = agent.fork()
    try:
        names = session.run(DESCRIPTORS).stdout.split()
        assert set(names) <= {"pipe", "socket", "anon_inode", "/dev/null", "/memfd"}, names
        is_reachable = "import os\nprint([n for n in os.listdir('/proc/self/fd') if 'log' in os.path.realpath(n)])"
        assert session.run(is_reachable).stdout == "[]\n"
    finally:
        session.close()
        agent.close()


def test_programs_that_a_cell_starts_have_none_of_its_descriptors_but_the_first_three(session: Session) -> None:
    """Who has the other end of what the cell writes can read it away."""
    listing = session.run("import subprocess\nsubprocess.run(['ls', '/proc/self/fd'], close_fds=False)").stdout
    assert listing.split() == ["0", "1", "2", "3"], "3 is what it lists"


def test_what_an_executor_says_to_the_log_is_limited_and_tells_whose_it_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    agent = Agent(log=log)
    session = agent.fork()
    session.run(f"{WAY_TO_LOG}os.write(log, b'\\x1bc forged event=granted\\n' * 10)")
    session.close()
    agent.close()
    lines = [line for line in log.read_text().splitlines() if "forged" in line]
    assert lines, log.read_text()
    assert all("zygote" in line and "lease" in line and "\x1b" not in line for line in lines)


def test_what_one_said_to_the_log_is_not_in_the_memory_of_the_next(tmp_path: Path) -> None:
    """An executor is a fork of what would have read it."""
    log = tmp_path / "log"
    agent = Agent(log=log)
    first = agent.fork()
    said = ("secret of the first one " * 20 + "\n").encode().hex()
    first.run(f"{WAY_TO_LOG}os.write(log, bytes.fromhex({said!r}) * 30)")
    first.close()
    agent.exit_status(first.pid)
    assert "secret of the first one" in log.read_text()
    second = agent.fork()
    found = second.run(
        "import os\nword, found = bytes.fromhex('" + b"secret of the first one".hex() + "'), 0\n"
        "memory = os.open('/proc/self/mem', os.O_RDONLY)\n"
        "for line in open('/proc/self/maps').read().splitlines():\n    addresses, mode, *_ = line.split()\n"
        "    begin, end = (int(one, 16) for one in addresses.split('-'))\n    try:\n"
        "        found += os.pread(memory, end - begin, begin).count(word + b' ' + word) if 'rw' in mode else 0\n"
        "    except (OSError, OverflowError):\n        pass\nprint(found)"
    )
    assert found.stdout == "0\n"
    second.close()
    agent.close()


def test_who_writes_more_to_the_log_is_read_no_more(tmp_path: Path) -> None:
    log = tmp_path / "log"
    agent = Agent(log=log)
    session = agent.fork()
    result = session.run(
        f"{WAY_TO_LOG}try:\n    for _ in range(300):\n        os.write(log, b'much\\n' * 1000)\n"
        "except ConnectionError:\n    print('told')\n"
    )
    assert "told" in result.stdout
    session.close()
    agent.close()
    assert "writes more, which is not copied" in log.read_text()
    assert log.stat().st_size < 2_000_000


#: Writes to its standard output from memory that never comes, as that of a file whose server is gone.
WRITES_FROM_NOWHERE = """
import ctypes, mmap, os, struct, sys, threading
libc = ctypes.CDLL(None)
faults = libc.syscall({"x86_64": 323, "aarch64": 282}.get(os.uname().machine, -1), os.O_CLOEXEC)
memory = mmap.mmap(-1, mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for number, words in ((0xC018AA3F, (0xAA, 0, 0)), (0xC020AA00, (address, mmap.PAGESIZE, 1, 0))):
    if faults < 0 or libc.ioctl(faults, ctypes.c_ulong(number), struct.pack(f"{len(words)}Q", *words)):
        sys.exit("only root may, where the kernel has userfaultfd")
threading.Thread(target=libc.write, args=(1, ctypes.c_void_p(address), ctypes.c_size_t(100))).start()
os.read(faults, 32)
print("writes", file=sys.stderr, flush=True)
"""


def test_who_writes_to_the_log_what_does_not_come_holds_up_nobody_else(tmp_path: Path) -> None:
    """Who writes so to a pipe has its lock, and another process of a tenant can have it when its executor is gone."""
    log = tmp_path / "log"
    agent = Agent(log=log)
    first, other = agent.fork(), agent.fork()
    with subprocess.Popen(
        [sys.executable, "-c", WRITES_FROM_NOWHERE],
        stdout=taken_descriptor(first.pid, int(first.run(f"{WAY_TO_LOG}print(log)").stdout)),
        stderr=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stderr is not None
        said = writer.stderr.readline()
        if said != "writes\n":
            agent.close()
            pytest.skip(said)
        first.close()
        assert agent.exit_status(first.pid) is not None
        other.run(f"{WAY_TO_LOG}os.write(log, b'said by the other one\\n')")
        other.close()
        assert agent.exit_status(other.pid) is not None
        third = agent.fork()
        assert third.run("print(3)").stdout == "3\n"
        third.close()
        assert writer.poll() is None
        writer.kill()
    agent.close()
    assert "said by the other one" in log.read_text()


def taken_descriptor(pid: int, number: int) -> int:
    """Have a descriptor of another process here, too."""
    process = os.pidfd_open(pid)
    try:
        return int(ctypes.CDLL(None).syscall(438, process, number, 0))  # pidfd_getfd
    finally:
        os.close(process)


def test_an_executor_keeps_no_keyring_and_no_core_of_the_pool(session: Session) -> None:
    result = session.run(
        "import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))\n"
        "print(open('/proc/self/oom_score_adj').read().strip())\n"
    )
    assert result.stdout == "(0, 0)\n500\n"


def test_an_executor_leads_a_session_and_may_gain_no_rights(session: Session) -> None:
    result = session.run(
        "import os\nprint(os.getsid(0) == os.getpid() == os.getpgid(0))\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('NoNewPrivs')])"
    )
    assert result.stdout == "True\n['1']\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_an_executor_becomes_its_user_and_still_dies_with_its_zygote() -> None:
    agent = Agent()
    nobody = 65534
    is_readable = all(
        folder.stat().st_mode & 0o005 == 0o005 for folder in [Path(os.__file__), *Path(os.__file__).parents][1:]
    )
    uid = nobody if is_readable else None  # where root has Python to itself, another group at least
    session = agent.fork(uid=uid, gid=nobody, groups=(nobody,), folder="/tmp", HOME="/tmp")
    ids = session.run("import os\nprint(os.getresuid(), os.getresgid(), os.getgroups())").stdout
    assert ids == f"{(uid or 0,) * 3} {(nobody,) * 3} [{nobody}]\n"
    assert session.run("!echo by name > /dev/stdout").stdout.splitlines() == ["by name"]
    agent.process.kill()
    assert session.is_gone()
    session.close()
    agent.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_an_executor_for_a_user_is_never_root(capfd: pytest.CaptureFixture[str]) -> None:
    agent = Agent()
    with pytest.raises((EOFError, ProcessLookupError)):  # it may be gone before anybody has a look at it
        agent.fork(uid=0, gid=0)
    agent.close()
    assert "never runs as root" in capfd.readouterr().err


def test_leaving_with_a_status_is_reported(agent: Agent, session: Session) -> None:
    session.start("import os\nos._exit(17)")
    assert agent.exit_status(session.pid) == 17


def test_being_killed_is_reported(agent: Agent, session: Session) -> None:
    session.run("1")
    signal.pidfd_send_signal(session.pidfd, signal.SIGKILL)
    assert agent.exit_status(session.pid) == -signal.SIGKILL


def test_an_executor_goes_with_its_pipe_and_takes_its_programs_with_it(agent: Agent) -> None:
    session = agent.fork()
    child = int(session.run("import subprocess\nprint(subprocess.Popen(['sleep', '10000']).pid)").stdout)
    pidfd = os.pidfd_open(child)
    session.start("while True: pass")
    session.close()
    assert agent.exit_status(session.pid) == UNHEARD
    ended = select.poll()
    ended.register(pidfd, select.POLLIN)
    assert ended.poll(DEADLINE_S * 1000)
    os.close(pidfd)


def test_who_traces_an_executor_does_not_keep_it(agent: Agent) -> None:
    """Its end would be told to its tracer alone, and its slot be given to nobody."""
    session = agent.fork()
    assert session.run(TRACES).stdout == "traced\n"
    os.killpg(session.pid, signal.SIGKILL)
    assert agent.exit_status(session.pid) == -signal.SIGKILL
    session.close()


def test_who_traces_an_executor_from_elsewhere_does_not_keep_it(agent: Agent) -> None:
    """As a user's own programs beside the pool may."""
    session = agent.fork()
    session.run(MAY_BE_TRACED)
    tracer = subprocess.Popen(
        [sys.executable, "-c", TRACER, str(session.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert tracer.stdout is not None
    assert tracer.stdout.readline() == "0\n"
    os.killpg(session.pid, signal.SIGKILL)
    assert agent.exit_status(session.pid) == -signal.SIGKILL
    assert tracer.poll() is None
    tracer.communicate()
    session.close()


@pytest.mark.parametrize("end", ["close", "kill"])
def test_what_leaves_its_executor_on_purpose_ends_with_it(agent: Agent, end: str) -> None:
    session, other = agent.fork(), agent.fork()
    stray, kept = (int(one.run(LEAVES).stdout) for one in (session, other))
    pidfd = os.pidfd_open(stray)
    if end == "kill":
        signal.pidfd_send_signal(session.pidfd, signal.SIGKILL)
    session.close()
    ended = select.poll()
    ended.register(pidfd, select.POLLIN)
    assert ended.poll(DEADLINE_S * 1000)
    os.close(pidfd)
    assert other.run("print(1)").stdout == "1\n"
    os.kill(kept, 0)  # it is there for as long as its own session is
    other.close()


def test_executors_die_with_their_zygote() -> None:
    agent = Agent()
    sessions = [agent.fork(), agent.fork()]
    sessions[0].start("while True: pass")
    agent.process.kill()
    assert all(session.is_gone() for session in sessions)
    for session in sessions:
        session.close()
    agent.close()


def test_a_zygote_ends_when_its_agent_hangs_up() -> None:
    agent = Agent()
    session = agent.fork()
    agent.control.close()
    assert agent.process.wait(DEADLINE_S) == 0
    assert session.is_gone()
    session.close()


def test_a_zygote_drops_a_request_that_it_does_not_understand(agent: Agent) -> None:
    socket.send_fds(agent.control, [b"F"], [0])
    pipe.send(agent.control, pack(Ping()))
    socket.send_fds(agent.control, [b"F"], [0])
    pipe.send(agent.control, pack(Fork(lease=LeaseId("l"), environ={})))
    session = agent.fork()
    assert session.run("print(1)").stdout == "1\n"
    session.close()


def test_junk_messages_are_dropped(session: Session) -> None:
    pipe.send(session.link, [b"junk", b"more"])
    pipe.send(session.link, [])
    session.say(Ping())
    session.say(Took(cell=CellId("of no cell")))
    session.say(Chunk(cell=CellId("of no cell"), size=3), [b"abc"])
    assert isinstance(session.hear(), Took)
    assert session.run("print(1)").stdout == "1\n"


def test_junk_instead_of_packets_ends_the_executor(agent: Agent) -> None:
    session = agent.fork()
    session.run("1")
    session.link.sendall(b"\xff" * 64)
    assert session.is_gone()
    session.close()


def test_executors_do_not_see_each_others_pipes(agent: Agent, session: Session) -> None:
    other = agent.fork()
    source = (
        "import os\nfound = []\nfor fd in os.listdir('/proc/self/fd'):\n"
        "    try: found.append(os.readlink(f'/proc/self/fd/{fd}'))\n    except OSError: pass\n"
        "print(sum('socket' in name for name in found), sum('ring' in name for name in found))"
    )
    assert other.run(source).stdout == session.run(source).stdout == "5 2\n"  # its links; two that wake its loop
    other.close()
