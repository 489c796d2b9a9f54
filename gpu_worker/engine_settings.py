"""Settings of where agents come from: which engine, how many agents, and how each engine starts and ends one."""

import msgspec
from traitlets import CaselessStrEnum, Float, Int, List, Unicode
from traitlets.config import Configurable

from bulletin.errors import BadConfig

#: What a cell may need beside its walltime in a job's time: the start of its process, and the agent's own end.
_BESIDE_MS = 60_000


class ScalingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How many agents there are, and when."""

    min_nodes: int
    max_nodes: int
    spare_slots: int
    idle_ms: int
    patience_ms: int
    node_slots: int  #: 0: as many as those that came
    start_limit_ms: int
    look_ms: int
    folder: str


class SlurmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is said to sbatch for each agent."""

    partition: str
    account: str
    qos: str
    gres: str
    constraint: str
    time_ms: int
    options: tuple[str, ...]
    setup: str
    python: str


class CommandSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What starts an agent, ends it, and tells whether it is there."""

    start: tuple[str, ...]
    stop: tuple[str, ...]
    look: tuple[str, ...]


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which engine, with the settings of all."""

    name: str
    scaling: ScalingSettings
    slurm: SlurmSettings
    command: CommandSettings

    @property
    def is_scaled(self) -> bool:
        """Whether agents come and go with who waits."""
        return self.name != "local"

    def longest_cell_ms(self, leave_grace_ms: int) -> int | None:
        """Compute the longest walltime of a cell that a new node could hold; None where nodes have no end."""
        if self.name != "slurm":
            return None
        return max(0, self.slurm.time_ms - leave_grace_ms - _BESIDE_MS)


class Scaling(Configurable):
    """How many agents an engine runs that starts them for who waits, and ends them when nobody does."""

    min_nodes = Int(0, min=0, help="So many agents are there also when nobody waits. Example: 1").tag(config=True)
    max_nodes = Int(4, min=1, help="No more agents than these, those that are starting included. Example: 16").tag(
        config=True
    )
    spare_slots = Int(
        0, min=0, help="So many slots are kept free for who comes next: nobody waits for a start then. Example: 2"
    ).tag(config=True)
    idle = Float(
        600.0,
        min=0,
        help="Seconds without a cell after which an agent is ended, where fewer are enough. What its notebooks kept "
        "there is moved out by it, as for somebody who waits. Example: 1800",
    ).tag(config=True)
    patience = Float(
        5.0,
        min=0,
        help="Seconds that somebody waits before another agent is started beside those that are there, whose cells may "
        "be over sooner. Where there is none, one is started at once. Example: 30",
    ).tag(config=True)
    node_slots = Int(
        0,
        min=0,
        help="How many slots an agent is expected to offer, before the first one has shown it. 0: the number of GPUs "
        "in SlurmAgents.gres, else 1. Example: 4",
    ).tag(config=True)
    start_limit = Float(
        300.0,
        min=1,
        help="Seconds from the start of an agent, or of its job, within which it is to come to the broker; one that "
        "does not is ended, and another is started after a while. Example: 900",
    ).tag(config=True)
    look = Float(
        5.0,
        min=0.2,
        help="Seconds between two looks at what became of the agents: for Slurm one squeue each time. Example: 30",
    ).tag(config=True)
    folder = Unicode(
        "",
        help="Where the files of agents lie, each with the keys of that agent alone, mode 0600, while it is there. "
        "Hosts of agents must see it at the same place. Empty: the folder `agents` in that of the pool. Example: "
        "/home/bulletin/agents",
    ).tag(config=True)

    def read(self) -> ScalingSettings:
        """Check and freeze them. Raises BadConfig."""
        if self.min_nodes > self.max_nodes:
            raise BadConfig(
                f"Scaling.min_nodes is {self.min_nodes}, and Scaling.max_nodes is {self.max_nodes}: the first is "
                "more than the second. Change one of them."
            )
        return ScalingSettings(
            min_nodes=self.min_nodes,
            max_nodes=self.max_nodes,
            spare_slots=self.spare_slots,
            idle_ms=round(self.idle * 1000),
            patience_ms=round(self.patience * 1000),
            node_slots=self.node_slots,
            start_limit_ms=round(self.start_limit * 1000),
            look_ms=round(self.look * 1000),
            folder=self.folder,
        )


class SlurmAgents(Configurable):
    """What the engine `slurm` asks of Slurm for each agent, which is a job."""

    partition = Unicode("", help="sbatch --partition. Empty: the cluster's default. Example: gpu").tag(config=True)
    account = Unicode("", help="sbatch --account. Empty: the user's own. Example: bulletin").tag(config=True)
    qos = Unicode("", help="sbatch --qos. Empty: the account's own. Example: interactive").tag(config=True)
    gres = Unicode(
        "", help="sbatch --gres: the GPUs of each job, which are the slots of its agent. Example: gpu:a100:2"
    ).tag(config=True)
    constraint = Unicode("", help="sbatch --constraint. Example: nvlink").tag(config=True)
    time = Float(
        14_400.0,
        min=300,
        help="Seconds that a job may take, sbatch --time. No cell starts in it that could not end before, and no cell "
        "of the pool may ask for more: walltimes of classes of service that are longer are cut to it. Example: 28800",
    ).tag(config=True)
    options = List(
        Unicode(), help='More options of sbatch. Example: ["--cpus-per-task=8", "--mem=64G", "--exclusive=user"]'
    ).tag(config=True)
    setup = Unicode("", help='Lines of shell that a job runs before its agent. Example: "module load cuda/12.4"').tag(
        config=True
    )
    python = Unicode(
        "",
        help="The interpreter of agents on the cluster's nodes, whose environment has bulletin[pool]. Empty: that of "
        "the pool, at the same place. Example: /opt/bulletin/bin/python",
    ).tag(config=True)

    def read(self) -> SlurmSettings:
        """Freeze them."""
        return SlurmSettings(
            partition=self.partition,
            account=self.account,
            qos=self.qos,
            gres=self.gres,
            constraint=self.constraint,
            time_ms=round(self.time * 1000),
            options=tuple(self.options),
            setup=self.setup,
            python=self.python,
        )


class CommandAgents(Configurable):
    """What the engine `command` runs to start an agent somewhere, and to end it."""

    start = List(
        Unicode(),
        help="The command that starts an agent and returns once that is under way: `bulletin agent` with a folder that "
        "has, as node.json, what $BULLETIN_NODE_FILE names, and with --config=$BULLETIN_AGENT_CONFIG. The node's name "
        "is $BULLETIN_NODE. The last line that it prints is what the other commands find it by ($BULLETIN_JOB); the "
        "node's name, if it prints none. "
        'Example: ["/etc/bulletin/start-agent"]',
    ).tag(config=True)
    stop = List(
        Unicode(),
        help="The command that ends the agent $BULLETIN_JOB of the node $BULLETIN_NODE, best by SIGTERM; one that is "
        "gone already is right. It runs after a start that failed, or took too long, too: $BULLETIN_JOB is then the "
        'last line that was printed, or the name of the node. Example: ["/etc/bulletin/stop-agent"]',
    ).tag(config=True)
    look = List(
        Unicode(),
        help="The command that tells whether the agent $BULLETIN_JOB is there, by its exit status: 0 it is, 1 it is "
        "gone for good, so that its cells can run again elsewhere. Empty: the broker finds out, some time after it is "
        'silent. Example: ["/etc/bulletin/look-after-agent"]',
    ).tag(config=True)

    def read(self) -> CommandSettings:
        """Freeze them."""
        return CommandSettings(start=tuple(self.start), stop=tuple(self.stop), look=tuple(self.look))


class EngineTraits(Configurable):
    """The settings of a pool that say where its agents come from, and how one leaves."""

    engine = CaselessStrEnum(
        ["local", "slurm", "command"],
        "local",
        help="Where the agents of `bulletin pool` come from. local: one, on this host. slurm: as jobs of a cluster "
        "(SlurmAgents), started when somebody waits and ended when nobody does (Scaling). command: the same by "
        "commands of your own (CommandAgents).",
    ).tag(config=True)
    leave_grace = Float(
        30.0,
        min=0,
        help="Seconds that running cells have to end when their agent gets SIGTERM, or its host's time ends; those "
        "that have not are run again elsewhere. Example: 120",
    ).tag(config=True)
    leave_alone = Float(
        0.0,
        min=0,
        help="Seconds without its broker after which an agent that runs no cell leaves. 0: never, it goes on trying. "
        "Agents that an engine started: 600, if nothing is set. Example: 3600",
    ).tag(config=True)
    ends_at = Float(
        0.0,
        min=0,
        help="When the host of this agent is taken away, in seconds since 1970: no cell is started that could not end "
        "before, and the agent has left by then. 0: when the job of Slurm ends that the agent runs in, else never. "
        "Example: 1790000000",
    ).tag(config=True)

    def read_engine(self) -> EngineSettings:
        """Check and freeze what engines need. Raises BadConfig."""
        return EngineSettings(
            name=self.engine,
            scaling=Scaling(parent=self).read(),
            slurm=SlurmAgents(parent=self).read(),
            command=CommandAgents(parent=self).read(),
        )
