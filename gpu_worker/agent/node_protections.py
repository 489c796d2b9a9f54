"""What keeps the cells of a node apart beside their Unix users, found once at the agent's start; what must be there."""

import subprocess
import sys

import msgspec
import structlog

from bulletin.errors import BadConfig
from bulletin.ids import AgentId
from gpu_worker.agent import environment_owners
from gpu_worker.agent.cgroups import CgroupTree, find_base
from gpu_worker.config import PoolSettings

#: For a check that makes namespaces and ends at once.
_CHECK_S = 30.0


class NodeProtections(msgspec.Struct, frozen=True, kw_only=True):
    """What executors of this node get. `missing` are the words for what they should get and cannot, and why."""

    has_namespaces: bool = False
    #: Where executors have file systems of their own, in memory.
    scratch: tuple[str, ...] = ()
    cgroups: CgroupTree | None = None
    #: Executors stand still between cells.
    freezes_hot: bool = False
    missing: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def kernel_limits_memory(self) -> bool:
        """Whether the kernel holds sessions to their memory; else the agent looks once a second."""
        return self.cgroups is not None and "memory" in self.cgroups.controllers


def find_protections(
    settings: PoolSettings, agent: AgentId, *, serves_hub: bool, has_root_helper: bool = False
) -> NodeProtections:
    """Find what this node can do to keep cells of strangers apart, and say in the log what it cannot.

    A pool of one's own has no strangers: its cells see the processes and devices that its user's notebooks see.

    Raises
    ------
    BadConfig
        If something is missing that `Pool.require` lists, or that a setting needs; or if others can change what this
        program consists of, and it is root to start cells as its users.
    """
    if settings.isolation == "unix-user" and not has_root_helper:
        environment_owners.require_roots()
    has_strangers = serves_hub or settings.isolation == "unix-user"
    missing = {}
    has_namespaces = has_strangers or "namespaces" in settings.require
    # A helper that is root has tried that, and starts no agent without.
    if has_namespaces and not has_root_helper and (problem := find_namespace_problem()):
        missing["namespaces"], has_namespaces = problem, False
    cgroups, problem = _open_cgroups(agent)
    if settings.freeze_hot and cgroups is None:
        raise BadConfig(
            f"Pool.freeze_hot needs cgroups of version 2 that the agent may divide ({problem}). Give its unit "
            "Delegate=yes, or take the setting out."
        )
    if problem and (has_strangers or "memory-limit" in settings.require):
        missing["memory-limit"] = problem
    log = structlog.get_logger("agent")
    for word, why in missing.items():
        log.warning("cells of this node lack a protection", protection=word, problem=why)
    for word in settings.require:
        if word in missing:
            if cgroups is not None:
                cgroups.close()
            raise BadConfig(
                f"Pool.require lists {word!r}, which this node cannot give its cells ({missing[word]}). Give the agent "
                "what it takes, as docs/explanation/trust.md says, or take the word out of the list."
            )
    freezes_hot = has_strangers if settings.freeze_hot is None else settings.freeze_hot
    scratch = ("/dev/shm", *(("/tmp", "/var/tmp") if settings.isolation == "unix-user" else ()))  # noqa: S108
    return NodeProtections(
        has_namespaces=has_namespaces,
        scratch=scratch if has_namespaces else (),
        cgroups=cgroups,
        freezes_hot=freezes_hot,
        missing=missing,
    )


def _open_cgroups(agent: AgentId) -> tuple[CgroupTree | None, str]:
    """Find the cgroups that this agent may make, and what they lack to limit memory; empty if they lack nothing."""
    try:
        cgroups = CgroupTree(find_base(), agent)
    except (LookupError, OSError) as error:
        return None, str(error)
    return cgroups, "" if "memory" in cgroups.controllers else "the memory controller is not the agent's to use"


def find_namespace_problem() -> str:
    """Try to make the namespaces that executors get; return what is in the way, empty if nothing is."""
    command = [sys.executable, "-P", "-m", "gpu_worker.executor.namespace_check"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_CHECK_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode != 0:
        return f"the check ended with status {done.returncode}"
    return done.stdout.strip()
