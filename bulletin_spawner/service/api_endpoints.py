"""Every endpoint of the REST API in one table: path, who may ask, what is asked and answered. OpenAPI is made of it.

A new endpoint is a row of `ENDPOINTS` (or of a table of its own that `make_app` is given beside it): routes, checks of
what is sent, and the document at api/v1/openapi.json follow from the row.
"""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec

from bulletin.wire import console, page_requests as page
from bulletin.wire.messages import TEXT_LIMIT
from bulletin_spawner.service.api_problems import ApiProblem, ApiRefused
from bulletin_spawner.service.cells_view import NodeCells, view_cells
from bulletin_spawner.service.me_view import MeView, ReceiptsView, slot_sizes, view_me, view_receipts
from bulletin_spawner.service.now_view import NowView, view_now
from bulletin_spawner.service.pool_source import PoolSource
from bulletin_spawner.service.project_view import ProjectsView, ProjectView, view_project, view_projects
from bulletin_spawner.service.viewer import Role, Sight, Viewer

Method = Literal["GET", "POST", "PUT", "DELETE"]
#: Words of the path and of bodies: as long as the wire lets them be.
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_LIMIT)]
Words = Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)]


class NoParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing is asked but the path itself."""


class ApiCall(msgspec.Struct, frozen=True):
    """One call: who asks, of whom the pool is asked, the parameters of path and query, and the body."""

    viewer: Viewer
    pool: PoolSource
    asked: Any
    body: Any

    async def sight(self) -> tuple[page.PoolReport, Sight]:
        """Ask for the pool as it is, and what the caller may see of it. Raises NoPool."""
        report = await self.pool.fetch_pool()
        return report, Sight(self.viewer, report)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    name: str  #: names it in OpenAPI, as `operationId`
    method: Method = "GET"
    path: str  #: below api/v1, as in "/cells/{id}/cancel"
    summary: str
    role: Role = "user"  #: who may ask at all: what they see or may change is decided with the answer
    asks: type[msgspec.Struct] = NoParameters  #: names of the path, and of the query
    body: type[msgspec.Struct] | None = None
    answers: Any
    refuses: Mapping[int, type[ApiProblem]] = {}  #: what more may be answered with a status than ApiProblem
    run: Callable[[ApiCall], Awaitable[Any]]


class CellNamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request, a lease or a cell by its id, or by the first letters of it."""

    id: Word


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why something is done: kept with it."""

    why: Words = ""


class ReceiptsAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many of the last cells."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class ProjectAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project, and the stretches of time by which its use is told."""

    project: Word
    stretch: page.Stretch = "day"
    count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 14


class ProjectNamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project."""

    project: Word


class MemberNamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user of a project."""

    project: Word
    user: Word


class BoostWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose requests are to stand before those of the project's other users, for how long, and why."""

    user: Word
    for_ms: Annotated[int, msgspec.Meta(ge=60_000, le=366 * 86_400_000)]
    why: Words = ""


async def _now(call: ApiCall) -> NowView:
    return view_now(*await call.sight())


async def _me(call: ApiCall) -> MeView:
    return view_me(*await call.sight())


async def _receipts(call: ApiCall) -> ReceiptsView:
    report, _ = await call.sight()
    if not call.viewer.user:  # a service of the hub has no cells
        return ReceiptsView(slot_word=report.slot_word, receipts=())
    past = await call.pool.fetch_past(call.viewer.user, call.asked.limit)
    return view_receipts(past, slot_sizes(report))


async def _cells(call: ApiCall) -> NodeCells:
    if not call.viewer.user:
        return NodeCells(cells=(), missing=())
    return view_cells(await call.pool.fetch_cells(call.viewer.user))


async def _projects(call: ApiCall) -> ProjectsView:
    return view_projects(*await call.sight())


async def _project(call: ApiCall) -> ProjectView:
    report, sight = await call.sight()
    if not sight.may_open(call.asked.project):
        sentence = f"You are not in the project {call.asked.project!r}, or there is none. Ask its lead."
        raise ApiRefused(HTTPStatus.FORBIDDEN, "not-allowed", sentence)
    use = await call.pool.fetch_use(call.viewer.user, call.asked.project, call.asked.stretch, call.asked.count)
    return view_project(report, use, sight)


def _acting(question: Callable[[ApiCall], Any], kind: Any) -> Callable[[ApiCall], Awaitable[Any]]:
    """Make what asks the broker in the caller's name; the broker says whether they may."""

    async def act(call: ApiCall) -> Any:
        asked = page.OnBehalf(reader=call.viewer.reader, question=question(call))
        return await call.pool.change(asked, kind)

    return act


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(name="now", path="/now", summary="Nodes, slots, the line, what frees next", answers=NowView, run=_now),
    Endpoint(name="me", path="/me", summary="What you run and wait for, and your projects", answers=MeView, run=_me),
    Endpoint(
        name="receipts",
        path="/me/receipts",
        summary="Your last cells: what they cost, with advice",
        asks=ReceiptsAsked,
        answers=ReceiptsView,
        run=_receipts,
    ),
    Endpoint(
        name="cells",
        path="/me/cells",
        summary="Your cells that nodes have: those that run, and those whose results wait for a notebook",
        answers=NodeCells,
        run=_cells,
    ),
    Endpoint(
        name="projects", path="/projects", summary="The projects that you may open", answers=ProjectsView, run=_projects
    ),
    Endpoint(
        name="project",
        path="/projects/{project}",
        summary="How a project stands, and what it used over time",
        asks=ProjectAsked,
        answers=ProjectView,
        run=_project,
    ),
    Endpoint(
        name="cancel",
        method="POST",
        path="/cells/{id}/cancel",
        summary="Withdraw a request, or stop its cell as the stop button does; asked again, its process is ended",
        asks=CellNamed,
        answers=console.Cancelled,
        run=_acting(lambda call: console.Cancel(id=call.asked.id), console.Cancelled),
    ),
    Endpoint(
        name="hold",
        method="POST",
        path="/cells/{id}/hold",
        summary="Have a request not start before it is released",
        asks=CellNamed,
        body=Reason,
        answers=console.ChangedByHand,
        run=_acting(lambda call: console.Hold(id=call.asked.id, why=call.body.why), console.ChangedByHand),
    ),
    Endpoint(
        name="release",
        method="POST",
        path="/cells/{id}/release",
        summary="Let a request that is held wait as others do",
        asks=CellNamed,
        body=Reason,
        answers=console.ChangedByHand,
        run=_acting(lambda call: console.Release(id=call.asked.id, why=call.body.why), console.ChangedByHand),
    ),
    Endpoint(
        name="first",
        method="POST",
        path="/cells/{id}/first",
        summary="Let a request be the first of its project",
        role="lead",
        asks=CellNamed,
        body=Reason,
        answers=console.ChangedByHand,
        run=_acting(lambda call: console.PutFirst(id=call.asked.id, why=call.body.why), console.ChangedByHand),
    ),
    Endpoint(
        name="boost",
        method="POST",
        path="/projects/{project}/boosts",
        summary="Let a user's requests stand before those of the project's other users, for so long",
        role="lead",
        asks=ProjectNamed,
        body=BoostWanted,
        answers=console.BoostReport,
        run=_acting(
            lambda call: console.Boost(
                user=call.body.user, project=call.asked.project, for_ms=call.body.for_ms, why=call.body.why
            ),
            console.BoostReport,
        ),
    ),
    Endpoint(
        name="unboost",
        method="DELETE",
        path="/projects/{project}/boosts/{user}",
        summary="End the boost of a user",
        role="lead",
        asks=MemberNamed,
        answers=console.BoostReport,
        run=_acting(
            lambda call: console.Boost(user=call.asked.user, project=call.asked.project, is_undone=True),
            console.BoostReport,
        ),
    ),
)
