"""The options of %%gpu: a line of text to a resource spec, or one sentence that says what is wrong with it."""

import shlex
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from keyword import iskeyword
from typing import Any, NamedTuple

from bulletin.errors import BadOption
from bulletin.ids import EnvironmentId, ProjectId
from bulletin.units import DAY_MS, parse_duration_ms, parse_size
from bulletin.wire.messages import TEXT_LIMIT
from bulletin_magic.connection.resource_spec import ResourceSpec

_DIGITS = 4
_MOST_BYTES = 2**50
_YEARS_MS = 3_650 * DAY_MS


def _gpus(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a whole number of GPUs, as in '2'.")
    if len(text) > _DIGITS:
        raise ValueError(f"{text!r} is more GPUs than anybody has.")
    return int(text)


def _cpus(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a whole number of CPUs, as in '4'.")
    if len(text) > _DIGITS:
        raise ValueError(f"{text!r} is more CPUs than anybody has.")
    return int(text)


def _size(text: str) -> int:
    if text.strip().isdecimal():
        raise ValueError(
            f"{text!r} has no unit. Write one, as in '20 GB', the same as 20G, or '20 GiB', which is 7% more."
        )
    size_bytes = parse_size(text)
    if size_bytes > _MOST_BYTES:
        raise ValueError(f"{text!r} is more memory than anybody has.")
    return size_bytes


def _text(text: str) -> str:
    if len(text) > TEXT_LIMIT:
        raise ValueError(f"{len(text)} characters are too many; {TEXT_LIMIT} fit.")
    return text


def _time(text: str) -> int:
    walltime_ms = parse_duration_ms(text)
    if walltime_ms == 0:
        raise ValueError("a cell needs some time, as in '30 min'.")
    if walltime_ms > _YEARS_MS:
        raise ValueError("no cell runs for ten years.")
    return walltime_ms


def _keep(text: str) -> int:
    keep_ms = parse_duration_ms(text)
    if keep_ms == 0:
        raise ValueError("a GPU is kept for some time after each cell, as in '20 min'.")
    return min(keep_ms, _YEARS_MS)


def _wait(text: str) -> int:
    wait_ms = parse_duration_ms(text)
    if wait_ms == 0:
        raise ValueError("a wait is some time, as in '2 min'.")
    return min(wait_ms, _YEARS_MS)


def _cpu(text: str) -> str:
    if text != "cpu":
        raise ValueError(f"{text!r} is not a place to run the cell instead. There is one: cpu, which is the notebook.")
    return text


#: Each option that says what to ask the pool for: the field of `ResourceSpec` that it sets, and what reads it.
RESOURCE_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--gpus": ("gpus", _gpus),
    "--gpu-type": ("gpu_type", _text),
    "--gpu-memory": ("gpu_memory_bytes", _size),
    "--cpus": ("cpus", _cpus),
    "--memory": ("memory_bytes", _size),
    "--time": ("walltime_ms", _time),
    "--qos": ("qos", _text),
    "--project": ("project", lambda text: ProjectId(_text(text))),
    "--label": ("label", _text),
    "--keep": ("keep_ms", _keep),
    "--environment": ("environment", lambda text: EnvironmentId(_text(text))),
}


def _name(text: str) -> str:
    if not text.isidentifier() or iskeyword(text):
        raise ValueError(f"{text!r} cannot be the name of a variable.")
    return text


#: Options that say how the cell runs, which no lease depends on: as above, with fields of `CellOptions`.
RUN_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--max-wait": ("max_wait_ms", _wait),
    "--fallback": ("fallback", _cpu),
    "--each": ("each", _name),
}
#: Each option that takes no value, and what it does.
FLAGS = {
    "--exclusive": "asks for a node that nobody else is on",
    "--plan": "shows what would be sent, and runs nothing",
}
#: One of them that is asked of the pool.
EXCLUSIVE = "--exclusive"
#: Runs the cell while the notebook goes on. A name may follow.
BACKGROUND = "--background"


class CellOptions(NamedTuple):
    """What an option line asks for."""

    resources: ResourceSpec
    #: Only say what would be sent.
    is_plan: bool = False
    #: For how long the cell may stand in the queue; None is for ever.
    max_wait_ms: int | None = None
    #: "cpu": run it in the notebook where the pool does not.
    fallback: str = ""
    #: The variable for each of whose elements the cell is run.
    each: str | None = None
    #: Run while the notebook goes on.
    is_background: bool = False
    #: The variable that the background cell is then known by.
    name: str | None = None


def parse(line: str) -> CellOptions:
    """Read an option line such as `--gpus 2 --time "30 min"`.

    Raises
    ------
    BadOption
        Naming the option and what is accepted.
    """
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        raise BadOption("A quotation mark in the options of %%gpu is not closed.") from None
    resource_fields: dict[str, Any] = {}
    run_fields: dict[str, Any] = {}
    flags: set[str] = set()
    before: tuple[str, str] | None = None
    while words:
        name, has_value, value = words.pop(0).partition("=")
        if name in FLAGS:
            if has_value:
                raise BadOption(f"The option {name} of %%gpu takes no value.")
            flags.add(name)
            continue
        if name == BACKGROUND:
            flags.add(name)
            if not has_value and words and not words[0].startswith("-"):
                value = words.pop(0)
            run_fields["name"] = _read(name, _name, value) if value or has_value else None
            continue
        if name not in RESOURCE_OPTIONS and name not in RUN_OPTIONS:
            raise BadOption(_not_an_option(name, before))
        if not has_value:
            if not words or words[0].startswith("--"):
                raise BadOption(f"The option {name} of %%gpu needs a value.")
            value = words.pop(0)
        field, read = RESOURCE_OPTIONS.get(name) or RUN_OPTIONS[name]
        (resource_fields if name in RESOURCE_OPTIONS else run_fields)[field] = _read(name, read, value)
        if value == "":
            raise BadOption(f"The option {name} of %%gpu needs a value.")
        before = name, value
    resource_fields["is_exclusive"] = EXCLUSIVE in flags
    is_background = BACKGROUND in flags
    if is_background and "each" in run_fields:
        raise BadOption("--background and --each cannot stand together: --each waits for all elements.")
    if "fallback" in run_fields and (is_background or "each" in run_fields):
        other = BACKGROUND if is_background else "--each"
        raise BadOption(
            f"--fallback and {other} cannot stand together: such cells run on the pool only. Leave out one of the two."
        )
    is_aside = is_background or "each" in run_fields
    if is_aside and "keep_ms" in resource_fields:
        other = BACKGROUND if is_background else "--each"
        raise BadOption(f"--keep and {other} cannot stand together: what is kept is for the notebook's next cell.")
    if is_aside:
        resource_fields["usual_qos"] = "batch"
    elif "keep_ms" in resource_fields:
        resource_fields["usual_qos"] = "reserved"
    return CellOptions(
        ResourceSpec(**resource_fields), is_plan="--plan" in flags, is_background=is_background, **run_fields
    )


def _read(name: str, read: Callable[[str], Any], value: str) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise BadOption(f"The option {name} of %%gpu: {_sentence(str(error))}") from None


def resources_from_kwargs(options: Mapping[str, object]) -> ResourceSpec:
    """Read options as Python writes them: `gpu(gpus=2, time="1 h")`.

    Raises
    ------
    BadOption
        As `parse` does.
    """
    line: list[str] = []
    for name, value in options.items():
        word = f"--{name.replace('_', '-')}"
        if word == EXCLUSIVE and isinstance(value, bool):
            line += [word] if value else []
            continue
        if word in {*FLAGS, *RUN_OPTIONS, BACKGROUND} - {EXCLUSIVE}:
            raise BadOption(f"gpu() has no option {word[2:]!r}; it is one of %%gpu, for whole cells.")
        line.append(f"{word}={shlex.quote(str(value))}")
    return parse(" ".join(line)).resources


def _not_an_option(name: str, before: tuple[str, str] | None) -> str:
    """Say what is wrong with a word. `before` is the option that stands before it, and its value."""
    if not name.startswith("-"):
        whole = f"{before[1]} {name}" if before else ""
        if before and _takes(before[0], whole):
            meant = f'If it belongs to {before[0]}, write {before[0]} "{whole}"; code goes on the lines below.'
            return f"{name!r} stands alone beside %%gpu. {meant}"
        return f"{name!r} cannot stand beside %%gpu: options start with --, and code goes on the lines below."
    known = (*RESOURCE_OPTIONS, *RUN_OPTIONS, *FLAGS, BACKGROUND)
    near = get_close_matches(name, known, n=1)
    meant = f" Did you mean {near[0]}?" if near else f" It takes {', '.join(known)}."
    return f"%%gpu has no option {name!r}.{meant}"


def _takes(option: str, value: str) -> bool:
    _, read = RESOURCE_OPTIONS.get(option) or RUN_OPTIONS[option]
    try:
        read(value)
    except ValueError:
        return False
    return True


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
