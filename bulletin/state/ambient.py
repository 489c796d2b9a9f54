"""State of the process that a cell relies on: random numbers, folder, environment, settings, sources of cells."""

import contextlib
import importlib
import linecache
import os
import random
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from bulletin.cpython.import_system import read_environ

from . import numpy_random, settings, working_folder
from .open_figures import close_figures_but, open_figures
from .setting_kind import shell_of_cells

#: What was found, by kind: "random", "numpy", "torch", "folder", "argv", "environ", "settings"; and on its way out
#: "figures", the numbers of those that pyplot has open.
Ambient: TypeAlias = dict[str, Any]
#: Files that exist only in memory: file -> lines, and the number of the cell if it is one.
Sources: TypeAlias = Mapping[str, tuple[list[str], int | None]]

#: Secrets of the hub and of ours, and what each machine sets for itself.
_NEVER = ("JUPYTERHUB_", "JPY_", "BULLETIN_", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
#: The environment when this process started, as far as we know.
_at_start: dict[bytes, bytes] = read_environ()
#: In an executor, the states of generators after the cell before: to read or set them takes longer than many cells.
_left: dict[str, Any] = {}
#: What `set_environ` has covered here, to be uncovered when the notebook takes its change back.
_covered: dict[str, str | None] = {}


def out() -> Ambient:
    """Collect what goes out with a cell. Of the environment: what the notebook has changed since it started."""
    found = _common({})
    found["settings"] = settings.read()
    changed = difference(_at_start, read_environ())
    if changed:
        found["environ"] = changed
    found["figures"] = open_figures()
    return found


def news(found: Ambient, known: Ambient) -> dict[str, Any]:
    """Say of what goes out which kinds are as the executor has `known` them, and what the others are."""
    same = [kind for kind, value in found.items() if kind in known and known[kind] == value]
    return {"ambient": {kind: value for kind, value in found.items() if kind not in same}, "same": same}


def put_together(tail: Mapping[str, Any], known: Ambient) -> Ambient:
    """Put together what `news` was said of. Raises KeyError where that is of a kind that is not `known`."""
    return {**{kind: known[kind] for kind in tail["same"]}, **tail["ambient"]}


def snapshot(arrived: Ambient | None = None) -> Ambient:
    """Read the state that `changed_since` compares with.

    With `arrived`, before a cell: what has just been settled from it is not asked for, and of a generator that the
    notebook does not have, it is what the cell before has left.
    """
    found = _common({} if arrived is None else {**_left, **arrived})
    if arrived is not None:
        _left.clear()  # should the cell not come to its end, nobody knows
    found["environ"] = read_environ()
    found["settings"] = settings.current()
    return found


def changed_since(before: Ambient) -> Ambient:
    """Collect what a cell has changed since `before`, on the executor's side.

    Its changes of the environment are noted, so that `settle` takes those back that the notebook does not take over.
    """
    settings.end_cell()
    now = snapshot()
    _left.update((kind, now[kind]) for kind in ("numpy", "torch") if kind in now)
    differs = {kind: value for kind, value in now.items() if value != before.get(kind)}
    changed = {kind: value for kind, value in differs.items() if kind not in {"environ", "settings"}}
    if "settings" in differs:
        changed["settings"] = settings.difference(before["settings"], now["settings"])
    environment = difference(before["environ"], now["environ"])
    if environment:
        changed["environ"] = environment
        for name in environment:
            was = before["environ"].get(os.fsencode(name))
            _covered.setdefault(name, None if was is None else os.fsdecode(was))
    return changed


def settle(found: Ambient, *, is_overlay: bool) -> None:
    """Give this process the ambient state that was found in the other one.

    With `is_overlay`, variables of an earlier call that are missing now are taken back.
    """
    if "random" in found and found["random"] != random.getstate():
        random.setstate(found["random"])
    if "numpy" in found and not (is_overlay and found["numpy"] == _left.get("numpy")):
        numpy_random.write_state(found["numpy"])
    if "torch" in found and not (is_overlay and found["torch"] == _left.get("torch")):
        torch = importlib.import_module("torch")
        torch.set_rng_state(torch.frombuffer(bytearray(found["torch"]), dtype=torch.uint8))
    surround(found, is_overlay=is_overlay)
    settings.write(found.get("settings", {}), is_whole=is_overlay)


def prepare(found: Ambient, *, is_overlay: bool) -> None:
    """Set what libraries look at as they are imported, and as values are made: before values load.

    It is set once more when all values are there: what was imported meanwhile may have set itself up.
    """
    surround(found, is_overlay=is_overlay)
    if "numpy" in found:  # what is a NaN as values load is to be one in the next cell; see `atoms.usual_nan`
        with contextlib.suppress(ImportError):  # `settle` says it
            importlib.import_module("numpy")
    settings.prepare(found.get("settings", {}), is_whole=is_overlay)
    if is_overlay:
        close_figures_but(found.get("figures", ()))


def surround(found: Ambient, *, is_overlay: bool) -> None:
    """Set the folder, the arguments and the environment."""
    folder = found.get("folder")
    if folder is not None:
        with contextlib.suppress(OSError):  # a folder that is not on this machine
            working_folder.enter(folder)
    if "argv" in found and found["argv"] != sys.argv:
        sys.argv[:] = found["argv"]
    changes: Mapping[str, str | None] = found.get("environ", {})
    if is_overlay:
        for name in _covered.keys() - changes.keys():
            _set(name, _covered.pop(name))
        for name in changes:
            _covered.setdefault(name, os.environ.get(name))
    for name, value in changes.items():
        if not name.startswith(_NEVER):
            _set(name, value)


def reverse_of(found: Ambient) -> Ambient:
    """Read what `prepare` is about to change, as what changes it back."""
    now: Ambient = {"folder": working_folder.find(), "argv": list(sys.argv)}
    changes = {name: os.environ.get(name) for name in found.get("environ", ())}
    before = settings.now_of(found.get("settings", ()))
    return {**{kind: now[kind] for kind in now if kind in found}, "environ": changes, "settings": before}


def difference(before: Mapping[bytes, bytes], now: Mapping[bytes, bytes]) -> dict[str, str | None]:
    """List the variables that were set or changed, with None for those that are gone. Leave secrets out."""
    if before == now:
        return {}
    changed: dict[bytes, bytes | None] = {name: value for name, value in now.items() if before.get(name) != value}
    changed.update(dict.fromkeys(before.keys() - now.keys()))
    spelled = {os.fsdecode(name): None if value is None else os.fsdecode(value) for name, value in changed.items()}
    return {name: spelled[name] for name in sorted(spelled) if not name.startswith(_NEVER)}


def sources(files: Iterable[str]) -> Sources:
    """Return the lines and the cell's number (None without one) of each of these files that exists only in memory."""
    numbers = _cell_numbers()
    found = {}
    for file in files:
        entry = linecache.cache.get(file)
        if entry is not None and len(entry) > 1 and entry[1] is None:
            found[file] = list(entry[2]), numbers.get(file)
    return found


def learn_sources(found: Sources) -> None:
    """Put sources into `linecache`, where tracebacks and `inspect.getsource` find them as `Cell In[3]`."""
    numbers = _cell_numbers()
    for file, (lines, number) in found.items():
        if file not in linecache.cache and not Path(file).exists():
            linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
            if number is not None:
                numbers[file] = number


def _common(arrived: Ambient) -> Ambient:
    """Read the folder and the random states; a random state that has arrived is taken from there, and not read."""
    found: Ambient = {
        "random": arrived.get("random") or random.getstate(),
        "folder": working_folder.find(),
        "argv": [argument for argument in sys.argv if isinstance(argument, str)],
    }
    numpy: Any = sys.modules.get("numpy.random")
    torch: Any = sys.modules.get("torch")
    if hasattr(numpy, "get_state"):
        found["numpy"] = arrived.get("numpy") or numpy_random.read_state(numpy)
    if hasattr(torch, "get_rng_state"):
        found["torch"] = arrived.get("torch") or torch.get_rng_state().numpy().tobytes()
    return found


def _cell_numbers() -> dict[str, int]:
    """Return IPython's own register of cells, their numbers by file. Without IPython it is empty."""
    return getattr(getattr(shell_of_cells(), "compile", None), "_filename_map", {})


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
