"""A zygote that is root for an agent which is not: whatever that asks, it is a user's cell, or nothing."""

import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from bulletin.wire import pipe
from bulletin.wire.frames import pack
from bulletin.wire.messages import Namespaces, SignalGroup
from gpu_worker.agent.node_protections import find_namespace_problem
from gpu_worker.executor.fork_guard import write_guard
from tests.conformance.agent_side import TRACES, Agent, Session
from tests.other_users import free_uid, in_mount_namespace, with_readable_python, with_users

if os.getuid() != 0:
    pytest.skip("only root may become other users", allow_module_level=True)
if problem := find_namespace_problem():
    pytest.skip(f"no namespaces here: {problem}", allow_module_level=True)

ALICE, GUEST = free_uid(61_000), free_uid(62_000)
OWN = Namespaces()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("guarded")
    users = with_users(folder, {"alice": ALICE, "guest": GUEST}, groups={"lab": ["alice"]})
    under = in_mount_namespace([*with_readable_python(folder), *users])
    agent = Agent(under=under, guard=write_guard(1000, ("lab",)))
    try:
        yield agent
    finally:
        agent.close()


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"uid": None}, "runs here as its user"),
        ({"uid": 0}, "account of the system"),
        ({"uid": 33}, "account of the system"),
        ({"uid": 4711}, "there is no Unix user 4711"),
        ({"uid": GUEST}, "in none of the groups"),
        ({"uid": ALICE, "namespaces": None}, "in namespaces of its own"),
        ({"uid": ALICE, "namespaces": Namespaces(devices=("/etc/shadow",))}, "/etc/shadow is no device node"),
        ({"uid": ALICE, "namespaces": Namespaces(devices=("/dev/../etc/shadow",))}, "is no device node"),
        ({"uid": ALICE, "namespaces": Namespaces(devices=("/dev/fd",))}, "is no device node"),
    ],
    ids=str,
)
def test_what_is_more_than_a_users_cell_is_refused(agent: Agent, asked: dict[str, Any], why: str) -> None:
    with pytest.raises(PermissionError, match=why):
        agent.fork(**({"namespaces": OWN} | asked))


def test_groups_home_and_folder_are_this_hosts_word_and_not_the_agents(agent: Agent) -> None:
    session = agent.fork(uid=ALICE, gid=0, groups=(0, 42), folder="/root", namespaces=OWN, HOME="/root", USER="root")
    try:
        source = "import os\nprint(os.getresuid(), os.getresgid(), len(os.getgroups()), os.environ['USER'])\n"
        result = session.run(f"{source}print(os.environ['HOME'] == os.path.expanduser('~alice'), 0 in os.getgroups())")
        assert result.stdout == f"{(ALICE,) * 3} {(ALICE,) * 3} 2 alice\nTrue False\n"
    finally:
        session.close()


def test_it_signals_its_own_executors_and_nobody_else(agent: Agent) -> None:
    session = agent.fork(uid=ALICE, namespaces=OWN)
    try:
        with subprocess.Popen(["sleep", "1000"], start_new_session=True) as other:
            for pid in (other.pid, 0):  # and no number by which a zygote without this check could end the whole host
                send(agent, pid, signal.SIGKILL)
            send(agent, executor_of(agent), signal.SIGSTOP)  # of no use for ending anything
            assert session.run("print('still here')").stdout == "still here\n"
            assert other.poll() is None
            send(agent, executor_of(agent), signal.SIGKILL)
            assert agent.exit_status(executor_of(agent)) == -signal.SIGKILL
            other.kill()
    finally:
        session.close()


def test_who_traces_an_executor_does_not_keep_it(agent: Agent) -> None:
    session = agent.fork(uid=ALICE, namespaces=OWN)
    assert session.run(TRACES).stdout == "traced\n"
    send(agent, executor_of(agent), signal.SIGKILL)
    assert agent.exit_status(executor_of(agent)) == -signal.SIGKILL
    session.close()


def send(agent: Agent, pid: int, number: int) -> None:
    agent.control.sendall(b"S")
    pipe.send(agent.control, pack(SignalGroup(pid=pid, number=number)))


def executor_of(agent: Agent) -> int:
    return agent.forked[-1]


def test_what_is_no_message_is_dropped(agent: Agent) -> None:
    agent.control.sendall(b"S")
    pipe.send(agent.control, [b"1", b"not a message"])
    session: Session = agent.fork(uid=ALICE, namespaces=OWN)
    session.close()
