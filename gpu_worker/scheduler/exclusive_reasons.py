"""Why a cell has no node for itself (`--exclusive`): its class gives none, or no node is of that size."""

import msgspec

from gpu_worker.scheduler.policy.projects import slot_word


class NotExclusive(msgspec.Struct, frozen=True, tag=True):
    """The class of service gives no cell a node for itself, and nobody has granted it to the user."""

    qos: str
    allowed: tuple[str, ...]  #: classes that the project may use, and that do
    gpus: int

    def __str__(self) -> str:
        classes = " or ".join(self.allowed)
        what = f"Choose {classes} with --qos, or leave out --exclusive" if classes else "Leave out --exclusive"
        return f"QoS {self.qos!r} gives no cell a node for itself. {what}."


class MixedNode(msgspec.Struct, frozen=True):
    """A node that nobody has alone: it has something besides that no request is for together with the rest."""

    number: int  #: of GPUs such as were asked for
    beside: str  #: what else, in words


class NoSuchNode(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """No node of the pool has just the GPUs that a cell asks for that would have a node for itself."""

    gpus: int
    sizes: tuple[int, ...]  #: how many GPUs nodes have that could serve it
    on_cpu: bool
    gpu_type: str = ""
    mixed: MixedNode | None = None

    def __str__(self) -> str:
        if not self.gpus:
            return "--exclusive is for all GPUs of a node, and the cell asks for none. Say how many with --gpus."
        return self._sizes() + self._mixed()

    def _mixed(self) -> str:
        if self.mixed is None:
            return ""
        number, word = self.mixed.number, slot_word(on_cpu=self.on_cpu)
        had = f"{number} {word}{'' if number == 1 else 's'}"
        return f" A node with {had} has {self.mixed.beside} besides, and such a one nobody has alone."

    def _sizes(self) -> str:
        word, of_type = slot_word(on_cpu=self.on_cpu), f" of type {self.gpu_type!r}" if self.gpu_type else ""
        if not self.sizes:
            return f"no node of this pool has {word}s{of_type} and nothing else. Leave out --exclusive."
        *others, last = map(str, self.sizes)
        asked = f"{self.gpus} {word}{'' if self.gpus == 1 else 's'}{of_type}"
        numbers = f"{', '.join(others)} or {last}" if others else last
        return (
            f"--exclusive takes all of a node, and no node here has just {asked}: one has "
            f"{numbers}. Say so with --gpus, as in `--exclusive --gpus {self.sizes[0]}`."
        )
