"""How the executor's environment differs from the notebook's: found before a cell runs that could meet it."""

import socket
from collections.abc import Iterable, Iterator, Mapping

from bulletin import __version__
from bulletin.libraries import find_spec, version_of
from bulletin.state.build import PYTHON, build
from bulletin.wire.messages import Versions


def find_refusal(theirs: Versions) -> str:
    """Say why no value can travel between this environment and the notebook's, and what to do; empty if it can."""
    here = f"the pool's environment on {socket.gethostname()}"
    if theirs.python != PYTHON:
        return (
            f"The notebook runs Python {theirs.python}, and {here} Python {PYTHON}: what one pickles the other cannot "
            f"read. Use an environment of the pool with Python {theirs.python} (--environment), or a kernel with "
            f"Python {PYTHON}."
        )
    is_other_build = bool(theirs.build and build() and theirs.build != build())
    if theirs.bulletin != __version__ or is_other_build:
        which = "another build of it" if theirs.bulletin == __version__ else f"Bulletin {__version__}"
        return (
            f"The notebook has Bulletin {theirs.bulletin}, and {here} {which}. Install the same one in both; a kernel "
            "that was started before an upgrade is to be restarted."
        )
    return ""


def describe_differences(
    libraries: Mapping[str, str], absent: Iterable[str], why_not: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence for each of the notebook's libraries that is not here, or in another version.

    And for each of the modules that are `absent` there and are here. `why_not` says of libraries why they did not come,
    as the end of a sentence.
    """
    where = f"environment on {socket.gethostname()}"
    for name, version in libraries.items():
        if find_spec(name) is None:
            has = f"the notebook has {version}" if version else "the notebook has it"
            why = f", and it does not follow the cell: {why_not[name]}" if why_not.get(name) else ""
            remedy = "Install it there, or use an environment of the pool that has it (--environment)"
            yield f"The pool's {where} has no {name}; {has}{why}. {remedy}."
        elif version and (here := version_of(name)) and here != version:
            yield f"{name} is {here} in the pool's {where}, and {version} in the notebook."
    for name in absent:
        if find_spec(name) is not None:
            yield (
                f"{name} is in the pool's {where} and not in the notebook's: what cells make with it stays there, "
                "for %%gpu cells to use. Install it in the notebook, too, to have it there."
            )
