"""A small real Slurm on this host, of virtual nodes with pretended GPUs, for as long as tests need it."""

import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.processes import has_ended
from tests.waiting import until

PACKAGES = ("munge", "slurm-client", "slurmctld", "slurmd")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
_PATIENCE_S = 60.0
_POLICY = Path("/usr/sbin/policy-rc.d")
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=15
CryptoType=crypto/munge
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=10
InactiveLimit=0
KillWait=3
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_min_interval=500000,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
"""


def missing() -> str:
    """Why there cannot be a Slurm here; empty if there can. Installs Debian's packages where that is possible."""
    if os.getuid():
        return "a Slurm of one's own needs root"
    if all(map(shutil.which, PROGRAMS)):
        return ""
    if shutil.which("apt-get") is None:
        return f"Slurm is not installed: {', '.join(PACKAGES)} of Debian"
    with Path(tempfile.gettempdir(), "bulletin-apt.lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        return "" if all(map(shutil.which, PROGRAMS)) else _install()


def _install() -> str:
    is_ours = not _POLICY.exists()
    if is_ours:  # the distribution's own services are not to start
        _POLICY.write_text("#!/bin/sh\nexit 101\n")
        _POLICY.chmod(0o755)
    try:
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *PACKAGES]):
            done = subprocess.run(["apt-get", *words], env=environ, capture_output=True, text=True, check=False)
            if done.returncode:
                return f"Slurm cannot be installed here: {done.stderr.strip()[-200:]}"
    finally:
        if is_ours:
            _POLICY.unlink()
    return ""


class Slurm:
    """The cluster: nodes n1, n2, ...; a job of the partition `main` takes the place of one of `low`."""

    def __init__(self, folder: Path, nodes: int, cpus: int, under: Sequence[str] = ()) -> None:
        """Take the words before its programs, which may run in a mount namespace that knows more users."""
        self.under = under
        self.folder, self.nodes, self.cpus = folder, [f"n{number + 1}" for number in range(nodes)], cpus
        self.environ = {"SLURM_CONF": str(folder / "slurm.conf")}

    def run(self, *words: str) -> str:
        """What a command of the cluster prints."""
        done = subprocess.run(
            [*self.under, *words],
            env=os.environ | self.environ,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout.strip()

    def jobs(self, states: str = "PENDING,RUNNING,COMPLETING") -> list[str]:
        """The ids of jobs in these states."""
        return self.run("squeue", "-h", "-t", states, "-o", "%A").split()

    def start(self) -> None:
        """Start all of it, and wait until each node takes jobs."""
        self._configure()
        munge = pwd.getpwnam("munge")
        for path in (self.folder / "munge", self.folder / "munge" / "key"):
            os.chown(path, munge.pw_uid, munge.pw_gid)
        socket_, key = self.folder / "munge" / "socket", self.folder / "munge" / "key"
        files = [f"--{name}-file={self.folder / 'munge' / name}" for name in ("pid", "log", "seed")]
        as_munge = ("setpriv", "--reuid=munge", "--regid=munge", "--init-groups")
        subprocess.run(
            [*self.under, *as_munge, "munged", f"--socket={socket_}", f"--key-file={key}", *files], check=True
        )
        environ = os.environ | self.environ
        subprocess.run([*self.under, "slurmctld", "-f", self.environ["SLURM_CONF"]], check=True, env=environ)
        for node in self.nodes:
            self.start_node(node)
        until(lambda: self._idle() == len(self.nodes), "all nodes of the cluster", _PATIENCE_S)

    def start_node(self, node: str) -> None:
        """Start what runs jobs on a node."""
        words = ["slurmd", "-N", node, "-f", self.environ["SLURM_CONF"]]
        subprocess.run([*self.under, *words], check=True, env=os.environ | self.environ)

    def kill_node(self, node: str) -> None:
        """Kill what runs jobs on a node. Their processes go on."""
        os.kill(int(self.folder.joinpath(f"slurmd.{node}.pid").read_text()), signal.SIGKILL)

    def _idle(self) -> int:
        done = subprocess.run(
            [*self.under, "sinfo", "-h", "-N", "-p", "main", "-t", "idle", "-o", "%N"],
            env=os.environ | self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        return len(done.stdout.split())

    def _configure(self) -> None:
        ports = _free_ports(2 + len(self.nodes))
        host = socket.gethostname().partition(".")[0]
        for name in ("munge", "state", "spool", "devices", *(f"spool/{node}" for node in self.nodes)):
            (self.folder / name).mkdir(mode=0o711)
        (self.folder / "munge" / "key").write_bytes(os.urandom(128))
        (self.folder / "munge" / "key").chmod(0o400)
        lines = [CONFIG.format(host=host, folder=self.folder, port=ports[0], node_port=ports[1])]
        gres = []
        for number, node in enumerate(self.nodes):
            where = f"NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2 + number]}"
            lines.append(f"NodeName={node} {where} CPUs={self.cpus} RealMemory=2000 Gres=gpu:2 State=UNKNOWN\n")
            for gpu in range(2):  # Slurm wants a device behind each name
                (self.folder / "devices" / f"{node}-nvidia{gpu}").symlink_to("/dev/null")
            gres.append(f"NodeName={node} Name=gpu File={self.folder}/devices/{node}-nvidia[0-1]\n")
        lines.append("PartitionName=main Nodes=ALL Default=YES State=UP PriorityTier=10 PreemptMode=OFF\n")
        lines.append("PartitionName=low Nodes=ALL State=UP PriorityTier=1 PreemptMode=REQUEUE\n")
        (self.folder / "slurm.conf").write_text("".join(lines))
        (self.folder / "gres.conf").write_text("".join(gres))

    def stop(self) -> None:
        """End all jobs, and all that was started."""
        with suppress(AssertionError, subprocess.TimeoutExpired):
            if jobs := self.jobs():
                self.run("scancel", *jobs)
                until(lambda: not self.jobs(), "the jobs to end", patience_s=20)
        for file in (*self.folder.glob("*.pid"), self.folder / "munge" / "pid"):
            with suppress(OSError, ValueError):
                _end(int(file.read_text()))
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                is_step = process.name.isdigit() and (process / "comm").read_text().strip() == "slurmstepd"
                if is_step and str(self.folder).encode() in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    for _ in range(100):
        if has_ended(pid):
            return
        threading.Event().wait(0.05)
    os.kill(pid, signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def cluster(nodes: int = 2, cpus: int = 2, under: Sequence[str] = ()) -> Iterator[Slurm]:
    """Make a cluster; skips the test, with the reason, where there cannot be one."""
    if problem := missing():
        pytest.skip(problem)
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # sockets have short names
    folder.chmod(0o755)
    slurm = Slurm(folder, nodes, cpus, under)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
        shutil.rmtree(folder, ignore_errors=True)
