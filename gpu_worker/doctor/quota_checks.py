"""The quota file: every error of it, and projects that nobody can be in."""

from collections.abc import Collection, Iterator

from bulletin.errors import BadConfig
from gpu_worker.broker.identity import DEFAULT_PROJECT
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.pool_setup import PoolSetup
from gpu_worker.quotas import Quotas, read_quotas


def check_quotas(setup: PoolSetup, groups: Collection[str] | None) -> Iterator[Diagnosis]:
    """Read the file as the broker does; compare its projects with the hub's groups, where those are known."""
    if setup.settings.quota_file is None:
        return
    try:
        quotas, warnings = read_quotas(setup.settings.quota_file)
    except BadConfig as error:
        for line in str(error).splitlines():
            yield Diagnosis(
                check="quota-file",
                what=line,
                why="A broker does not start with such a file, and one that runs goes on with what was before.",
                remedy="Correct it; `bulletin quota check FILE` says whether it is right.",
            )
        return
    for warning in warnings:
        yield Diagnosis(
            check="quota-warning",
            what=str(warning),
            why="It is obeyed all the same, and may not be what was meant.",
            remedy="Correct it, or leave it.",
            level="advice",
        )
    if groups is not None:
        yield from _compare(quotas, groups)


def _compare(quotas: Quotas, groups: Collection[str]) -> Iterator[Diagnosis]:
    parents = {project.parent for project in quotas.projects}
    for project in quotas.projects:
        if project.id not in (*groups, DEFAULT_PROJECT) and project.id not in parents:
            yield Diagnosis(
                check="quota-group",
                what=f"The quota file has a project {project.id!r}, and the hub has no group of that name.",
                why="A user's hub groups are their projects: nobody can use what is set for this one.",
                remedy=f"Make the group on the hub, or correct the name; its groups are: {', '.join(sorted(groups))}.",
            )
