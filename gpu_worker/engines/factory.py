"""Which engine a name stands for.

A new engine is a new file here and a line in `_ENGINES`. With the second one comes a setting that chooses, which
`PoolCommand` hands over.
"""

from collections.abc import Callable, Sequence

from bulletin.errors import BadConfig
from gpu_worker.config import PoolSettings
from gpu_worker.engines.engine import Engine
from gpu_worker.engines.local import LocalEngine

_ENGINES: dict[str, Callable[[PoolSettings, Sequence[str]], Engine]] = {"local": LocalEngine}
DEFAULT_ENGINE = "local"


def make_engine(settings: PoolSettings, arguments: Sequence[str], name: str = DEFAULT_ENGINE) -> Engine:
    """Make the engine of this name, for agents that get these arguments. Raises BadConfig if there is none."""
    if name not in _ENGINES:
        raise BadConfig(f"There is no engine {name!r}. Name one of: {', '.join(sorted(_ENGINES))}.")
    return _ENGINES[name](settings, arguments)
