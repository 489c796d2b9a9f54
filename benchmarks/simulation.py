"""The figures of docs/explanation/simulation.md, the same on every machine.

    python benchmarks/simulation.py --write                     all tables and the figure, into the page
    python benchmarks/simulation.py weeks                       one table, printed
    python benchmarks/simulation.py costs --gpus 60 --seed 2    another one

`weeks` finds the number of GPUs that the page leads with, and the week that needs most. The other tables are of that
pool and that week, which `--gpus` and `--seed` name; without them they are looked for first, which takes some minutes.
`--jobs 2` uses two processes.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from simulation_tables import SEEDS, TABLES, Standard, find_standard, find_week, weeks_table

from gpu_worker.simulator.figure import draw
from gpu_worker.simulator.simulated_nodes import Delays

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURE = DOCS / "explanation" / "simulation.md", DOCS / "images" / "simulated_course.svg"
WEEKS = "weeks"


def begin_mark(name: str) -> str:
    """Write what stands before a table in the page."""
    return f"<!-- {name}: written by benchmarks/simulation.py -->\n"


def end_mark(name: str) -> str:
    """Write what stands behind it."""
    return f"<!-- end of {name} -->\n"


def fill(page: str, tables: Mapping[str, str]) -> str:
    """Put each table between its marks; raise KeyError with the first name that has none."""
    for name, text in tables.items():
        before, begin, rest = page.partition(begin_mark(name))
        _, end, after = rest.partition(end_mark(name))
        if not begin or not end:
            raise KeyError(name)
        page = before + begin + text + end + after
    return page


def show(name: str, lines: list[str], standard: Standard) -> str:
    """Write a table as it stands in the page: below the command that makes it."""
    of = "" if name == WEEKS else f" --gpus {standard.gpus} --seed {standard.seed}"
    return "\n".join(["```sh", f"python benchmarks/simulation.py {name}{of}", "```", "", *lines, ""])


def write_figure(standard: Standard) -> None:
    """Draw the waits and the use of the week that needs most."""
    draw([f"week {standard.seed}"], [standard.play(standard.week, Delays())], FIGURE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="TABLE", help=", ".join([WEEKS, *TABLES]))
    parser.add_argument("--write", action="store_true", help="write them into the page, all where none is named")
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    words = parser.parse_args()
    names = words.names or [WEEKS, *TABLES]
    if unknown := set(names) - {WEEKS, *TABLES}:
        parser.error(f"there is no table {', '.join(sorted(unknown))}")
    standard = Standard(words.gpus, words.seed) if words.gpus and words.seed else None
    began_s = time.monotonic()
    with ProcessPoolExecutor(words.jobs) as executor:
        futures = {}
        if standard is None or WEEKS in names:
            found = list(executor.map(find_week, SEEDS))
            standard, runs = find_standard(found)
            futures[WEEKS] = executor.submit(weeks_table, standard, found, runs)
        futures |= {name: executor.submit(TABLES[name], standard) for name in names if name != WEEKS}
        for name in names:
            text = show(name, futures[name].result(), standard)
            print(f"{name}\n\n{text}", flush=True)
            print(f"{time.monotonic() - began_s:.0f} s so far\n", file=sys.stderr, flush=True)
            if words.write:
                PAGE.write_text(fill(PAGE.read_text(), {name: text}))
        if words.write and WEEKS in names:
            write_figure(standard)


if __name__ == "__main__":
    main()
