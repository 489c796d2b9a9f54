"""What is not yet as if local, as tests know it: each row says what differs, why, and in which notebooks it must."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.notebooks.playing import Where


@dataclass(frozen=True)
class Known:
    """A cause. A notebook in which it is listed and no longer shows fails: whoever mends it takes the row away."""

    why: str
    is_it: Callable[[str], bool]
    gpu: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()

    def is_in(self, name: str, where: Where) -> bool:
        return name in {"gpu": self.gpu, "mixed": self.mixed}.get(where, ())


def _has(text: str) -> Callable[[str], bool]:
    return lambda difference: text in difference


KNOWN: tuple[Known, ...] = (
    Known(
        "a tensor with a graph comes back as a leaf",
        _has("leaf=False"),
        gpu=("torch_autograd", "torch_tensors"),
    ),
    Known(
        "what a library's class leaves out of its own state is left out",
        lambda difference: "_n_sequences" in difference or "_WrappedHook" in difference,
        gpu=("hf_trainer",),
    ),
)


def unexplained(differences: Iterable[str], name: str, where: Where) -> tuple[list[str], list[str]]:
    """The differences that nobody knows of, and the causes that should show here and do not."""
    rows = [row for row in KNOWN if row.is_in(name, where)]
    seen: set[str] = set()
    new = []
    for difference in differences:
        causes = [row.why for row in rows if row.is_it(difference)]
        seen.update(causes[:1])
        if not causes:
            new.append(difference)
    return new, [row.why for row in rows if row.why not in seen]


def reasons(name: str, where: Where) -> str:
    """Why a notebook is known to differ."""
    return "; ".join(row.why for row in KNOWN if row.is_in(name, where))
