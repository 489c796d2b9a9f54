"""The commands that run a pool: all of it, its broker alone, the agent of a node.

Each imports what it runs when it starts: all three are processes of every pool.
"""

import asyncio
import os
import shutil
import signal
from typing import TYPE_CHECKING

from traitlets import Bool

from bulletin.errors import BadConfig
from bulletin.wire import keys
from gpu_worker.config import PoolSettings, serves_hub
from gpu_worker.console.base_command import Command, when_stdin_ends

if TYPE_CHECKING:
    from gpu_worker.agent.membership import Membership


class PoolCommand(Command):
    """`bulletin pool`: a broker and an agent on this host, each started again when it dies."""

    name = "bulletin-pool"
    description = (
        "Run a pool on this host: a broker and an agent, each started again when it dies; or with --engine, agents "
        "elsewhere, as jobs of Slurm say."
    )

    def start(self) -> None:
        """Run the pool."""
        from gpu_worker.engines import PoolRunner, make_engine

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
        from gpu_worker.broker.broker_doors import open_files
        from gpu_worker.broker.hub_answers import Hub
        from gpu_worker.broker.ledger import Ledger

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
        from gpu_worker.agent.folder_lock import alone_in
        from gpu_worker.agent.node_agent import make_process_mark
        from gpu_worker.agent.root_helper import RootHelper
        from gpu_worker.executor.environment import die_with_parent

        settings = self.settings()
        if settings.agent_user and os.getuid() == 0:
            self.status = RootHelper(settings, make_process_mark(settings), self.given).run()
            return
        if self.root_helper is not None:
            die_with_parent(os.getppid())
        self._find_membership(settings)
        with alone_in(settings.folder):
            # That may have taken hours: its file may be another one by now.
            self._run(settings, self._find_membership(settings))

    def _find_membership(self, settings: PoolSettings) -> "Membership":
        """Return by what this agent belongs to a pool. Raises BadConfig where its settings are not for that."""
        from gpu_worker.agent.membership import read_membership

        membership = read_membership(settings)
        self.require_obeyed("agent", is_alone=bool(membership.node))
        settings.require_isolation(
            serves_hub=membership.serves_hub,
            has_root_helper=self.root_helper is not None,
            what="this node runs cells for others" if membership.node else "this pool serves a hub",
        )
        return membership

    def _run(self, settings: PoolSettings, membership: "Membership") -> None:
        """Run it as the only agent of this host in its folder."""
        from gpu_worker.agent import job_folders
        from gpu_worker.agent.node_agent import Agent, make_process_mark
        from gpu_worker.agent.node_protections import find_protections
        from gpu_worker.agent.slurm_job_end import find_job, with_job_end
        from gpu_worker.agent.zygote_start import RootLink

        protections = find_protections(
            settings,
            make_process_mark(settings),
            serves_hub=membership.serves_hub,
            has_root_helper=self.root_helper is not None,
        )
        starter = RootLink(self.root_helper) if self.root_helper is not None else None
        # The job of an engine that made this folder is looked after by that.
        job = "" if settings.ends_at_ms or self.remove_folder else find_job(os.environ)
        settings = with_job_end(settings, os.environ)

        async def run() -> int:
            agent = Agent(settings, membership, protections, starter, job)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, agent.leave)
            await agent.run()
            return 128 + signal.SIGTERM  # it was told to end: what keeps it alive starts it again

        if not (self.remove_folder and membership.node):
            self.status = self.serve(run)
            return
        with job_folders.hold(settings.folder) as can_be_seen:
            if can_be_seen:
                job_folders.remove_left(settings.folder)
            try:
                self.status = self.serve(run)
            finally:
                shutil.rmtree(settings.folder, ignore_errors=True)
