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


def suggest(line: str) -> str:
    """Write a sentence about `%gpu LINE`: the nearest command, or %%gpu where that was meant."""
    verb = line.partition(" ")[0]
    if verb.startswith("-"):
        return f"%gpu takes no options. To run the cell with them, write `%%gpu {line}` in its first line."
    if verb == "connect":
        return "%gpu connect needs the path of a connection file, as in `%gpu connect ~/pool/connection.json`."
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
