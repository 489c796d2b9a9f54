"""Projects with guarantees, many users at once, and what every scenario wants: that nothing was broken."""

from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import Seen, notebook

#: The grace, and two seconds.
SOON_S = 32


def promised(**guaranteed: int) -> SchedulerSettings:
    """Make projects that are guaranteed so many GPUs."""
    return SchedulerSettings(
        projects=tuple(Project(id=name, guaranteed_milli=1000 * gpus) for name, gpus in guaranteed.items())  # type: ignore[arg-type]
    )


def crowd(number: int, project: str, *runs_s: float, name: str = "", **more: object) -> list[hi.Opens]:
    """Make notebooks of as many users."""
    return [notebook(f"{name or project}{index}", project, *runs_s, **more) for index in range(number)]  # type: ignore[arg-type]


def keeps_all(seen: Seen, *but: int) -> None:
    """Fail if the referee of promises found anything."""
    assert [str(violation) for violation in seen.violations if violation.promise not in but] == []
