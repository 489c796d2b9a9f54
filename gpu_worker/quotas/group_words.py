"""What a hub group has by a quota file, in a sentence."""

from gpu_worker.quotas import Quotas
from gpu_worker.quotas.group_rule_settings import describe_terms
from gpu_worker.scheduler.policy.group_rules import HubGroup


def describe_group(quotas: Quotas, name: str) -> str:
    """Say by what a group of this name and without properties is a project, what it is in, and what it has."""
    by_id = {one.id: one for one in quotas.settings_for([HubGroup(name)]).projects}
    project = next((one for one in by_id.values() if one.id == name), None)
    if project is None:
        return f"{name!r}: no rule is for it. It has no guarantee, no limit, and weight 1."
    if not project.rule:
        return f"{name!r}: the file names it."
    inside = f", in {project.parent!r}" if project.parent is not None else ""
    terms = describe_terms(project) or "no limit of its own"
    return f"{name!r}: by the rule {project.rule!r}{inside}. It has {terms}, and no guarantee."
