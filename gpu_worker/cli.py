"""The command line: every `bulletin COMMAND`. Those that print what a pool or its ledger knows are in `console`."""

import asyncio
import os
import sys

from bulletin import __version__
from bulletin.errors import BadConfig, BulletinError
from bulletin.wire import keys
from gpu_worker import event_log
from gpu_worker.config import serves_hub
from gpu_worker.console.base_command import Command, when_stdin_ends
from gpu_worker.console.hand_commands import (
    BoostCommand,
    ExtendCommand,
    HoldCommand,
    ReleaseCommand,
    RequeueCommand,
    TopCommand,
)
from gpu_worker.console.query_commands import (
    CancelCommand,
    DrainCommand,
    ExplainCommand,
    QueueCommand,
    QuotaCommand,
    StatusCommand,
)
from gpu_worker.console.usage_command import UsageCommand
from gpu_worker.engines import BAD_CONFIG, PoolRunner, make_engine
from gpu_worker.simulator.simulate_command import SimulateCommand


class PoolCommand(Command):
    """`bulletin pool`: a broker and an agent on this host, each started again when it dies."""

    name = "bulletin-pool"
    description = "Run a pool on this host: a broker and an agent, each started again when it dies."

    def start(self) -> None:
        """Run the pool."""
        settings = self.settings()
        settings.require_isolation(serves_hub=serves_hub(os.environ))
        arguments = [word for word in self._given if word != "--exit-with-stdin"]

        async def run() -> int:
            pool = PoolRunner(settings, arguments, make_engine(settings, arguments))
            if self.exit_with_stdin:
                when_stdin_ends(asyncio.get_running_loop(), pool.stop)
            return await pool.run()

        settings.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        settings.connection_file.unlink(missing_ok=True)
        self.status = asyncio.run(run())

    def parse_command_line(self, argv: list[str] | None = None) -> None:
        """Read the words, and keep them: broker and agent get the same ones."""
        self._given = list(sys.argv[1:] if argv is None else argv)
        super().parse_command_line(argv)


class BrokerCommand(Command):
    """`bulletin broker`: the broker alone."""

    name = "bulletin-broker"
    description = "Run a broker: identity, queue, leases, ledger. Agents of the same folder find it."

    def start(self) -> None:
        """Run the broker."""
        from gpu_worker.broker.app import Broker, open_files
        from gpu_worker.broker.identity import Hub
        from gpu_worker.broker.ledger import Ledger

        settings = self.settings()
        files = open_files(settings)

        async def run() -> int:
            await Broker(settings, Ledger.open(settings.database), files, Hub.from_environ()).run()
            return 0

        self.status = self.serve(run)


class AgentCommand(Command):
    """`bulletin agent`: the agent of this node."""

    name = "bulletin-agent"
    description = (
        "Run the agent of this node: it offers the node's GPUs (or CPU slots) to the broker of the same folder."
    )

    def start(self) -> None:
        """Run the agent."""
        from gpu_worker.agent.node_agent import Agent

        settings = self.settings()
        try:
            files = keys.read_private(settings.pool_file, keys.PoolFile)
        except FileNotFoundError:
            raise BadConfig(f"There is no pool in {settings.folder}. Start its broker first: bulletin broker") from None
        settings.require_isolation(serves_hub=files.serves_hub)

        async def run() -> int:
            await Agent(settings, files).run()
            return 0

        self.status = self.serve(run)


COMMANDS: dict[str, type[Command | SimulateCommand]] = {
    "pool": PoolCommand,
    "broker": BrokerCommand,
    "agent": AgentCommand,
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
    "drain": DrainCommand,
    "quota": QuotaCommand,
    "usage": UsageCommand,
    "simulate": SimulateCommand,
}


def main(argv: list[str] | None = None) -> None:
    """Run one command; its errors are sentences, and bad configuration is exit status 78."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] not in COMMANDS:
        known = "\n".join(f"  bulletin {name:8} {command.description}" for name, command in COMMANDS.items())
        wanted = words and words[0] in ("-h", "--help")
        (sys.stdout if wanted else sys.stderr).write(
            f"usage: bulletin COMMAND [options]\n\n{known}\n\nbulletin COMMAND --help-all shows all settings.\n"
        )
        raise SystemExit(0 if wanted else 2)
    if words[0] == "--version":
        sys.stdout.write(__version__ + "\n")
        raise SystemExit(0)
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
