"""Runs cloudpickle's own test suite with Bulletin's codec in the place of cloudpickle's.

    python tests/state/cloudpickle_suite.py RELEASE [--page PAGE] [-- ARGUMENT ...]

RELEASE is an unpacked source archive of github.com/cloudpipe/cloudpickle, such as that of the tag v3.1.2; the one on
PyPI has no tests. Its suite needs psutil, and numpy, scipy and tornado for some tests. Arguments after `--` go to
pytest. `--page` writes the results, with why each failure is one. The end is 1 where a failure has no explanation here,
or an explanation has no failure. Nothing in RELEASE is changed, and pytest does not collect this file.

The suite runs three times: as it is; with our codec, where both sides know all functions and classes, as a notebook
does that gets its own things back; and with our codec, where the receiver knows none, as a new executor does.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SHIM = Path(__file__).with_name("cloudpickle_shim.py")
#: The runs by their titles, with the version at which tables begin; None is cloudpickle's own codec.
RUNS = {"cloudpickle": None, "all known": 1, "none known": 0}
_OURS = [title for title, version in RUNS.items() if version is not None]
_OUTCOMES = ("passed", "failed", "skipped", "xfailed")

_LIVE = (
    "As designed: a function keeps its identity. The one that comes back is the live one with its live globals, where "
    "cloudpickle makes a copy with globals of its own for each load."
)
_ANEW = (
    "As designed: the test expects the sender's own class back, and this receiver has been told to forget it. An "
    "executor that keeps its table passes."
)
_BYTES = (
    "As designed: equal values are not sent as equal bytes. Definitions and the list of the notebook's modules have "
    "random ids, and the process's settings travel along. What has changed is decided by digests that each side takes "
    "for itself."
)
_BY_VALUE = (
    "As designed: there is no `register_pickle_by_value`. Installed packages travel by name, the notebook's own "
    "modules as source under their name, and with them `sys.path`."
)
_REFUSED = "As designed: refused, with an error of ours instead of the value's own."
_UNKNOWN = "**Not explained.**"
#: Why a test fails.
WHY = {
    "test_NamedTuple": _ANEW,
    "test_abc_cache_not_pickled": _ANEW,
    "test_closure_interacting_with_a_global_variable": _LIVE,
    "test_deterministic_dynamic_class_attr_ordering_for_chained_pickling": _BYTES,
    "test_deterministic_pickle_bytes_for_function": _BYTES,
    "test_deterministic_str_interning_for_chained_dynamic_class_pickling": _BYTES,
    "test_dynamic_class_determinist_subworker_tuple_memoization": _BYTES,
    "test_dynamic_func_deterministic_roundtrip": _BYTES,
    "test_dynamic_module_with_unpicklable_builtin": _REFUSED + " The test goes no further than that.",
    "test_generic_subclass": _ANEW,
    "test_generic_type": _ANEW,
    "test_interactive_dynamic_type_and_remote_instances": _ANEW,
    "test_interactive_dynamic_type_and_stored_remote_instances": _ANEW,
    "test_interactive_remote_function_calls_no_side_effect": _LIVE,
    "test_interactively_defined_dataclass_with_initvar_and_classvar": _ANEW,
    "test_interactively_defined_enum": _ANEW,
    "test_interactively_defined_global_variable": _LIVE,
    "test_locally_defined_enum": _ANEW,
    "test_locally_defined_intenum": _ANEW,
    "test_logger": "As designed: the sender's level of logging travels along, in place of the one that the test sets.",
    "test_multiprocessing_lock_raises": _REFUSED,
    "test_namedtuple": _ANEW,
    "test_out_of_band_buffers": "As designed: there is no `buffer_callback`. Only pieces from 64 KiB on travel apart.",
    "test_pickle_constructs_from_installed_packages_registered_for_pickling_by_value": _BY_VALUE,
    "test_pickle_constructs_from_module_registered_for_pickling_by_value": _BY_VALUE,
    "test_pickle_various_versions_of_the_same_function_with_different_pickling_method": _BY_VALUE,
    "test_recursion_during_pickling": _REFUSED,
    "test_submodule": "As designed: the live function comes back, whose closure's variable the test has deleted.",
}


def run(release: Path, version: int | None, arguments: Sequence[str]) -> dict[str, str]:
    """The outcome of each test of the suite.

    Parameters
    ----------
    release, arguments
        The unpacked source archive, and what pytest is told besides.
    version
        At which version tables begin; None for cloudpickle's own codec.

    Raises
    ------
    subprocess.CalledProcessError
        If pytest could not run the suite.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "site-packages")  # so that both sides take what is here for installed
        tests = folder / "tests"
        shutil.copytree(release / "tests", tests)
        shutil.copytree(release / "cloudpickle", folder / "cloudpickle")
        shutil.copytree(tests / "cloudpickle_testpkg" / "_cloudpickle_testpkg", folder / "_cloudpickle_testpkg")
        (folder / "pytest.ini").write_text("[pytest]\n")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), str(folder)])}
        if version is not None:
            shutil.copy(_SHIM, folder)
            (folder / "sitecustomize.py").write_text(_START.format(root=str(ROOT), version=version))
        command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "--junitxml=found.xml", "-q", "-s", *arguments]
        plugins = ["-p", "no:randomly", "-p", "no:cacheprovider"]
        ended = subprocess.run(
            [*command, *plugins, "tests/cloudpickle_test.py"], cwd=folder, env=environment, check=False
        )
        if ended.returncode not in {0, 1}:
            raise subprocess.CalledProcessError(ended.returncode, ended.args)
        return _outcomes(folder / "found.xml")


#: What each process of the suite begins with.
_START = """
import sys

sys.path.append({root!r})
import cloudpickle_shim

cloudpickle_shim.install({version})
"""


def _outcomes(report: Path) -> dict[str, str]:
    found = {}
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        skipped = case.find("skipped")
        if skipped is not None:
            found[name] = "xfailed" if skipped.get("type") == "pytest.xfail" else "skipped"
        else:
            found[name] = "passed" if case.find("failure") is None and case.find("error") is None else "failed"
    return found


def failures(outcomes: dict[str, str]) -> set[str]:
    """Tests that failed, by their own name: with protocol 2 the suite runs each once more."""
    return {name.rpartition(".")[2] for name, outcome in outcomes.items() if outcome == "failed"}


def page(found: dict[str, dict[str, str]], release: str) -> str:
    """The results for people to read."""
    counts = {title: Counter(outcomes.values()) for title, outcomes in found.items()}
    failed = {title: failures(found[title]) for title in _OURS}
    names = sorted(set().union(*failed.values()))
    reasons = list(dict.fromkeys(WHY.get(name, _UNKNOWN) for name in names))
    return _PAGE.format(
        date=datetime.now(UTC).strftime("%d %b %Y"),
        release=release,
        python=platform.python_version(),
        outcomes=" | ".join(_OUTCOMES),
        counts="\n".join(
            f"| {title} | " + " | ".join(str(counts[title][outcome]) for outcome in _OUTCOMES) + " |" for title in found
        ),
        failures="\n".join(
            f"| `{name}` | "
            + " | ".join("fails" if name in failed[title] else "passes" for title in _OURS)
            + f" | {reasons.index(WHY.get(name, _UNKNOWN)) + 1} |"
            for name in names
        ),
        reasons="\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, start=1)),
    )


_PAGE = """\
# cloudpickle's test suite

<!-- Written by tests/state/cloudpickle_suite.py. Change it there. -->

[cloudpickle](https://github.com/cloudpipe/cloudpickle) sends functions and classes of notebooks to other processes, and
its test suite remembers what went wrong with that. Here it runs with Bulletin's codec in the place of cloudpickle's:
`dumps` captures a value as the only name that a cell reads, `loads` restores it into an empty namespace. A value with a
part that cannot travel counts as an error, though a cell would get a handle for the part.

```sh
python tests/state/cloudpickle_suite.py RELEASE --page docs/explanation/cloudpickle-suite.md
```

{date}; cloudpickle {release}, whose unpacked source archive is RELEASE; Python {python}.

| run | {outcomes} |
| --- | --- | --- | --- | --- |
{counts}

*cloudpickle* is its own codec. *All known*: Bulletin's, where the receiver goes on with the functions and classes that
it has, as a notebook does that gets its own back. *None known*: Bulletin's, where the receiver begins with none at each
value, as a new executor does. The suite runs nearly every test twice, the second time with pickle's protocol 2, of
which Bulletin takes no notice; a test is said to fail where either fails.

## What fails

| test | all known | none known | why |
| --- | --- | --- | --- |
{failures}

{reasons}
"""


def main() -> int:
    """From the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("release", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    found = {title: run(options.release, version, options.arguments) for title, version in RUNS.items()}
    text = (options.release / "cloudpickle" / "__init__.py").read_text()
    release = re.findall(r'^__version__ = "(.*)"', text, re.MULTILINE)[0]
    if options.page:
        options.page.write_text(page(found, release))
    failed = set().union(*(failures(found[title]) for title in _OURS))
    for title, outcomes in found.items():
        print(title, dict(Counter(outcomes.values())))
    print("not explained:", sorted(failed - WHY.keys()))
    if not options.arguments:
        print("explained, but passed:", sorted(WHY.keys() - failed))
    return int(bool(failed - WHY.keys()) or (not options.arguments and bool(WHY.keys() - failed)))


if __name__ == "__main__":
    sys.exit(main())
