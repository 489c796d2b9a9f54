"""How many GPUs are enough: the fewest with which a week, or each of several, is as good as was asked for."""

from collections.abc import Callable, Sequence

from bulletin.errors import BadConfig
from gpu_worker.simulator.run_report import RunReport

#: Plays a week on so many GPUs.
Play = Callable[[int], RunReport]
#: Says whether a run is as good as was asked for.
IsEnough = Callable[[RunReport], bool]


def find_fewest(play: Play, is_enough: IsEnough, most: int, guess: int | None = None) -> RunReport:
    """Find the fewest GPUs, `most` at most, with which a week is good enough; return the run with them.

    The next smaller pool was tried, and falls short. Where not even `most` suffice, the run with those is returned.
    Without a guess by halving; with one in steps of 1, 2, 4, ... from there first, which saves most of the runs.
    """
    low, high = 0, most + 1  # falls short, and suffices; the ends themselves are not tried
    is_above, is_below = guess is None, False  # whether somebody knows that it is above `low`, and not above `high`
    at, step = min(guess or most, most), 1
    best = run = play(at)
    while True:
        if is_enough(run):
            best, high, is_below = run, at, True
        else:
            low, is_above = at, True
        if high - low <= 1:
            return best if is_below else run
        if is_above and is_below:
            at = (low + high) // 2
        else:
            at = max(1, high - step) if is_below else min(most, low + step)
            step *= 2
        run = play(at)


def find_fewest_for_all(plays: Sequence[Play], is_enough: IsEnough, most: int, guess: int) -> list[RunReport]:
    """Find how many GPUs, from `guess` on, suffice in every one of these weeks; return the run of each with them.

    `guess` is what one of the weeks needs by itself. Where not even `most` suffice, the runs are those with `most`.
    """
    gpus, runs = guess, list[RunReport]()
    while len(runs) < len(plays):
        runs.append(plays[len(runs)](gpus))
        if gpus < most and not is_enough(runs[-1]):
            gpus, runs = gpus + 1, []
    return runs


def find_fewest_at_once(play: Play, share: float, most: int) -> RunReport:
    """Find the fewest GPUs, `most` at most, with which this share of cells starts at once; return the run with them.

    Raises
    ------
    BadConfig
        If `most` GPUs do not suffice.
    """
    best = find_fewest(play, lambda run: run.waits.at_once >= share, most)
    if best.waits.at_once < share:
        raise BadConfig(
            f"With {most} GPUs, {best.waits.at_once:.1%} of the cells start at once, and {share:.1%} were asked for. "
            "Give more with --gpus."
        )
    return best
