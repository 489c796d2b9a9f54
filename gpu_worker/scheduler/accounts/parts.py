"""What others have beyond their part, and may have to give up for somebody who has waited for a share."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from bulletin.ids import ProjectId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import Branch


class Tops(Protocol):
    """The projects of a pool that are in no other one."""

    top: dict[ProjectId, Account]


class Parts(NamedTuple):
    """What may be had for one request. Thousandths of a GPU."""

    of_users: int = 0  #: of one other user of its project
    #: Of projects beside its own, by each project that both are in; None is the pool.
    of_projects: Mapping[ProjectId | None, int] = MappingProxyType({})

    def beside(self, account: Account, name: ProjectId | None) -> int:
        """Compute what projects beside the request's give up in one that both are in, with what goes by now."""
        return self.of_projects.get(name, 0) + account.given_by.get(name, 0)

    def beside_side(self, account: Account, side: Branch) -> int:
        """Compute the same for one side: what a project's own users are guaranteed, none inside it can give up."""
        return 0 if side.is_members else self.beside(account, side.account.project.id)


#: Nobody gives up anything.
NO_PARTS = Parts()


def sides_up(account: Account) -> Iterator[tuple[Branch, Account | None]]:
    """List the sides of a project's users, from the inside out, each with the project in which others are beside it.

    At the top that is None, the pool.
    """
    if account.children:
        yield Branch(account, is_members=True), account
    for at in account.path:
        yield Branch(at), at.parent


def sides_in(accounts: Tops, above: Account | None) -> list[Branch]:
    """List the sides that are beside each other in a project, or at the top."""
    if above is None:
        return [Branch(one) for one in accounts.top.values()]
    return [*(Branch(child) for child in above.children.values()), Branch(above, is_members=True)]


def sides_beside(accounts: Tops, account: Account) -> Iterator[tuple[Branch, list[Branch], ProjectId | None]]:
    """List, from the inside out, a side of a project's users, those beside it, and the project that all of them are in.

    At the top that is None, the pool.
    """
    for mine, above in sides_up(account):
        others = [one for one in sides_in(accounts, above) if one.name != mine.name]
        yield mine, others, None if above is None else above.project.id
