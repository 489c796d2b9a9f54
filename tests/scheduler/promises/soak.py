"""Plays random histories, says which broke a promise, and makes one that did as small as it gets.

python -m tests.scheduler.promises.soak 2000            histories by seeds 0 to 1999, in a process for each core
python -m tests.scheduler.promises.soak --from 500 10   seeds 500 to 509
python -m tests.scheduler.promises.soak --show 17       one of them, made small and printed
"""

import argparse
import collections
import multiprocessing
import os
import signal
import sys
import time

from tests.scheduler.promises.play import play, show
from tests.scheduler.promises.random_histories import random_history
from tests.scheduler.promises.shrink import shrink
from tests.scheduler.promises.violations import Violation

#: A history takes a tenth of a second; one that takes so long of a processor, however busy that is, does not end.
_MOST_SECONDS = 20


def _give_up(number: int, frame: object) -> None:
    raise TimeoutError(f"no end after {_MOST_SECONDS} s of a processor")


def judge_seed(seed: int) -> tuple[int, int, list[Violation], str]:
    """Play one seed: how many steps it had, and what was found; a crash, in words."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS)
    try:
        judge, steps = play(random_history(seed))
    except Exception as error:  # noqa: BLE001  # whatever it is, the seed is to be told
        return seed, 0, [], f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return seed, steps, judge.violations, ""


def main() -> int:
    """Play, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--promise", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.show:
        small, found = shrink(random_history(options.count), options.promise)
        print(show(small))
        print(found)
        return 0
    seeds = range(options.first, options.first + options.count)
    kinds: dict[tuple[int, str], list[int]] = collections.defaultdict(list)
    crashed: dict[str, list[int]] = collections.defaultdict(list)
    began, total, done = time.monotonic(), 0, 0
    with multiprocessing.Pool(options.jobs) as pool:
        for seed, steps, violations, crash in pool.imap_unordered(judge_seed, seeds, chunksize=4):
            total, done = total + steps, done + 1
            for kind in {(violation.promise, violation.what) for violation in violations}:
                kinds[kind].append(seed)
                print(f"seed {seed}: promise {kind[0]}: {kind[1]}", flush=True)
            if crash:
                crashed[crash].append(seed)
            if done % 200 == 0:
                said = f"{sum(map(len, kinds.values()))} broke a promise"
                print(f"{done} histories, {total} steps, {time.monotonic() - began:.0f} s: {said}", flush=True)
    print(f"{done} histories, {total} steps, {time.monotonic() - began:.0f} s")
    for (promise, what), failing in sorted(kinds.items()):
        print(f"promise {promise}: {what}: {len(failing)} histories, seeds {sorted(failing)[:8]}")
    for words, failing in crashed.items():
        print(f"crash: {words}: {len(failing)} histories, seeds {sorted(failing)[:8]}")
    return 1 if kinds or crashed else 0


if __name__ == "__main__":
    sys.exit(main())
