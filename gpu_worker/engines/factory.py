"""Which engine a name stands for. A new engine is a new file here and a branch in `make_engine`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bulletin.errors import BadConfig
from gpu_worker.config import PoolSettings
from gpu_worker.engines.agent_files import AgentFiles
from gpu_worker.engines.agent_jobs import AgentJobs
from gpu_worker.engines.command_jobs import CommandJobs
from gpu_worker.engines.engine import Engine
from gpu_worker.engines.local import LocalEngine
from gpu_worker.engines.scaled_engine import ScaledEngine, count_gpus, require_reachable_broker
from gpu_worker.engines.slurm_jobs import SlurmJobs

ENGINES = ("local", "slurm", "command")


def make_engine(settings: PoolSettings, arguments: Sequence[str], agent_settings: Mapping[str, Any]) -> Engine:
    """Make the engine that the settings name.

    `arguments` are the words that `bulletin pool` was given, for parts of this host; `agent_settings` is what agents of
    other hosts are set to. Raises BadConfig if there is no such engine, or what it needs is missing.
    """
    engine = settings.engine
    scaling = engine.scaling
    jobs: AgentJobs
    match engine.name:
        case "local":
            return LocalEngine(settings, arguments)
        case "slurm":
            require_reachable_broker(settings)
            jobs = SlurmJobs(settings, counts_slots="slots" not in agent_settings)
            node_slots = scaling.node_slots or count_gpus(engine.slurm.gres) or 1
        case "command":
            jobs, node_slots = CommandJobs(settings), scaling.node_slots or 1
        case _:
            raise BadConfig(f"There is no engine {engine.name!r}. Name one of: {', '.join(sorted(ENGINES))}.")
    folder = Path(scaling.folder).expanduser().absolute() if scaling.folder else settings.folder / "agents"
    files = AgentFiles(settings.folder, folder, agent_settings)
    return ScaledEngine(settings, jobs, files, node_slots, engine.longest_cell_ms(settings.leave_grace_ms))
