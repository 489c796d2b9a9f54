"""One call of the REST API: who asks, what is asked within its type, and the answer as JSON."""

import logging
from http import HTTPStatus
from typing import Any

import msgspec
from jupyterhub.services.auth import HubOAuthenticated
from tornado import web
from tornado.http1connection import HTTP1Connection

from bulletin.errors import NoPool
from bulletin_spawner.service.api_endpoints import ApiCall, Endpoint
from bulletin_spawner.service.api_problems import ApiProblem, ApiRefused
from bulletin_spawner.service.bounded_server import note_reader
from bulletin_spawner.service.open_to_all import OpenToAll
from bulletin_spawner.service.page_login import PageLogin
from bulletin_spawner.service.pool_source import PoolSource
from bulletin_spawner.service.reader_pace import TOO_OFTEN, ReaderPace
from bulletin_spawner.service.security_headers import HEADERS
from bulletin_spawner.service.user_groups import UserGroups
from bulletin_spawner.service.viewer import INCLUDED, Viewer, viewer_of, with_named

log = logging.getLogger("bulletin.service")

#: What a body may have, and how much more is read and dropped: who is cut off while they send hears no reason.
_MOST_BYTES, _MOST_DROPPED = 65_536, 16 * 2**20
_LOG_IN = "Log in on the hub, or send a token that may use the pool."
_NO_HUB = "The hub does not say who you are: it may be starting again. Look again in a moment."


class ApiAnswering(HubOAuthenticated, web.RequestHandler):  # type: ignore[misc]  # jupyterhub has no types
    """The base of all that answers JSON: problems are JSON too."""

    hub_auth_class = PageLogin

    def set_default_headers(self) -> None:
        """Send the headers of all pages."""
        for name, value in HEADERS.items():
            self.set_header(name, value)
        self.set_header("Content-Type", "application/json")

    def write_error(self, status_code: int, **info: Any) -> None:
        """Say in JSON what went wrong, and nothing of how."""
        error = info.get("exc_info", (None, None, None))[1]
        if status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            self.set_header("Connection", "close")  # its body was not read: a proxy must not use the connection again
        known = HTTPStatus(status_code).phrase if status_code in HTTPStatus._value2member_map_ else "Error"
        code = "not-allowed" if status_code == HTTPStatus.FORBIDDEN else known.lower().replace(" ", "-")
        said = error.log_message if isinstance(error, web.HTTPError) and error.log_message else ""
        sentence = f"{said or known}." if status_code < HTTPStatus.INTERNAL_SERVER_ERROR else f"{known}. See the log."
        self.finish(msgspec.json.encode(ApiProblem(code=code, sentence=sentence.replace("..", "."))))


@web.stream_request_body
class ApiHandler(ApiAnswering):
    """All endpoints of one path. Of a body, no more is kept than may be."""

    def initialize(self, endpoints: dict[str, Endpoint], pool: PoolSource, groups: UserGroups) -> None:
        """Take the endpoints by their methods."""
        self._endpoints, self._pool, self._groups = endpoints, pool, groups
        self._body, self._is_too_large = bytearray(), False

    def prepare(self) -> None:
        """Let a body that is too large come to its end."""
        connection = self.request.connection
        if isinstance(connection, HTTP1Connection):
            connection.set_max_body_size(_MOST_DROPPED)

    def data_received(self, chunk: bytes) -> None:
        """Take in a part of the body."""
        self._is_too_large |= len(self._body) + len(chunk) > _MOST_BYTES
        if not self._is_too_large:
            self._body += chunk

    async def get(self, **named: str) -> None:
        """Answer GET."""
        await self._answer("GET", named)

    async def post(self, **named: str) -> None:
        """Answer POST."""
        await self._answer("POST", named)

    async def put(self, **named: str) -> None:
        """Answer PUT."""
        await self._answer("PUT", named)

    async def delete(self, **named: str) -> None:
        """Answer DELETE."""
        await self._answer("DELETE", named)

    async def _answer(self, method: str, named: dict[str, str]) -> None:
        try:
            answer = await self._ask(method, named)
        except ApiRefused as problem:
            self._refuse(problem.status, problem.problem)
        except NoPool as error:
            sentence = f"{error.problem} {error.remedy}"
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, ApiProblem(code=error.code, sentence=sentence))
        else:
            self.finish(msgspec.json.encode(answer))

    async def _ask(self, method: str, named: dict[str, str]) -> Any:
        endpoint = self._endpoints.get(method)
        viewer = await self._viewer()
        if endpoint is None:
            self.set_header("Allow", ", ".join(sorted(self._endpoints)))
            raise ApiRefused(HTTPStatus.METHOD_NOT_ALLOWED, "no-such-method", f"This path has no {method}.")
        if viewer.role not in INCLUDED[endpoint.role]:
            sentence = f"This is for {'leads of projects and ' if endpoint.role == 'lead' else ''}admins of the pool."
            raise ApiRefused(HTTPStatus.FORBIDDEN, "not-allowed", sentence)
        asked = self._read_parameters(endpoint, named)
        body = self._read_body(endpoint)
        return await endpoint.run(ApiCall(viewer, self._pool, asked, body))

    async def _viewer(self) -> Viewer:
        try:
            await self.hub_auth.get_user(self, sync=False)  # `current_user` then has it: it would hold everybody up
        except web.HTTPError as error:  # by which it says that the hub could not be asked
            raise ApiRefused(HTTPStatus.SERVICE_UNAVAILABLE, "no-hub", _NO_HUB) from error
        model = self.current_user
        if model is None:
            await self.settings["strangers"]["login"].take(self)
            is_session_over = not self.hub_auth.get_session_id(self)
            problem = ApiProblem(
                code="not-allowed", sentence=_LOG_IN, is_logged_out=True, is_session_over=is_session_over
            )
            raise ApiRefused.with_details(HTTPStatus.FORBIDDEN, problem)
        note_reader(self, model["name"])
        pace: ReaderPace = self.settings["pace"]
        if not await pace.admit(model["name"], self):
            raise ApiRefused(HTTPStatus.TOO_MANY_REQUESTS, "too-fast", f"{TOO_OFTEN}.")
        viewer = viewer_of(model, await self._groups.fetch(model))
        return with_named(viewer, await self._pool.fetch_pool()) if viewer.may_be_named_lead else viewer

    def _read_parameters(self, endpoint: Endpoint, named: dict[str, str]) -> Any:
        try:
            query = {name: self.get_query_argument(name) for name in self.request.query_arguments}
            return msgspec.convert({**query, **named}, endpoint.asks, strict=False)
        except (msgspec.ValidationError, web.HTTPError, UnicodeError) as error:
            raise ApiRefused(HTTPStatus.BAD_REQUEST, "bad-request", _sentence(error)) from None

    def _read_body(self, endpoint: Endpoint) -> Any:
        if self._is_too_large:
            sentence = f"The body has more than {_MOST_BYTES} bytes."
            raise ApiRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", sentence)
        if endpoint.body is None:
            return None
        try:
            return msgspec.json.decode(bytes(self._body) or b"{}", type=endpoint.body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ApiRefused(HTTPStatus.BAD_REQUEST, "bad-request", _sentence(error)) from None

    def _refuse(self, status: HTTPStatus, problem: ApiProblem) -> None:
        self.set_status(status)
        self.finish(msgspec.json.encode(problem))


class NoSuchPath(OpenToAll, ApiAnswering):
    """Whatever else is below api/."""

    kind = "nothing"

    async def prepare(self) -> None:
        """Refuse every method."""
        await super().prepare()
        self.set_status(HTTPStatus.NOT_FOUND)
        sentence = "There is nothing of that name. What there is: api/v1/openapi.json"
        self.finish(msgspec.json.encode(ApiProblem(code="not-found", sentence=sentence)))


class ApiDocument(OpenToAll, ApiAnswering):
    """What the API offers. It says nothing of the pool: anybody may read it."""

    kind = "files"

    def initialize(self, document: bytes) -> None:
        """Take the document as JSON."""
        self._document = document

    def get(self) -> None:
        """Answer with it."""
        self.finish(self._document)


def _sentence(error: Exception) -> str:
    said = str(error) if isinstance(error, msgspec.MsgspecError) else "it is not text in UTF-8"
    return f"What was asked cannot be read: {said[:200]}."
