"""What a tenant takes of the kernel that all tenants of a node share: no more than the limits of its session let it."""

from pathlib import Path

import pytest

from bulletin.wire.messages import Namespaces
from gpu_worker.agent.node_protections import find_namespace_problem
from tests.conformance.agent_side import Agent, Session

if problem := find_namespace_problem():
    pytest.skip(f"no namespaces here: {problem}", allow_module_level=True)

#: Any ids without a name: nobody's.
ALICE, BOB = 61_001, 61_002
#: Makes a user namespace, by a process of its own with one thread, and says what came of it.
NEW_USER = """
import subprocess
print(subprocess.run(["unshare", "--user", "--mount", "--ipc", "true"], stderr=subprocess.DEVNULL).returncode)
"""
#: The same, by clone(2), whose numbers are those of machines.
CLONES = """
import ctypes, os
number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
made = libc.syscall(number, ctypes.c_long(0x10000000 | 17), 0, 0, 0, 0)
if made == 0:
    os._exit(0)
print(made, os.strerror(ctypes.get_errno()))
"""


def fork(agent: Agent, uid: int, namespaces: Namespaces) -> Session:
    return agent.fork(uid=uid, gid=uid, groups=(uid,), namespaces=namespaces)


def said(session: Session, source: str) -> str:
    """What a cell prints; it must come to its end."""
    result = session.run(source)
    assert result.outcome == "returned", result.error
    return result.stdout


def test_a_cell_makes_no_user_namespace(agent_of_users: Agent) -> None:
    """In which it would have terminals and shared memory beyond the limits of its session, and others none."""
    alice = fork(agent_of_users, ALICE, Namespaces())
    try:
        assert said(alice, NEW_USER) == "1\n"
        assert said(alice, CLONES) == "-1 Operation not permitted\n"
        assert said(alice, "import os\nos.chdir('/..')\nprint(os.getcwd(), 'etc' in os.listdir())") == "/ True\n"
    finally:
        alice.close()


@pytest.mark.skipif(
    Path("/proc/sys/user/max_user_namespaces").read_text() == "0\n", reason="nobody makes user namespaces here"
)
def test_a_cell_makes_user_namespaces_where_an_admin_lets_it(agent_of_users: Agent) -> None:
    alice = fork(agent_of_users, ALICE, Namespaces(has_user_namespaces=True))
    try:
        assert said(alice, NEW_USER) == "0\n"
    finally:
        alice.close()


def test_nobody_has_others_ended_before_when_memory_runs_out(agent_of_users: Agent) -> None:
    """Where user code could take back that it is the first to go, nobody else is to be."""
    alice, bob = (fork(agent_of_users, uid, Namespaces()) for uid in (ALICE, BOB))
    try:
        score = "print(open('/proc/self/oom_score_adj').read())"
        said(alice, "try:\n    open('/proc/self/oom_score_adj', 'w').write('0')\nexcept OSError:\n    pass")
        assert said(alice, score) == said(bob, score)
    finally:
        alice.close()
        bob.close()
