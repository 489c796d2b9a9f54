"""Where agents come from. Each engine starts agents and keeps them alive; the broker does not know which one did."""

from gpu_worker.engines.engine import BAD_CONFIG, IDLE, Engine
from gpu_worker.engines.factory import ENGINES, make_engine
from gpu_worker.engines.pool_runner import PoolRunner

__all__ = ["BAD_CONFIG", "ENGINES", "IDLE", "Engine", "PoolRunner", "make_engine"]
