"""The command line: every `bulletin COMMAND`. Those that print what a pool or its ledger knows are in `console`."""

import asyncio
import os
import shutil
import signal
import sys
import textwrap
from difflib import get_close_matches

from traitlets import Bool

from bulletin import __version__
from bulletin.errors import BadConfig, BulletinError
from bulletin.wire import keys
from gpu_worker import event_log
from gpu_worker.config import serves_hub
from gpu_worker.console.announce_command import AnnounceCommand
from gpu_worker.console.base_command import Command, when_stdin_ends
from gpu_worker.console.hand_commands import (
    BoostCommand,
    ExtendCommand,
    HoldCommand,
    ReleaseCommand,
    RequeueCommand,
    TopCommand,
)
from gpu_worker.console.node_command import NodeCommand
from gpu_worker.console.query_commands import (
    CancelCommand,
    DrainCommand,
    ExplainCommand,
    MetricsCommand,
    QueueCommand,
    StatusCommand,
)
from gpu_worker.console.quota_command import QuotaCommand
from gpu_worker.console.request_command import RequestCommand
from gpu_worker.console.usage_command import UsageCommand
from gpu_worker.doctor.doctor_command import DoctorCommand
from gpu_worker.engines import BAD_CONFIG, PoolRunner, make_engine
from gpu_worker.simulator.simulate_command import SimulateCommand
from gpu_worker.starter_files.init_command import InitCommand


class PoolCommand(Command):
    """`bulletin pool`: a broker and an agent on this host, each started again when it dies."""

    name = "bulletin-pool"
    description = (
        "Run a pool on this host: a broker and an agent, each started again when it dies; or with --engine, agents "
        "elsewhere, as jobs of Slurm say."
    )

    def start(self) -> None:
        """Run the pool."""
        settings = self.settings()
        settings.require_isolation(serves_hub=serves_hub(os.environ))
        if settings.agent_user:
            raise BadConfig(
                "Pool.agent_user is set, and `bulletin pool` runs broker and agent as one user. Run `bulletin broker` "
                "and `bulletin agent` by themselves, as the units in deploy/systemd do, or leave the setting empty."
            )
        arguments = [word for word in self.given if word != "--exit-with-stdin"]

        async def run() -> int:
            pool = PoolRunner(settings, arguments, make_engine(settings, arguments, self.agent_settings()))
            if self.exit_with_stdin:
                when_stdin_ends(asyncio.get_running_loop(), pool.stop)
            return await pool.run()

        keys.make_folder(settings.folder)
        settings.connection_file.unlink(missing_ok=True)
        self.status = asyncio.run(run())


class BrokerCommand(Command):
    """`bulletin broker`: the broker alone."""

    name = "bulletin-broker"
    description = (
        "Run a broker: identity, queue, leases, ledger. An agent of the same folder finds it, and those of registered "
        "nodes (bulletin node)."
    )

    def start(self) -> None:
        """Run the broker."""
        from gpu_worker.broker.app import Broker
        from gpu_worker.broker.hub_answers import Hub
        from gpu_worker.broker.ledger import Ledger
        from gpu_worker.broker.pool_files import open_files

        settings = self.settings()
        self.require_obeyed("broker")
        files = open_files(settings)

        async def run() -> int:
            await Broker(settings, Ledger.open(settings.database), files, Hub.from_environ()).run()
            return 0

        self.status = self.serve(run)


class AgentCommand(Command):
    """`bulletin agent`: the agent of this node."""

    remove_folder = Bool(
        False, help="Remove the folder when the agent has ended: a job made it, for the agent alone."
    ).tag(config=True)
    flags = {
        **Command.flags,
        "remove-folder": ({"AgentCommand": {"remove_folder": True}}, "Remove the folder when the agent has ended."),
    }
    name = "bulletin-agent"
    description = (
        "Run the agent of this node: it offers the node's GPUs (or CPU slots) to the broker of the same folder, or to "
        "the one that the folder's node.json names (bulletin node)."
    )

    def start(self) -> None:
        """Run the agent."""
        from gpu_worker.agent import job_folders
        from gpu_worker.agent.membership import read_membership
        from gpu_worker.agent.node_agent import Agent, make_process_mark
        from gpu_worker.agent.node_protections import find_protections
        from gpu_worker.agent.root_helper import RootHelper
        from gpu_worker.agent.zygote_start import RootLink
        from gpu_worker.executor.environment import die_with_parent

        settings = self.settings()
        has_root_helper = self.root_helper is not None
        if settings.agent_user and os.getuid() == 0:
            self.status = RootHelper(settings, make_process_mark(settings), self.given).run()
            return
        if has_root_helper:
            die_with_parent(os.getppid())
        membership = read_membership(settings)
        self.require_obeyed("agent", is_alone=bool(membership.node))
        settings.require_isolation(
            serves_hub=membership.serves_hub,
            has_root_helper=has_root_helper,
            what="this node runs cells for others" if membership.node else "this pool serves a hub",
        )
        protections = find_protections(
            settings, make_process_mark(settings), serves_hub=membership.serves_hub, has_root_helper=has_root_helper
        )
        starter = RootLink(self.root_helper) if self.root_helper is not None else None

        async def run() -> int:
            agent = Agent(settings, membership, protections, starter)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, agent.leave)
            await agent.run()
            return 128 + signal.SIGTERM  # it was told to end: what keeps it alive starts it again

        if not (self.remove_folder and membership.node):
            self.status = self.serve(run)
            return
        with job_folders.hold(settings.folder):
            job_folders.remove_left(settings.folder)
            try:
                self.status = self.serve(run)
            finally:
                shutil.rmtree(settings.folder, ignore_errors=True)


#: In characters, of what `bulletin --help` prints.
_HELP_WIDTH = 100

COMMANDS: dict[str, type[Command | SimulateCommand]] = {
    "init": InitCommand,
    "doctor": DoctorCommand,
    "pool": PoolCommand,
    "broker": BrokerCommand,
    "agent": AgentCommand,
    "node": NodeCommand,
    "status": StatusCommand,
    "queue": QueueCommand,
    "explain": ExplainCommand,
    "cancel": CancelCommand,
    "hold": HoldCommand,
    "release": ReleaseCommand,
    "top": TopCommand,
    "requeue": RequeueCommand,
    "extend": ExtendCommand,
    "boost": BoostCommand,
    "request": RequestCommand,
    "drain": DrainCommand,
    "announce": AnnounceCommand,
    "quota": QuotaCommand,
    "metrics": MetricsCommand,
    "usage": UsageCommand,
    "simulate": SimulateCommand,
}


def describe_commands() -> str:
    """Return what `bulletin --help` prints, in lines that fit a terminal."""
    indent = " " * 20
    known = "\n".join(
        textwrap.fill(
            str(command.description),
            width=_HELP_WIDTH,
            initial_indent=f"  bulletin {name:8} ",
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        for name, command in COMMANDS.items()
    )
    return f"usage: bulletin COMMAND [options]\n\n{known}\n\nbulletin COMMAND --help-all shows all settings.\n"


def main(argv: list[str] | None = None) -> None:
    """Run one command; its errors are sentences, and bad configuration is exit status 78."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("--version", "-V"):
        sys.stdout.write(f"bulletin {__version__}\n")
        raise SystemExit(0)
    if words and words[0] in ("-h", "--help", "help"):
        sys.stdout.write(describe_commands())
        raise SystemExit(0)
    if not words:
        sys.stderr.write(describe_commands())
        raise SystemExit(2)
    if words[0] not in COMMANDS:
        near = get_close_matches(words[0], COMMANDS, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        sys.stderr.write(f"bulletin: there is no command {words[0]!r}.{meant} `bulletin --help` lists the commands.\n")
        raise SystemExit(2)
    event_log.configure(words[0])
    command = COMMANDS[words[0]]()
    try:
        command.initialize(words[1:])
        command.start()
        raise SystemExit(command.status)
    except BadConfig as error:
        sys.stderr.write(f"bulletin {words[0]}: {error}\n")
        raise SystemExit(BAD_CONFIG) from None
    except BulletinError as error:
        sys.stderr.write(f"bulletin {words[0]}: {error}\n")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
