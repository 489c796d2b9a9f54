"""What is said of an environment before a cell runs in it."""

import socket
import sys

import pytest
from msgspec import structs

from bulletin import __version__
from bulletin.state.build import PYTHON, build
from bulletin.wire.messages import Versions
from gpu_worker.executor.environment_check import describe_differences, find_refusal

SAME = Versions(python=PYTHON, bulletin=__version__, build=build())


def test_the_same_environment_is_not_refused() -> None:
    assert build()
    assert find_refusal(SAME) == ""


def test_another_minor_version_of_python_is_refused_with_both_remedies() -> None:
    said = find_refusal(structs.replace(SAME, python="3.99"))
    assert said.startswith(
        f"The notebook runs Python 3.99, and the pool's environment on {socket.gethostname()} Python"
    )
    assert "an environment of the pool with Python 3.99 (--environment), or a kernel with Python" in said


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (
            structs.replace(SAME, bulletin="9.9"),
            f"has Bulletin 9.9, and the pool's environment on {{}} Bulletin {__version__}",
        ),
        (
            structs.replace(SAME, build="0" * 32),
            f"has Bulletin {__version__}, and the pool's environment on {{}} another build",
        ),
    ],
)
def test_another_bulletin_is_refused_also_one_that_says_the_same_version(theirs: Versions, words: str) -> None:
    said = find_refusal(theirs)
    assert words.format(socket.gethostname()) in said
    assert "Install the same one in both" in said


def test_a_finder_of_a_cell_that_fails_makes_no_library_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        def find_spec(self, name: str, *_: object) -> None:
            raise NameError(name)

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    (said,) = describe_differences({"json": "", "no_such_library": ""}, [], {})
    assert "has no no_such_library" in said


def test_only_what_differs_is_told() -> None:
    found = list(
        describe_differences(
            {"msgspec": "0.0.1", "no_such_library": "2.0", "nor_this": "", "zmq": ""},
            ["xxhash", "not_here_either"],
            {"nor_this": "it is too large"},
        )
    )
    assert len(found) == 4
    assert found[0].startswith("msgspec is ")
    assert found[0].endswith("and 0.0.1 in the notebook.")
    assert "has no no_such_library; the notebook has 2.0. Install it there" in found[1]
    assert (
        "has no nor_this; the notebook has it, and it does not follow the cell: it is too large. Install it" in found[2]
    )
    assert found[3].startswith("xxhash is in the pool's environment on ")
