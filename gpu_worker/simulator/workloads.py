"""Made-up weeks for the simulator: a course, a research group, and both on one pool.

The lengths of cells, the pauses within a burst of work and the idleness of open notebooks are shaped after what was
published of a production cluster of notebooks (Carver et al., NotebookOS, ASPLOS 2026); the calendars are ours.

The same name, version, seed and number of people give the same bytes on every Python: of the random numbers only
`random()` is used, whose sequence Python promises to keep, and of arithmetic only what IEEE 754 fixes to the last bit.
"""

from collections.abc import Callable
from itertools import pairwise
from random import Random

from bulletin.errors import BadConfig
from bulletin.ids import ProjectId, SessionId, UserName
from bulletin.units import DAY_MS, HOUR_MS, MINUTE_MS
from gpu_worker.simulator.traces import Trace, TraceCell, TraceNotebook, TraceOrigin, in_order

#: Raised whenever the same seed would give another trace.
VERSION = 1
_SECOND_MS = 1000

#: Points of an inverse distribution function: below which value, in milliseconds, this part of all draws lies.
Quantiles = tuple[tuple[float, int], ...]


def _table(unit_ms: int, *points: tuple[float, float]) -> Quantiles:
    return tuple((part, int(value * unit_ms)) for part, value in points)


#: How long a cell of somebody who looks on runs: half of them under 2 min, three quarters under 5 min, a long tail.
RUN = _table(_SECOND_MS, (0, 1), (0.1, 4), (0.25, 25), (0.5, 120), (0.75, 300), (0.9, 800), (0.97, 1200), (1, 1740))
#: From the end of a cell to the next one, within a burst of work.
GAP = _table(_SECOND_MS, (0, 5), (0.1, 45), (0.25, 130), (0.5, 300), (0.75, 480), (0.9, 780), (1, 1200))
#: How long a notebook stays open after its last cell.
STAY = _table(MINUTE_MS, (0, 5), (0.25, 40), (0.5, 110), (0.75, 200), (0.95, 360), (1, 720))
#: How long after its beginning somebody comes to class and opens a notebook.
LATE = _table(MINUTE_MS, (0, 0), (0.5, 4), (0.9, 10), (1, 30))
#: How long before a deadline somebody sits down to the homework.
BEFORE = _table(HOUR_MS, (0, 0.5), (0.25, 2), (0.5, 4), (0.75, 7), (0.9, 14), (1, 36))
#: The same, where everybody begins late.
LAST_HOURS = _table(HOUR_MS, (0, 0.1), (1, 2))
#: From the opening of a notebook to its first cell.
READ = _table(_SECOND_MS, (0, 10), (0.5, 60), (1, 600))
#: Between two bursts of work of a researcher in one notebook.
REST = _table(HOUR_MS, (0, 0.5), (0.5, 1.2), (0.9, 3), (1, 6))
#: One trial of a sweep.
TRIAL = _table(MINUTE_MS, (0, 1), (0.25, 3), (0.5, 5), (0.9, 14), (1, 40))
#: A long training.
TRAINING = _table(HOUR_MS, (0, 2), (0.5, 8), (0.9, 30), (1, 60))

_CLASS_MS = 110 * MINUTE_MS
_SECTION = 100


class RandomDraws:
    """A stream of random numbers, and what a workload draws from it. Each draw moves the stream on."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def draw_chance(self, part: float) -> bool:
        """Draw yes or no: yes in this part of all draws."""
        return self._random.random() < part

    def draw_below(self, number: int) -> int:
        """Draw a whole number from 0 up to, and without, `number`; all are equally likely."""
        return int(self._random.random() * number)

    def draw_ms(self, table: Quantiles) -> int:
        """Draw a duration in milliseconds: the table's inverse distribution function, straight between its points."""
        at = self._random.random()
        for (low, low_ms), (high, high_ms) in pairwise(table):
            if at < high:
                return low_ms + int((high_ms - low_ms) * ((at - low) / (high - low)))
        raise AssertionError("the last point of a table is 1")


class WorkloadWeek:
    """The notebooks of one trace while it is being made: a week from Monday 0:00, in milliseconds from then."""

    def __init__(self, seed: int) -> None:
        self.draws = RandomDraws(seed)
        self.notebooks: list[TraceNotebook] = []

    def _open(self, user: str, project: str, opened_ms: int, cells: list[TraceCell], first_ms: int) -> None:
        self.notebooks.append(
            TraceNotebook(
                session=SessionId(f"s{len(self.notebooks)}"),
                user=UserName(user),
                project=ProjectId(project),
                opened_ms=opened_ms,
                first_ms=first_ms,
                cells=tuple(cells),
            )
        )

    def draw_burst(self, number: int, then: Quantiles) -> list[TraceCell]:
        """Draw cells of somebody who looks on; `then` is the pause after the last one."""
        draws = self.draws
        last = number - 1
        return [
            TraceCell(run_ms=draws.draw_ms(RUN), think_ms=draws.draw_ms(then if at == last else GAP))
            for at in range(number)
        ]

    def sit(self, user: str, project: str, opened_ms: int, number: int) -> None:
        """Add a notebook with one burst of work, left open for a while."""
        self._open(user, project, opened_ms, self.draw_burst(number, STAY), self.draws.draw_ms(READ))

    def attend(self, user: str, project: str, begins_ms: int, class_ms: int = _CLASS_MS) -> None:
        """Add a notebook with cells until the class is over, left open for a while."""
        draws = self.draws
        late_ms = draws.draw_ms(LATE)
        first_ms = draws.draw_ms(READ)
        left_ms = class_ms - late_ms - first_ms
        cells: list[TraceCell] = []
        while left_ms > 0:
            cells.append(TraceCell(run_ms=draws.draw_ms(RUN), think_ms=draws.draw_ms(GAP)))
            left_ms -= cells[-1].run_ms + cells[-1].think_ms
        cells[-1] = TraceCell(run_ms=cells[-1].run_ms, think_ms=draws.draw_ms(STAY))
        self._open(user, project, begins_ms + late_ms, cells, first_ms)

    def add_course(self, project: str, people: int, before: Quantiles = BEFORE) -> None:
        """Add a course: sections of 100 with two classes each, and homework for Wednesday and Sunday midnight.

        `before` is how long before a deadline people sit down to the homework.
        """
        draws = self.draws
        for person in range(people):
            user = f"{project}-{person}"
            section = person // _SECTION
            hour = 10 + 2 * (section // 5) % 8  # two hours later for each five sections, from 10:00 to 16:00
            for day, at in ((section % 5, hour), ((section + 2) % 5, hour + 4)):
                if draws.draw_chance(0.85):
                    self.attend(user, project, day * DAY_MS + at * HOUR_MS)
            for deadline_ms in (3 * DAY_MS, 7 * DAY_MS):
                if draws.draw_chance(0.9):
                    self.sit(user, project, deadline_ms - draws.draw_ms(before), 6 + draws.draw_below(11))
            if draws.draw_chance(0.6):
                at_ms = draws.draw_below(7) * DAY_MS + 9 * HOUR_MS + draws.draw_below(13 * HOUR_MS)
                self.sit(user, project, at_ms, 3 + draws.draw_below(10))

    def add_group(self, project: str, people: int) -> None:
        """Add a group: exploration and two sweeps on each working day, and a long training for every other person."""
        draws = self.draws
        for person in range(people):
            user = f"{project}-{person}"
            for day in range(5):
                opened_ms = day * DAY_MS + 8 * HOUR_MS + draws.draw_below(6 * HOUR_MS)
                cells = self.draw_burst(4 + draws.draw_below(8), REST)
                cells += self.draw_burst(4 + draws.draw_below(8), REST)
                cells += self.draw_burst(4 + draws.draw_below(8), STAY)
                self._open(user, project, opened_ms, cells, draws.draw_ms(READ))
            if person % 2 == 0:
                self.train(user, project, draws.draw_below(5 * DAY_MS), gpus=(1, 2, 4)[person // 2 % 3])
        for sweep in range(10):
            user = f"{project}-{draws.draw_below(people)}"
            self.sweep(user, project, sweep // 2 * DAY_MS + 9 * HOUR_MS + draws.draw_below(11 * HOUR_MS))

    def train(self, user: str, project: str, opened_ms: int, gpus: int) -> None:
        """Add a notebook with one cell that runs for hours."""
        run_ms = self.draws.draw_ms(TRAINING)
        walltime_ms = run_ms + run_ms // 4
        qos = "batch" if walltime_ms <= DAY_MS else "long"
        cell = TraceCell(run_ms=run_ms, think_ms=MINUTE_MS, gpus=gpus, qos=qos, walltime_ms=walltime_ms)
        self._open(user, project, opened_ms, [cell], _SECOND_MS)

    def sweep(self, user: str, project: str, opened_ms: int) -> None:
        """Add four notebooks with hundreds of cells together, one after the other in each."""
        draws = self.draws
        for _ in range(4):
            trials = 40 + draws.draw_below(61)
            cells = [
                TraceCell(run_ms=draws.draw_ms(TRIAL), think_ms=_SECOND_MS, qos="batch", walltime_ms=HOUR_MS)
                for _ in range(trials)
            ]
            self._open(user, project, opened_ms, cells, _SECOND_MS)

    def fill(self, user: str, project: str, opened_ms: int, until_ms: int) -> None:
        """Add a notebook with one trial after the other, for so long if none of them waits."""
        cells: list[TraceCell] = []
        while opened_ms + sum(cell.run_ms + cell.think_ms for cell in cells) < until_ms:
            run_ms = self.draws.draw_ms(TRIAL)
            cells.append(TraceCell(run_ms=run_ms, think_ms=_SECOND_MS, qos="batch", walltime_ms=HOUR_MS))
        self._open(user, project, opened_ms, cells, _SECOND_MS)


def course(week: WorkloadWeek, people: int) -> None:
    """Add a course with class hours and deadline evenings."""
    week.add_course("course", people)


def deadline(week: WorkloadWeek, people: int) -> None:
    """Add a course in which everybody sits down to the homework in the last two hours."""
    week.add_course("course", people, LAST_HOURS)


def lesson(week: WorkloadWeek, people: int) -> None:
    """Add one class of 50 minutes on Monday at 10:00, and a lab whose batch cells would fill any pool until 11:00."""
    for person in range(people):
        week.attend(f"student-{person}", "class", 10 * HOUR_MS, 50 * MINUTE_MS)
    for member in range(2 * people):
        week.fill(f"lab-{member}", "lab", 9 * HOUR_MS, 11 * HOUR_MS)


def research(week: WorkloadWeek, people: int) -> None:
    """Add a group with exploration, sweeps of hundreds of cells and long trainings."""
    week.add_group("vision", people)


def mix(week: WorkloadWeek, people: int) -> None:
    """Add a course, and two research groups of 12 on the same pool."""
    week.add_course("course", people)
    week.add_group("vision", 12)
    week.add_group("language", 12)


#: Each with how many people it has where nobody says otherwise.
WORKLOADS: dict[str, tuple[Callable[[WorkloadWeek, int], None], int]] = {
    "course": (course, 500),
    "deadline": (deadline, 500),
    "lesson": (lesson, 16),
    "research": (research, 12),
    "mix": (mix, 500),
}


def generate(name: str, seed: int, people: int | None = None) -> Trace:
    """Make up a week of the named workload.

    Raises
    ------
    BadConfig
        If there is no such workload, or not so many people.
    """
    if name not in WORKLOADS:
        raise BadConfig(f"There is no workload {name!r}. Choose one of {', '.join(WORKLOADS)} with --generate.")
    make, usual = WORKLOADS[name]
    number = usual if people is None else people
    if number < 1 or seed < 0:
        raise BadConfig(f"{number} people and seed {seed} make no week. Give one person or more, and a seed from 0 on.")
    week = WorkloadWeek(seed)
    make(week, number)
    return Trace(TraceOrigin(made_by=name, version=VERSION, seed=seed, people=number), in_order(week.notebooks))
