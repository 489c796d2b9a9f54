"""The quota file: every error of it, projects that nobody can be in, and rules that are for no group."""

from collections.abc import Collection, Iterator

from bulletin.errors import BadConfig
from bulletin.hub_scopes import READ_GROUPS_SCOPE
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.pool_setup import PoolSetup
from gpu_worker.quotas import Quotas, read_quotas
from gpu_worker.quotas.group_rule_checks import unused_rules
from gpu_worker.scheduler.policy.projects import DEFAULT_PROJECT


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
    yield from _check_properties(setup, quotas)
    if groups is not None:
        yield from _compare(quotas, groups)
        yield from _compare_rules(quotas, groups)


def _check_properties(setup: PoolSetup, quotas: Quotas) -> Iterator[Diagnosis]:
    """Say where rules ask for properties of groups that the hub does not show."""
    asking = [rule.id for rule in quotas.group_rules if rule.properties or rule.parent_property]
    facts = setup.hub
    if asking and facts is not None and facts.is_configured and READ_GROUPS_SCOPE not in facts.service_scopes:
        yield Diagnosis(
            check="group-properties",
            what=f"The rule {asking[0]!r} of the quota file asks for properties of groups, and no role gives the "
            f"service 'bulletin' the scope {READ_GROUPS_SCOPE}.",
            why="The pool does not see them, and cannot say which rule a group has: cells of a group of which it does "
            "not know them from before are refused.",
            remedy="Set c.JupyterHub.load_roles before configure(c, ...), or add the scope to it afterwards.",
        )


def _compare_rules(quotas: Quotas, groups: Collection[str]) -> Iterator[Diagnosis]:
    for rule, known in unused_rules(quotas.group_rules, quotas.projects, sorted(groups)):
        fit = "No group of the hub fits it"
        if known:
            fit = f"Those that fit it ({', '.join(known)}) are named in the file, or an earlier rule is for them"
        yield Diagnosis(
            check="quota-rule",
            what=f"The rule {rule.id!r} of the quota file is for no group that the hub has now.",
            why=f"{fit}: what it says holds for nobody. A group that comes later may be the first.",
            remedy=f"Correct its groups, or leave it; the hub's groups are: {', '.join(sorted(groups))}.",
            level="advice",
        )


def _compare(quotas: Quotas, groups: Collection[str]) -> Iterator[Diagnosis]:
    parents = {one.parent for one in (*quotas.projects, *quotas.group_rules)}
    for project in quotas.projects:
        if project.id not in (*groups, DEFAULT_PROJECT) and project.id not in parents:
            yield Diagnosis(
                check="quota-group",
                what=f"The quota file has a project {project.id!r}, and the hub has no group of that name.",
                why="A user's hub groups are their projects: nobody can use what is set for this one.",
                remedy=f"Make the group on the hub, or correct the name; its groups are: {', '.join(sorted(groups))}.",
            )
