"""What stands instead of a page that cannot be shown: what happened and what to do, in words for people."""

from http import HTTPStatus
from typing import Any

import msgspec
from tornado import web

#: After so many seconds whoever has no script may look again.
_AGAIN_S = 5


class PageProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no page."""

    title: str
    sentences: tuple[str, ...]
    #: Whether it goes by itself, so that the page looks again until it is over.
    is_passing: bool = False


def describe_problem(status: int, *, is_fault: bool = False, is_login: bool = False) -> PageProblem:
    """Say what a status means to whoever wanted to see a page, or to log in; `is_fault`: the service has failed."""
    if is_fault:
        return PageProblem(
            title="This page cannot be shown",
            sentences=("The service behind it has failed, and its log says at what: tell an admin of the hub.",),
        )
    if is_login and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return PageProblem(
            title="The login did not come to its end",
            sentences=("It took too long, was begun twice, or the service was started again meanwhile. Begin again.",),
        )
    if status == HTTPStatus.FORBIDDEN:
        return PageProblem(
            title="You may not use the pool",
            sentences=(
                "The hub knows you, and these pages are for people who may use its pool of GPUs.",
                "An admin of the hub can let you, by a group or by the scope access:services!service=bulletin.",
            ),
        )
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return PageProblem(
            title="You ask for very much at once",
            sentences=("More was asked for in your name than these pages answer in a second. Look again in a moment.",),
        )
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return PageProblem(
            title="The hub does not answer",
            sentences=(
                "It may be starting again. Notebooks and cells go on meanwhile.",
                "This page looks again by itself, and opens when the hub is back.",
                "If that takes longer than some minutes, tell an admin of the hub.",
            ),
            is_passing=True,
        )
    return PageProblem(title="There is no such page", sentences=("What there is, the menu of the pages has.",))


class ProblemPage(web.RequestHandler):
    """Whatever answers people: an error of it is a page, too."""

    is_login = False

    def write_error(self, status_code: int, **given: Any) -> None:
        """Show what happened, and what to do or where to go on."""
        _, error, _ = given.get("exc_info", (None, None, None))
        # JupyterHub says by such an error of its own that the hub could not be asked who somebody is.
        is_fault = error is not None and not isinstance(error, web.HTTPError)
        problem = describe_problem(status_code, is_fault=is_fault, is_login=self.is_login)
        if problem.is_passing:
            self.set_status(HTTPStatus.SERVICE_UNAVAILABLE)
            self.set_header("Retry-After", str(_AGAIN_S))
        # A template has the current user, about whom the hub would be asked now, while all others wait.
        self.current_user = getattr(self, "_current_user", None)
        self.render("problem.html", problem=problem, prefix=self.settings["prefix"])
