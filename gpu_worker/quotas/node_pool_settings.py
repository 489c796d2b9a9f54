"""What may be written of node pools: which GPUs or nodes are in one, and how much of it a project is guaranteed."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from gpu_worker.quotas.tree import Scalar
from gpu_worker.quotas.value_kinds import GpuAmount, QuotaSetting, UnfitValue, name_problem
from gpu_worker.scheduler.leases.resources import words_of
from gpu_worker.scheduler.policy.projects import show_gpus

POOL_NAME_LENGTH = 64
_NODE_NAME_LENGTH = 255


class GpuNameWords(msgspec.Struct, frozen=True):
    """Words of a GPU's name, as `--gpu-type` takes them."""

    form: str = "words of a GPU's name"

    def read(self, value: Scalar) -> tuple[str, ...]:
        """Return the words in lower case. Raises UnfitValue."""
        words = words_of(value) if isinstance(value, str) else ()
        if not words or len(cast("str", value)) > POOL_NAME_LENGTH:
            raise UnfitValue('Write words of the GPU\'s name, as nvidia-smi shows it, in quotes, as in "H100".')
        return words

    def schema(self) -> dict[str, Any]:
        """Allow a text that has a word."""
        return {"type": "string", "pattern": "[A-Za-z0-9]", "maxLength": POOL_NAME_LENGTH}

    def show(self, value: Any) -> str:
        """Write the words in quotes; none is "any"."""
        return repr(" ".join(cast("Sequence[str]", value))) if value else "none"


class NodeNames(msgspec.Struct, frozen=True):
    """Names of nodes, at least one."""

    form: str = "list of names of nodes"

    def read(self, value: Scalar) -> tuple[str, ...]:
        """Return the names in their order. Raises UnfitValue."""
        is_list = isinstance(value, tuple) and value and len(set(value)) == len(value)
        if not is_list or any(name_problem(name, _NODE_NAME_LENGTH) for name in cast("tuple[str, ...]", value)):
            raise UnfitValue('Write a list of nodes, each once, as `bulletin status` names them: ["gpu-03"].')
        return cast("tuple[str, ...]", value)

    def schema(self) -> dict[str, Any]:
        """Allow a list of texts, each once."""
        name = {"type": "string", "minLength": 1, "maxLength": _NODE_NAME_LENGTH}
        return {"type": "array", "items": name, "minItems": 1, "uniqueItems": True}

    def show(self, value: Any) -> str:
        """Write each in quotes."""
        return ", ".join(map(repr, cast("Sequence[str]", value))) or "none"


#: The settings of a node pool.
NODE_POOL_SETTINGS = (
    QuotaSetting("gpu", "words", GpuNameWords(), "GPUs whose name has all these words.", '"H100"'),
    QuotaSetting("nodes", "nodes", NodeNames(), "All GPUs of these nodes.", '["gpu-03"]'),
)


class PoolGuaranteesTable(msgspec.Struct, frozen=True):
    """GPUs by the name of a node pool. The reader reads the table, since each of its amounts has a line of its own."""

    form: str = "a table: GPUs by node pool"

    def read(self, _: Scalar) -> tuple[tuple[str, int], ...]:
        """Raise UnfitValue: a table is no value."""
        raise UnfitValue("Write names of node pools below it, each with a number of GPUs.")

    def schema(self) -> dict[str, Any]:
        """Allow amounts by name."""
        return {
            "type": ["object", "null"],
            "propertyNames": {"minLength": 1, "maxLength": POOL_NAME_LENGTH},
            "additionalProperties": GpuAmount().schema(),
        }

    def show(self, value: Any) -> str:
        """Write each one as in "'h100' 8 GPUs"."""
        amounts = cast("Sequence[tuple[str, int]]", value)
        return "; ".join(f"{name!r} {show_gpus(milli)}" for name, milli in amounts) or "none"
