"""Which global names a piece of compiled code looks up, and whether it may look up any."""

import dis
import re
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

#: Built-ins through which code reaches names that it does not spell.
ANY_NAME = frozenset({"globals", "eval", "exec", "get_ipython", "__main__"})
#: Methods whose text arguments name variables of the caller: `df.query("a > @x")`, `duckdb.sql("select * from df")`.
TEXT_METHODS = frozenset({"query", "eval", "evaluate", "sql"})
_WORD = re.compile(r"[^\W\d]\w*")
_GLOBAL_OPS = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME"})


class LookUps(NamedTuple):
    """Global names that code spells; `is_dynamic` where it may look up others."""

    names: tuple[str, ...]
    is_dynamic: bool


def words(text: str) -> list[str]:
    """List everything in a text that could be the name of a variable."""
    return _WORD.findall(text)


@lru_cache(maxsize=4096)
def of_code(code: CodeType) -> LookUps:
    """Find the names that a function's code and all code inside it look up, and whether these may be any."""
    names: dict[str, None] = {}
    is_dynamic = False
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBAL_OPS:
            names[instruction.argval] = None
        is_dynamic |= instruction.argval in ANY_NAME and instruction.opname in {
            "LOAD_GLOBAL",
            "LOAD_NAME",
            "IMPORT_NAME",
        }
    speaks_text = not TEXT_METHODS.isdisjoint(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = of_code(constant)
            names.update(dict.fromkeys(inner.names))
            is_dynamic |= inner.is_dynamic
        elif speaks_text and isinstance(constant, str):
            names.update(dict.fromkeys(words(constant)))
    return LookUps(tuple(names), is_dynamic)


@lru_cache(maxsize=4096)
def attributes(code: CodeType) -> frozenset[str]:
    """Collect every name that a piece of code and all code inside it spell, after a dot or not."""
    inner = (attributes(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(code.co_names).union(*inner)


def operations(code: CodeType) -> list[tuple[str, str]]:
    """List global names with LOAD, STORE or DELETE, in order: of module-level code and of all code inside it."""
    found: list[tuple[str, str]] = []
    is_module_level = not code.co_flags & _OPTIMIZED and code.co_name == "<module>"
    for instruction in dis.get_instructions(code):
        verb, _, kind = instruction.opname.partition("_")
        if verb in _VERBS and (kind == "GLOBAL" or (kind == "NAME" and (is_module_level or verb == "LOAD"))):
            found.append((instruction.argval, verb))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += operations(constant)
    return found


def unbound_by(code: CodeType) -> list[str]:
    """List the global names that module-level code deletes itself; what code inside it does comes later, or never."""
    return [each.argval for each in dis.get_instructions(code) if each.opname in {"DELETE_NAME", "DELETE_GLOBAL"}]


_OPTIMIZED = 1
_VERBS = frozenset({"LOAD", "STORE", "DELETE"})


def imports(code: CodeType) -> tuple[str, ...]:
    """List modules that a piece of code and all code inside it may import, as spelled: `a.b`, or `..c` in a package.

    `from a import b` may mean a module `a.b`, so both are given; and any text that looks like the name of a module,
    where the code calls `import_module`.
    """
    found: dict[str, None] = {}
    if _IMPORT_NAME in code.co_code[::2]:
        loaded: list[Any] = []
        for instruction in dis.get_instructions(code):
            if instruction.opcode == _IMPORT_NAME:
                level, chosen = loaded[-2:]
                name = "." * level + instruction.argval
                found[name] = None
                stem = name if name.endswith(".") else f"{name}."
                found.update(dict.fromkeys(f"{stem}{item}" for item in chosen or () if item != "*"))
            elif instruction.opname.startswith("LOAD_"):
                loaded = [*loaded[-1:], instruction.argval]
    speaks_modules = not _IMPORTERS.isdisjoint(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(imports(constant)))
        elif speaks_modules and isinstance(constant, str) and _DOTTED.fullmatch(constant):
            found[constant] = None
    return tuple(found)


_IMPORT_NAME = dis.opmap["IMPORT_NAME"]
_IMPORTERS = frozenset({"import_module", "__import__"})
_DOTTED = re.compile(r"\.*[^\W\d]\w*(\.[^\W\d]\w*)*")


def as_python(source: str) -> str:
    """Translate a cell as typed into Python: its magics become calls."""
    if not any(mark in source for mark in "%!?/,;"):
        return source
    from IPython.core.inputtransformer2 import TransformerManager

    manager: Any = TransformerManager
    text: str = manager().transform_cell(source)
    return text
