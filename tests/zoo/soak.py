"""All notebooks of the zoo in an environment of their own, and the page that says what came out.

    python -m tests.zoo.soak [NAME ...]

installs tests/zoo/libraries.txt into .venv-zoo, plays all notebooks (or those that are named, without writing the
page), and writes docs/reference/libraries.md. It ends with 1 if anything differs that tests/zoo/known.py does not
know, or no longer differs. What has been played with the same cells, libraries and code of Bulletin is not played once
more.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from dataclasses import asdict
from importlib.metadata import packages_distributions, version
from pathlib import Path

from tests.state.notebook import ROOT
from tests.zoo.comparing import BadSpecimen, Difference, Kind, Played, differences, play_all, unexplained
from tests.zoo.known import KNOWN
from tests.zoo.playing import WAYS, CannotPlay, Shown
from tests.zoo.specimens import Specimen, names, specimen

LIBRARIES = Path(__file__).with_name("libraries.txt")
PAGE = ROOT / "docs" / "reference" / "libraries.md"
VENV = ROOT / ".venv-zoo"
_PYTHON = VENV / "bin" / "python"
_TITLE = """# Libraries

What a test found for {libraries} libraries, in {notebooks} small notebooks of {cells} cells: each was played in one
process, then with all its cells on an executor (*pool*), then with every other one there (*turns*). A cell is right if
it printed the same, with the same result and the same error. Of a cell that differs, *refused* says that an error of
Bulletin told so; *after a refusal*, that an earlier cell had one; *other error*, that it ended with an error
of its own; *silent*, that nothing told.
`python -m tests.zoo.soak` made this page, on Python {python}; the notebooks lie in `tests/zoo/material`.

All on the pool, {pool} of {cells} cells are right, and {pool_whole} of {notebooks} notebooks whole; by turns, {turns}
cells and {turns_whole} notebooks.

| library | notebook | cells | pool | turns | what differs |
| --- | --- | --: | --: | --: | --- |
"""
#: Prints, in the environment of the zoo, the version of the distribution that each module is of.
_VERSIONS = "import json, sys; from tests.zoo.soak import distributions; print(json.dumps(distributions(sys.argv[1:])))"


def libraries() -> list[str]:
    """The lines of libraries.txt, each NAME==VERSION."""
    return LIBRARIES.read_text().split()


def distributions(modules: list[str]) -> dict[str, str]:
    """Name and version of the distribution that has each module, in this environment."""
    found = packages_distributions()
    return {module: f"{found[module][0]} {version(found[module][0])}" for module in modules}


def install() -> None:
    """Make the environment of the zoo, unless it is there as it should be."""
    pins = ROOT / "requirements" / "test.txt"
    parts = (LIBRARIES, pins, ROOT / "pyproject.toml")
    stamp, now = VENV / ".installed", hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
    if stamp.exists() and stamp.read_text() == now:
        return
    uv = [str(Path(sys.executable).with_name("uv"))]
    subprocess.run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, VENV], check=True)
    what = ["-c", pins, "-r", LIBRARIES, "-r", ROOT / "pyproject.toml"]
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", _PYTHON, *what], check=True)
    stamp.write_text(now)


def _code() -> bytes:
    """Read all that decides what a notebook comes to, beside its cells."""
    state = ("cell_output.py", "executor_child.py", "notebook.py")
    files = [LIBRARIES, ROOT / "tests/zoo/playing.py", *(ROOT / "tests" / "state" / name for name in state)]
    return b"".join(file.read_bytes() for file in [*files, *sorted((ROOT / "bulletin").rglob("*.py"))])


def _played(material: Specimen, code: bytes) -> Played:
    """Play a notebook all ways, or read what came of that before. Raises CannotPlay."""
    cells = "\n".join(cell.code for cell in material.cells)
    kept = VENV / "played" / f"{material.name}-{hashlib.sha256(code + cells.encode()).hexdigest()[:16]}.json"
    if kept.exists():
        return {way: [Shown(**cell) for cell in shown] for way, shown in json.loads(kept.read_text()).items()}
    played = play_all(material.name, str(_PYTHON))
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps({way: [asdict(cell) for cell in shown] for way, shown in played.items()}))
    return played


def page(played: dict[str, tuple[Specimen, list[Difference]]]) -> str:
    """The page of all notebooks and their differences."""
    modules = sorted({material.needs[0] for material, _ in played.values()})
    asked = subprocess.run([_PYTHON, "-c", _VERSIONS, *modules], cwd=ROOT, check=True, capture_output=True, text=True)
    of_module: dict[str, str] = json.loads(asked.stdout)
    rows, right, whole = [], dict.fromkeys(WAYS, 0), dict.fromkeys(WAYS, 0)
    for name, (material, found) in played.items():
        counts = []
        for way in WAYS:
            wrong = sum(one.way == way for one in found)
            right[way] += len(material.cells) - wrong
            whole[way] += not wrong
            counts.append(str(len(material.cells) - wrong))
        library = of_module[material.needs[0]]
        rows.append(f"| {library} | `{name}` | {len(material.cells)} | {' | '.join(counts)} | {_words(name, found)} |")
    title = _TITLE.format(
        libraries=len(set(of_module.values())),
        notebooks=len(played),
        cells=sum(len(material.cells) for material, _ in played.values()),
        python=".".join(map(str, sys.version_info[:2])),
        **right,
        **{f"{way}_whole": count for way, count in whole.items()},
    )
    return title + "\n".join(sorted(rows, key=str.lower)) + "\n"


def _words(name: str, found: list[Difference]) -> str:
    """What differs in a notebook: how many cells silently, how many not, and the causes."""
    counts = [f"{count} {kind.value}" for kind in Kind if (count := sum(one.kind is kind for one in found))]
    causes = dict.fromkeys(row.why for row in KNOWN if row.name == name)
    return ": ".join(filter(None, [", ".join(counts), "; ".join(causes)]))


def main(words: list[str]) -> int:
    """Play, write the page, and return 1 if somebody has to do something."""
    parser = argparse.ArgumentParser(
        "python -m tests.zoo.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="notebooks of tests/zoo/material, without .py")
    chosen = parser.parse_args(words).names
    install()
    played: dict[str, tuple[Specimen, list[Difference]]] = {}
    problems, code = 0, _code()
    for name in chosen or names():
        material = specimen(name)
        try:
            found = differences(material, _played(material, code))
        except (BadSpecimen, CannotPlay) as problem:
            print(f"{name}: {problem}", flush=True)
            problems += 1
            continue
        new, gone = unexplained(name, found)
        problems += len(new) + len(gone)
        print(f"{name}: {'as known' if found and not new + gone else 'right' if not found else 'differs'}", flush=True)
        print(*map(str, new), *(f"no longer differs: {one}" for one in gone), sep="\n", end="\n" if new or gone else "")
        played[name] = (material, found)
    if not chosen:
        PAGE.write_text(page(played))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
