"""Which names of a notebook's namespace are the user's, and which belong to IPython and Python."""

import re
from collections.abc import Iterable, Mapping

#: Each side has its own; they never travel.
FIXED = frozenset(
    {
        "get_ipython",
        "exit",
        "quit",
        "__builtins__",
        "__builtin__",
        "__name__",
        "__doc__",
        "__package__",
        "__loader__",
        "__spec__",
        "__warningregistry__",
    }
)
#: What `with gpu:` and `@gpu` send instead of a cell's own text: a call of one name, whose value gets another.
CALL, OUTCOME = "__bulletin_call__", "__bulletin_outcome__"
#: What `gpu.map` calls it for, and what its users read for that.
ITEM, ITEM_WORD = "__bulletin_item__", "item"
#: What the value of a cell's last line is called in exchanges, and what IPython calls the last one.
RESULT, RESULT_NAME = "result", "_"
#: What the view of a widget said, for its counterpart on the pool.
HEARD = "__bulletin_heard__"
#: What the notebook has put into a library, whose name follows; in exchanges alone, and in no namespace.
REGISTERED = "__bulletin_registered__:"
#: Containers of the history that IPython holds on to: their content may travel out, the objects stay.
HISTORY = frozenset({"In", "Out", "_ih", "_oh", "_dh"})
_RECENT = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|__session__")


def is_history(name: str) -> bool:
    """Tell whether IPython binds the name by itself after each cell: `Out`, `_`, `_3`, `_i3` and the like."""
    return name in HISTORY or (name[:1] == "_" and _RECENT.fullmatch(name) is not None)


def is_users_underscore(name: str) -> bool:
    """Tell whether it names a recent result, which is the user's once a cell has bound it: `for _ in range(3)`."""
    return name in {"_", "__", "___"}


def is_registered(name: str) -> bool:
    """Tell whether it stands for what the notebook has put into a library."""
    return name.startswith(REGISTERED)


def is_users(name: str) -> bool:
    """Tell whether it is a variable of the user, whose binding is part of the notebook's state."""
    return name not in FIXED and not is_history(name)


def users(namespace: Mapping[str, object], keep: Iterable[str] = ()) -> list[str]:
    """List the user's names of a namespace, in their order, without those in `keep`."""
    others = {*FIXED, *HISTORY, *keep}
    return [name for name in namespace if name not in others and (name[:1] != "_" or not is_history(name))]
