"""All settings of a pool: traitlets at the edge, read once, checked together, then frozen."""

import os
import pwd
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Literal

import msgspec
from traitlets import Bool, CaselessStrEnum, Dict, Float, Int, List, Unicode

from bulletin.errors import BadConfig
from bulletin.hub_scopes import ACCESS_SCOPE
from bulletin.units import DAY_MS
from gpu_worker.engine_settings import EngineSettings, EngineTraits

#: Imported by a zygote before it forks, where the environment has them: a first cell must not pay for `import torch`.
PRELOAD = ("numpy", "pandas", "matplotlib", "matplotlib.pyplot", "matplotlib_inline.backend_inline", "torch")


#: Where only this host's own programs come.
LOCALHOST = "127.0.0.1"
#: Whose Unix user cells run as; empty is not chosen.
Isolation = Literal["", "unix-user", "shared"]


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a pool, checked together, in exact units: milliseconds and bytes."""

    folder: Path
    host: str  #: empty: 127.0.0.1, or of a node the address by which it reaches its broker
    kernel_port: int
    agent_port: int
    node_port: int
    database: str
    slots: int
    use_gpus: bool
    preload: tuple[str, ...]
    environments: dict[str, str]
    environment: dict[str, str]
    isolation: Isolation
    agent_user: str
    min_uid: int
    unix_groups: tuple[str, ...]
    memory_per_slot_bytes: int | None
    processes: int
    require: tuple[str, ...]
    freeze_hot: bool | None
    devices: tuple[str, ...]
    user_namespaces: bool
    keep_ms: int
    keep_results_ms: int
    away_ms: int
    output_buffer_bytes: int
    user_disk_bytes: int | None
    keep_cells_ms: int | None
    advertise: str
    engine: EngineSettings
    leave_grace_ms: int
    ends_at_ms: int
    leave_alone_ms: int
    idle_exit_ms: int
    interrupt_grace_ms: int
    walltime_grace_ms: int
    max_walltime_ms: dict[str, int]
    quota_file: Path | None
    journal_file: Path | None
    parcel_limit_bytes: int
    hub_scope: str

    def require_isolation(
        self, *, serves_hub: bool, has_root_helper: bool = False, what: str = "this pool serves a hub"
    ) -> None:
        """Check that an admin has chosen whose Unix user cells run as, where that is not the one who started the pool.

        Raises
        ------
        BadConfig
            On a hub, and as root, if nothing is chosen; or if this process is not root, which 'unix-user' takes.
        """
        if self.isolation == "unix-user" and os.getuid() != 0 and not has_root_helper:
            raise BadConfig(
                f"Pool.isolation is 'unix-user', which needs a pool or agent that runs as root, and this one runs as "
                f"{account_name()!r}. Run it as root, or choose 'shared', with what the reference says of it. A broker "
                "alone may run as any user."
            )
        if self.isolation or not (serves_hub or os.getuid() == 0):
            return
        what = what if serves_hub else "this pool runs as root"
        raise BadConfig(
            f"Pool.isolation is not chosen, and {what}. Choose 'unix-user': each cell runs as the Unix user with the "
            "name of its hub user, for which the pool must run as root. Or choose 'shared': all cells run as "
            f"{account_name()!r}, and whoever runs one can read and change everything of everybody else's, and of the "
            "pool."
        )

    @property
    def interpreter_options(self) -> tuple[str, ...]:
        """What Python is to import nothing from: the folder it is started in, nor, for users' cells, root's own."""
        return ("-P", "-s") if self.isolation == "unix-user" else ("-P",)

    @property
    def leaving_takes_ms(self) -> int:
        """How long before its host's end an agent leaves: its cells have their grace, and it has 3 s to end them."""
        return self.leave_grace_ms + 3_000

    @property
    def pool_file(self) -> Path:
        """Keys and secrets of the pool's own processes."""
        return self.folder / "pool.json"

    @property
    def node_file(self) -> Path:
        """What the agent of a registered node has instead."""
        return self.folder / "node.json"

    @property
    def public_file(self) -> Path:
        """Where the broker is, for everybody to read."""
        return self.folder / "public.json"

    @property
    def connection_file(self) -> Path:
        """What a kernel of the same user needs. There only while the pool runs."""
        return self.folder / "connection.json"


def account_name(uid: int | None = None) -> str:
    """Name a Unix user, or that of this process: by the number, where it has no name."""
    number = os.getuid() if uid is None else uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def serves_hub(environ: Mapping[str, str]) -> bool:
    """Whether a process with such an environment belongs to a hub."""
    return "JUPYTERHUB_API_TOKEN" in environ


class Pool(EngineTraits):
    """The pool on this host: a broker and an agent."""

    folder = Unicode(
        "bulletin-pool",
        help="Where keys, the connection file and the ledger rest. Made with mode 0711; its files have 0600. "
        "Example: /var/lib/bulletin",
    ).tag(config=True)
    host = Unicode(
        "",
        help="The address of this host at which it listens: the broker for kernels and agents, the agent for kernels. "
        "Empty: 127.0.0.1, which no other host reaches; of a node (bulletin node) the address by which it reaches its "
        "broker. Where it is a name, the broker tells that to others, who find it at another address again. Example: "
        "10.0.0.5 where notebooks run on other hosts.",
    ).tag(config=True)
    advertise = Unicode(
        "",
        help="Where kernels reach the agent, if that is not where it listens: behind a port that is passed on. Empty: "
        "where it listens. Example: tcp://gpu1.example.org:9000",
    ).tag(config=True)
    kernel_port = Int(0, help="The broker's port for kernels. 0: a free one, kept from then on.").tag(config=True)
    agent_port = Int(0, help="The broker's port for agents. 0: a free one, kept from then on.").tag(config=True)
    node_port = Int(
        0,
        help="The agent's port, at which it lets in the kernels whose cells it runs. 0: a free one, kept from then on. "
        "Example: 9003 where a firewall is to let it through.",
    ).tag(config=True)
    database = Unicode(
        "",
        help="URL of the ledger's database. Empty: SQLite in the folder. PostgreSQL needs bulletin[postgresql]; "
        "keep its password in ~/.pgpass, not here. Example: postgresql://bulletin@db/bulletin",
    ).tag(config=True)
    slots = Int(
        0,
        min=0,
        help="How many CPU slots a node without a GPU offers. 0: one for each core. Nodes with GPUs offer those.",
    ).tag(config=True)
    device = CaselessStrEnum(
        ["auto", "cpu"], "auto", help="auto: GPUs where NVML finds some, else CPU slots. cpu: CPU slots in any case."
    ).tag(config=True)
    preload = List(
        Unicode(),
        list(PRELOAD),
        help="Modules that zygotes import before the first cell, where the environment has them. "
        "They must not use CUDA on import.",
    ).tag(config=True)
    environments = Dict(
        value_trait=Unicode(),
        key_trait=Unicode(),
        help='Environments that cells may ask for, by id. Example: {"torch": "/opt/envs/torch/bin/python"}. '
        'The id "default" is the interpreter of the pool unless it is set here. With the isolation unix-user one that '
        "others than root can change runs nothing.",
    ).tag(config=True)
    environment = Dict(
        value_trait=Unicode(),
        key_trait=Unicode(),
        help="Variables for all cells. On a hub, cells see of its own environment only what is known to be harmless: "
        'paths, languages, proxies, and what begins with CUDA_ and the like. Example: {"HF_HOME": "/srv/models"}',
    ).tag(config=True)
    agent_user = Unicode(
        "",
        help="With the isolation unix-user, the Unix user that `bulletin agent` becomes, but for a small part of it "
        "that stays root and starts what forks cells. The agent's folder must be that user's. Empty: all of the agent "
        "is root. Example: bulletin",
    ).tag(config=True)
    min_uid = Int(
        1000,
        min=1,
        help="With the isolation unix-user, no cell runs as a Unix user with a smaller number: those are the system's.",
    ).tag(config=True)
    unix_groups = List(
        Unicode(),
        help="With the isolation unix-user, the Unix groups of a node whose users may run cells there: who is in none "
        'of them is told so. Empty: all users who may log in. Example: ["students", "staff"]',
    ).tag(config=True)
    memory_per_slot = Float(
        None,
        allow_none=True,
        min=0,
        help="Host memory that a session which did not ask for some (%%gpu --memory) may use for each of its slots, in "
        "GB; one that uses more is ended. 0: no limit. Not set: on a hub the slot's part of 95 % of the node's memory, "
        "in a pool of one's own no limit. Example: 64",
    ).tag(config=True)
    processes = Int(
        4096,
        min=0,
        help="Processes and threads that a session may have; one that has more is ended. 0: no limit. Example: 10000",
    ).tag(config=True)
    require = List(
        CaselessStrEnum(["namespaces", "memory-limit"]),
        help="What an agent must be able to give its cells; where it cannot, it does not start (exit status 78). "
        "namespaces: a cell sees no process of others, has /dev/shm for itself, of the GPUs' device nodes its own, and "
        "with the isolation unix-user its own /tmp. On a hub, cells get what their node can give; what is missing is "
        "in the log and in `bulletin status`. memory-limit: the kernel holds a cell to its memory, by cgroups of "
        'version 2 that are delegated to the agent; else the agent looks once a second. Example: ["namespaces"]',
    ).tag(config=True)
    freeze_hot = Bool(
        None,
        allow_none=True,
        help="Let an executor stand still between cells, from a second after one has ended: threads and tasks that it "
        "has left running then use no GPU and no CPU that nobody is charged for, and go on with the next cell. It "
        "takes cgroups of version 2 that the agent may divide. Not set: on a hub where there are some. Example: False",
    ).tag(config=True)
    devices = List(
        Unicode(),
        help="Device nodes that cells with namespaces have besides those of their GPUs and those that every process "
        'needs. Example: ["/dev/infiniband", "/dev/fuse"]',
    ).tag(config=True)
    user_namespaces = Bool(
        False,
        help="Let cells that have namespaces make user namespaces, as apptainer, bubblewrap and browsers do without "
        "root: in these, a cell is beyond limits that keep it from taking all terminals, or shared memory, of its "
        "node. Example: True",
    ).tag(config=True)
    isolation = CaselessStrEnum(
        ["", "unix-user", "shared"],
        "",
        help="Whose Unix user cells run as. unix-user: that of the hub user's name, never root; needs a pool that runs "
        "as root, and such users. shared: that of the pool, so that whoever runs cells can read and change everything "
        "of everybody else's, and of the pool. On a hub, and as root, there is no default.",
    ).tag(config=True)
    keep = Float(
        3600.0,
        min=0,
        help="Seconds that a session outlives its kernel, in case the kernel comes back; and a node of another host "
        "its link to the broker, where nothing says that its agent is gone. Example: 600",
    ).tag(config=True)
    keep_results = Float(
        3600.0,
        min=0,
        help="Seconds that the outputs and results of a cell are kept whose notebook did not take them, after its "
        "executor is gone. Example: 600",
    ).tag(config=True)
    away = Float(
        10.0,
        min=1.5,
        help="Seconds of silence after which a notebook that has a cell counts as away: the agent then takes results "
        "into a file, so that the slot is free for others, and gives up a cell whose variables have not all come; the "
        "notebook sends it again. After three times as long a cell is ended that shall not outlive its notebook; after "
        "six times as long one that prints waits for nobody. Example: 30",
    ).tag(config=True)
    output_limit = Float(
        64.0,
        min=1,
        help="What is kept of the outputs of one cell, in MB, on the agent's disk. Where no notebook reads for six "
        "times `away`, the oldest go; else the cell waits for its notebook.",
    ).tag(config=True)
    keep_cells = Float(
        None,
        allow_none=True,
        min=62,  # budgets count by the month, and past use for eight weeks
        help="Days for which the ledger keeps leases that have ended, and their cells. Longer ago, both are deleted, "
        "also from `bulletin usage`: export before what you bill by. None: for ever. Example: 400",
    ).tag(config=True)
    user_disk = Float(
        None,
        allow_none=True,
        min=0,
        help="What is kept of one user's cells, outputs and results that no notebook has taken yet, on the agent's "
        "disk, in GB. What comes beyond is not kept, and the user is told. None: a tenth of the file system. Example: "
        "50",
    ).tag(config=True)
    idle_exit = Float(
        0.0,
        min=0,
        help="Seconds without any kernel or lease after which the pool ends. A killed kernel's lease lasts for `keep`.",
    ).tag(config=True)
    interrupt_grace = Float(
        10.0,
        min=0,
        help="Seconds that a stopped cell may stay inside C code before its executor is ended. "
        "A cell that has noticed may take its time.",
    ).tag(config=True)
    walltime_grace = Float(
        5.0, min=0, help="Seconds between the interrupt at the walltime and the end of the executor."
    ).tag(config=True)
    max_walltime = Dict(
        value_trait=Float(),
        key_trait=Unicode(),
        help='Longest run of a cell by QoS, in seconds, over the defaults. Example: {"interactive": 600}',
    ).tag(config=True)
    quota_file = Unicode(
        "",
        help="Projects and classes of service, in TOML or YAML. Read again when it changes; one with errors changes "
        "nothing. Empty: every group is a project with an equal share. Example: /etc/bulletin/quotas.toml",
    ).tag(config=True)
    journal_file = Unicode(
        "",
        help="Append all that the scheduler is told to this file, for `bulletin simulate --journal FILE`. The names of "
        "users, projects and sessions are in it; its mode is 0600. It grows by some MB a day. Empty: no journal. "
        "Example: /srv/bulletin/journal.jsonl",
    ).tag(config=True)
    parcel_limit = Float(64.0, min=0.001, help="What one cell may send or return at most, in GB.").tag(config=True)
    hub_scope = Unicode(ACCESS_SCOPE, help="The hub scope that a user's token must have to use the pool.").tag(
        config=True
    )

    def settings(self) -> PoolSettings:
        """Check everything together and freeze it.

        Raises
        ------
        BadConfig
            With the setting and the remedy.
        """
        folder = Path(self.folder).expanduser().absolute()
        ports = {name: getattr(self, name) for name in ("kernel_port", "agent_port", "node_port")}
        for trait, port in ports.items():
            if not 0 <= port <= 65535:
                raise BadConfig(f"Pool.{trait} is {port}. A port is a number from 0 to 65535; 0 takes a free one.")
        for one, other in combinations(ports, 2):
            if ports[one] and ports[one] == ports[other]:
                raise BadConfig(f"Pool.{one} and Pool.{other} are both {ports[one]}. Give them two ports, or 0.")
        for name, python in self.environments.items():
            if not os.access(python, os.X_OK):
                raise BadConfig(f"Pool.environments: the environment {name!r} names {python}, which is not a program.")
        return PoolSettings(
            folder=folder,
            host=self.host,
            kernel_port=self.kernel_port,
            agent_port=self.agent_port,
            node_port=self.node_port,
            database=self.database or f"sqlite:///{folder / 'ledger.sqlite'}",
            slots=self.slots or os.cpu_count() or 1,
            use_gpus=self.device == "auto",
            preload=tuple(self.preload),
            environments=dict(self.environments),
            environment=dict(self.environment),
            isolation=self.isolation,
            agent_user=self.agent_user,
            min_uid=self.min_uid,
            unix_groups=tuple(self.unix_groups),
            memory_per_slot_bytes=None if self.memory_per_slot is None else round(self.memory_per_slot * 10**9),
            processes=self.processes,
            require=tuple(self.require),
            freeze_hot=self.freeze_hot,
            devices=tuple(self.devices),
            user_namespaces=self.user_namespaces,
            keep_ms=round(self.keep * 1000),
            keep_results_ms=round(self.keep_results * 1000),
            away_ms=round(self.away * 1000),
            output_buffer_bytes=round(self.output_limit * 10**6),
            keep_cells_ms=None if self.keep_cells is None else round(self.keep_cells * DAY_MS),
            user_disk_bytes=None if self.user_disk is None else round(self.user_disk * 10**9),
            advertise=self.advertise,
            engine=self.read_engine(),
            leave_grace_ms=round(self.leave_grace * 1000),
            ends_at_ms=round(self.ends_at * 1000),
            leave_alone_ms=round(self.leave_alone * 1000),
            idle_exit_ms=round(self.idle_exit * 1000),
            interrupt_grace_ms=round(self.interrupt_grace * 1000),
            walltime_grace_ms=round(self.walltime_grace * 1000),
            max_walltime_ms={name: round(seconds * 1000) for name, seconds in self.max_walltime.items()},
            quota_file=Path(self.quota_file).expanduser().absolute() if self.quota_file else None,
            journal_file=Path(self.journal_file).expanduser().absolute() if self.journal_file else None,
            parcel_limit_bytes=round(self.parcel_limit * 10**9),
            hub_scope=self.hub_scope,
        )
