"""What is not yet as if local, as tests know it: each row says what differs, why, and in which notebooks it must."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.notebooks.playing import Where

_SIDES = re.compile(r"\n  here:  (.*)\n  there: (.*)")


@dataclass(frozen=True)
class Known:
    """A cause. A notebook in which it is listed and no longer shows fails: whoever mends it takes the row away."""

    why: str
    is_it: Callable[[str], bool]
    gpu: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()

    def is_in(self, name: str, where: Where) -> bool:
        return name in {"gpu": self.gpu, "mixed": self.mixed}.get(where, ())


def _is_order_of_class(difference: str) -> bool:
    sides = _SIDES.search(difference)
    return sides is not None and " bases=" in sides[1] and sorted(sides[1].split()) == sorted(sides[2].split())


def _is_annotations(difference: str) -> bool:
    sides = _SIDES.search(difference)
    bare = [re.sub(r"annotations=<.*?> dict=", "", side) for side in sides.groups()] if sides else ["", "other"]
    return bare[0] == bare[1] or difference.startswith("fast.dict\n")


def _starts(*heads: str) -> Callable[[str], bool]:
    return lambda difference: difference.startswith(heads)


def _has(text: str) -> Callable[[str], bool]:
    return lambda difference: text in difference


KNOWN: tuple[Known, ...] = (
    Known(
        "attributes of a class come back in another order",
        _is_order_of_class,
        gpu=(
            "game_of_life",
            "python_objects",
            "recursion_memo",
            "text_classification",
            "text_processing",
            "torch_char_rnn",
            "torch_digits_cnn",
            "torch_mlp",
            "torch_tensors",
            "torch_transformer",
        ),
        mixed=("python_objects", "text_processing"),
    ),
    Known(
        "a wrapper and what it wraps no longer have one dict of annotations",
        _is_annotations,
        gpu=(
            "python_functions",
            "python_objects",
            "recursion_memo",
            "sklearn_classification",
            "torch_char_rnn",
            "torch_transformer",
        ),
        mixed=("python_objects", "recursion_memo"),
    ),
    Known(
        "`_` goes on after the notebook has used it as a name of its own",
        _starts("_\n", "Out\n"),
        gpu=("game_of_life", "numpy_basics", "torch_char_rnn"),
        mixed=("game_of_life", "numpy_basics"),
    ),
    Known(
        "`_exit_code` does not come back",
        _starts("_exit_code\n"),
        gpu=("messy_output", "text_processing"),
    ),
    Known(
        "an optimizer loses what others have hung on it, as schedulers do",
        _has("torch.optim."),
        gpu=("torch_char_rnn", "torch_digits_cnn", "torch_mlp", "torch_transfer", "torch_transformer"),
        mixed=("torch_mlp",),
    ),
    Known(
        "a scheduler warns, for its optimizer has lost it",
        _has("has been overridden after learning rate"),
        gpu=("torch_transfer",),
        mixed=("torch_transfer",),
    ),
    Known(
        "the default generator of torch comes back as another one",
        _has("torch._C.Generator"),
        gpu=("torch_mlp", "torch_tensors", "torch_transfer"),
    ),
    Known(
        "numpy's global generator, held by a distribution, comes back as another one",
        _has("RandomState"),
        gpu=("scipy_fitting", "sklearn_grid_search"),
    ),
    Known(
        "a tensor with a graph comes back as a leaf",
        _has("leaf=False"),
        gpu=("torch_autograd", "torch_tensors"),
    ),
    Known(
        "pandas takes the executor for a terminal, and leaves columns out",
        _has("df.describe"),
        gpu=("sklearn_classification",),
    ),
    Known(
        "the cell cannot return, for an array has got another place",
        lambda _: True,
        gpu=("sklearn_grid_search",),
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
