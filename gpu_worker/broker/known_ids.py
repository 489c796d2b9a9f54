"""What a person may see and change, and which request or lease is meant by an id, of those that the person may see."""

from collections.abc import Iterator
from itertools import chain

from bulletin.codes import RefusalCode
from bulletin.hub_scopes import MANAGE_SCOPE, NAMED_LEAD_SCOPE
from bulletin.ids import LeaseId, ProjectId, UserName
from gpu_worker.broker.identity import Person
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.state import State

#: So much of an id must be written, or all of it: nobody's cell is stopped by one letter.
LEAST = 6
#: How many ids are named where the beginning of one fits several.
_MOST_NAMED = 5
#: How an admin becomes one here.
_TOKEN_NEEDED = f"a token of the hub with the scope {MANAGE_SCOPE}, in JUPYTERHUB_API_TOKEN"
#: And how a lead does.
_FOR_LEADS = (
    f"a token of the hub with the scope {MANAGE_SCOPE} or, as lead, {NAMED_LEAD_SCOPE}, in JUPYTERHUB_API_TOKEN"
)


class CannotTell(Exception):
    """There is no answer to the question, for this person. Code and sentence travel as Refusal."""

    def __init__(self, code: RefusalCode, sentence: str) -> None:
        super().__init__(code, sentence)
        self.code, self.sentence = code, sentence


def find(state: State, person: Person, name: str) -> Request | Lease | None:
    """Find what has the id, or whose id begins so and no other's. None: nothing that waits or holds slots now.

    Raises
    ------
    CannotTell
        If several ids begin so.
    """
    found: dict[LeaseId, Request | Lease] = {}
    everything: Iterator[Request | Lease] = chain(state.pending.values(), state.leases.values())
    for one in everything:
        if may_see(person, one.user) or is_led(state, person, one.home):
            names = list(_names(one))
            if name in names:
                return one
            if len(name) >= LEAST and any(known.startswith(name) for known in names):
                found[lease_id(one)] = one
    if len(found) > 1:
        several = ", ".join(list(found)[:_MOST_NAMED]) + (", …" if len(found) > _MOST_NAMED else "")
        raise CannotTell(
            RefusalCode.AMBIGUOUS_ID, f"{len(found)} ids begin with {name!r}: {several}. Write more of it."
        )
    return next(iter(found.values()), None)


def find_live(state: State, person: Person, name: str) -> Request | Lease:
    """Find what waits or holds slots now. Raises CannotTell where nothing does, too."""
    found = find(state, person, name)
    if found is None:
        raise unknown(person, name, "waits or runs")
    return found


def may_see(person: Person, user: UserName) -> bool:
    """Whether a person may see what is this user's."""
    return person.is_admin or user == person.user


def is_led(state: State, person: Person, project: ProjectId) -> bool:
    """Whether a person leads a project, or one that it is in."""
    if not person.leads and not person.may_be_named_lead:
        return False
    account = state.accounts.by_id.get(project)
    path = [at.project for at in account.path] if account is not None else []
    is_named = person.may_be_named_lead and any(person.user in one.leads for one in path)
    return is_named or project in person.leads or any(one.id in person.leads for one in path)


def leads_any(state: State, person: Person) -> bool:
    """Whether a person leads some project: by a role of the hub, or because the quota file names them."""
    named = (one.project.leads for one in state.accounts.by_id.values()) if person.may_be_named_lead else ()
    return bool(person.leads) or any(person.user in leads for leads in named)


def why_no_payer(state: State, person: Person, project: ProjectId) -> str:
    """Say why a project may not pay for what a person asks for; empty where it may.

    What is reserved for users of a project counts under a name of its own, and a group of the hub may be called so.
    """
    if not person.may_charge(project):
        return person.refuse_project(project)
    return why_reserved(state, project)


def why_reserved(state: State, project: ProjectId) -> str:
    """Say that a project is what is reserved for users of another, whoever names it; empty where it is not."""
    account = state.accounts.by_id.get(project)
    if account is None or account.parent is None or not account.project.users:
        return ""
    inside = account.parent.project.id
    return (
        f"{project!r} is what is reserved in the project {inside!r} for some of its users, and your group of the hub "
        "has the same name. Choose another project with --project, or ask an admin to rename one of the two."
    )


def may_change(state: State, person: Person, project: ProjectId) -> bool:
    """Whether a person may do to others' requests and cells of this project what an admin may."""
    return person.is_admin or is_led(state, person, project)


def check_lead(state: State, person: Person, project: ProjectId, what: str) -> None:
    """Let nobody but admins, and who leads the project, go on to what is named. Raises CannotTell."""
    if not may_change(state, person, project):
        raise for_leads(f"leads of the project {project!r}", what)


def for_leads(which: str, what: str) -> CannotTell:
    """Make the refusal of what admins do, and leads where they may: with the token that it takes."""
    return CannotTell(RefusalCode.NOT_ALLOWED, f"Only admins and {which} {what}, and by {_FOR_LEADS}.")


def check_admin(person: Person, what: str) -> None:
    """Let nobody but admins go on to what is named, as in "drain nodes".

    Raises
    ------
    CannotTell
        With the token that it takes: a notebook server's own is no admin's.
    """
    if not person.is_admin:
        raise CannotTell(RefusalCode.NOT_ALLOWED, f"Only admins {what}, and by {_TOKEN_NEEDED}.")


def lease_id(one: Request | Lease) -> LeaseId:
    """Return the one name of a request and of the lease that it becomes."""
    return one.lease if isinstance(one, Request) else one.id


def _names(one: Request | Lease) -> Iterator[str]:
    yield lease_id(one)
    request = one.id if isinstance(one, Request) else one.request if one.phase is Phase.GRANTED else None
    if request is not None:
        yield request.rpartition("/")[2]  # as its kernel calls it, which calls its first cell so, too
    if isinstance(one, Lease) and one.cell is not None:
        yield one.cell


def unknown(person: Person, name: str, what: str = "is known") -> CannotTell:
    """Make the refusal of an id that nothing has, as far as the person may know."""
    whose = "" if person.is_admin else " of yours"
    if len(name) < LEAST:
        return CannotTell(
            RefusalCode.UNKNOWN_ID, f"{name!r} is too short for an id: write its first {LEAST} letters at least."
        )
    hint = f" To see others' you need {_TOKEN_NEEDED}." if person.lacks_scope else ""
    return CannotTell(RefusalCode.UNKNOWN_ID, f"No request, lease or cell{whose} with the id {name!r} {what}.{hint}")
