"""Runs tests in a process of their own, in which one module of the scheduler has a bug."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from io import StringIO
from pathlib import Path
from signal import ITIMER_PROF, SIGPROF, setitimer, signal
from time import process_time
from types import CodeType, ModuleType
from typing import NamedTuple

import pytest

from tests.mutants.catalogue import Mutant
from tests.mutants.edits import mutated

HERE = Path(__file__).parents[2]
SCHEDULER = Path("gpu_worker") / "scheduler"
#: A test that takes so many times as long as with the code as it is, and as much longer than a second, hangs.
PATIENCE, FIRST_LIMIT_S = 10, 600.0
#: What pytest ends with where one does.
_HANGS = 100


class Verdict(NamedTuple):
    """What the tests said."""

    end: str  #: caught, hangs, survived or broken
    by: str  #: the test that failed
    seconds: Mapping[str, float]  #: of processor time, for each test that was run


class _Loader(SourceFileLoader):
    """Loads a module with a bug in it."""

    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """Compile what the file would say."""
        return compile(mutated(Path(self.path).read_text(), self._mutant), self.path, "exec")


class _Finder(MetaPathFinder):
    """Finds the module that has the bug before everybody else does."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._name = ".".join((SCHEDULER / mutant.file).with_suffix("").parts)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find it as usual, but have it loaded with the bug."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname == self._name else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._mutant)
        return spec


class _Watch:
    """Orders the tests, stops one that hangs, and notes how long each took and which one failed."""

    def __init__(self, first: str, usual_s: Mapping[str, float]) -> None:
        self._first, self._usual_s = first, usual_s
        self.seconds: dict[str, float] = {}
        self.failed = self.hung = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Begin with the test that noticed the bug last time; go on with the quickest."""
        yield
        items.sort(key=lambda item: (item.nodeid != self._first, self._usual_s.get(item.nodeid, 0.0)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Give a test so much of the processor's time, and no more."""
        usual_s = self._usual_s.get(item.nodeid)
        began_s = process_time()
        setitimer(ITIMER_PROF, FIRST_LIMIT_S if usual_s is None else PATIENCE * (1 + usual_s))
        self.hung = item.nodeid  # as long as nobody knows better
        yield
        self.hung = ""
        setitimer(ITIMER_PROF, 0)
        self.seconds[item.nodeid] = process_time() - began_s

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first test that fails."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


def _stop(*_: object) -> None:
    pytest.exit("it hangs", returncode=_HANGS)


def run(mutant: Mutant | None, tests: Sequence[str], first: str, usual_s: Mapping[str, float]) -> Verdict:
    """Run these tests until one fails, in a process that has not imported the scheduler yet."""
    if any(name.startswith("gpu_worker") for name in sys.modules):
        raise RuntimeError("the scheduler was imported before the bug was in it")
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
    signal(SIGPROF, _stop)
    watch = _Watch(first, usual_s)
    options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "tests.mutants.quick", "--tb=no"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    with redirect_stdout(StringIO()):
        code = pytest.main([*options, f"--rootdir={HERE}", *(str(HERE / test) for test in tests)], [watch])
    end, by = {
        pytest.ExitCode.OK: ("survived", ""),
        pytest.ExitCode.TESTS_FAILED: ("caught", watch.failed),
        _HANGS: ("hangs", watch.hung),
    }.get(code, ("broken", f"pytest ends with {code}"))
    return Verdict(end, by, watch.seconds)
