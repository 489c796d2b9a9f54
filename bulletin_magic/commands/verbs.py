"""What was meant by a %gpu line that is not understood."""

from difflib import get_close_matches

COMMANDS = (
    "status",
    "receipts",
    "vars",
    "push NAMES",
    "pull",
    "reset",
    "on",
    "off",
    "stop",
    "attach",
    "request",
    "connect PATH",
)

_SHELL = (
    "Each %%gpu cell is one: `!nvidia-smi`, `%%bash` below %%gpu; `%gpu on --keep 20min` keeps the place from one "
    "cell to the next, and with `--exclusive --gpus N` the whole node, for classes of service that let you."
)
_LOOK = "`%gpu` alone shows the pool, its queue, your quota and what this notebook holds."
#: What else is typed, by those who know it from elsewhere, and what there is for it.
_MEANT = {
    **dict.fromkeys(("shell", "bash", "sh", "ssh", "terminal", "login"), _SHELL),
    **dict.fromkeys(("queue", "squeue", "ps", "info", "sinfo", "free", "quota", "list", "show", "usage"), _LOOK),
    **dict.fromkeys(
        ("cancel", "scancel", "kill", "interrupt"),
        "The stop button stops the cell that runs or waits, NAME.cancel() one in the background; "
        "`%gpu stop` gives the GPU back.",
    ),
    **dict.fromkeys(("release", "detach", "disconnect", "exit", "quit"), "`%gpu stop` gives the GPU back."),
    **dict.fromkeys(("attach-gpu", "keep", "salloc"), "`%gpu on --keep 20min` keeps a GPU from one cell to the next."),
    "debug": "`%debug`, in the next cell, opens the frames of a %%gpu cell that failed.",
    **dict.fromkeys(("history", "log", "sacct"), "`%gpu receipts` lists the last cells, and `%history` their code."),
}


def suggest(line: str) -> str:
    """Write a sentence about `%gpu LINE`: the nearest command, or %%gpu where that was meant."""
    verb = line.partition(" ")[0]
    if verb.startswith("-"):
        return f"%gpu takes no options. To run the cell with them, write `%%gpu {line}` in its first line."
    if verb == "connect":
        return "%gpu connect needs the path of a connection file, as in `%gpu connect ~/pool/connection.json`."
    if verb.lower() in _MEANT:
        return f"There is no `%gpu {verb}`. {_MEANT[verb.lower()]}"
    names = {command.partition(" ")[0]: command for command in COMMANDS}
    near = get_close_matches(verb, names, n=1)
    if near:
        return f"There is no `%gpu {verb}`. Did you mean `%gpu {names[near[0]]}`?"
    known = ", ".join(f"`%gpu {command}`" for command in COMMANDS)
    return f"There is no `%gpu {verb}`. There are {known}; to run a cell on the pool, start it with `%%gpu`."


def stands_above_code(cell: str) -> bool:
    """Tell whether a lone %gpu is the first line of a cell with code: most likely %%gpu was meant."""
    first, *rest = cell.strip().splitlines() or [""]
    is_code = any(line.strip() and not line.strip().startswith(("#", "%", "!")) for line in rest)
    return first.strip() == "%gpu" and is_code
