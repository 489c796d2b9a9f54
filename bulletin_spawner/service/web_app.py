"""The service's web side: one page for people and one for programs, both behind the hub's own login."""

import json
import logging
import os
import re
import resource
import secrets
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from jupyterhub.services.auth import HubOAuthCallbackHandler, HubOAuthenticated
from tornado import web
from tornado.httpserver import HTTPServer
from tornado.log import access_log, app_log, gen_log

import bulletin
from bulletin.errors import NoPool
from bulletin.hub_scopes import may_manage, may_read_metrics
from bulletin.picture_sight import hide_others
from bulletin.wire.messages import Picture
from bulletin_spawner.service.all_endpoints import ALL_ENDPOINTS
from bulletin_spawner.service.api_endpoints import Endpoint
from bulletin_spawner.service.api_handler import ApiDocument, ApiHandler, NoSuchPath
from bulletin_spawner.service.bounded_server import BoundedServer, note_reader
from bulletin_spawner.service.broker_client import BrokerClient
from bulletin_spawner.service.open_to_all import OpenToAll
from bulletin_spawner.service.openapi_document import describe_api
from bulletin_spawner.service.page_log import visit_kind
from bulletin_spawner.service.page_login import PageLogin
from bulletin_spawner.service.page_problems import ProblemPage
from bulletin_spawner.service.page_shell import PAGES, BuiltFiles, ShellPage, find_built
from bulletin_spawner.service.pages import describe_page
from bulletin_spawner.service.pool_source import PoolSource
from bulletin_spawner.service.reader_pace import TOO_OFTEN, ReaderPace
from bulletin_spawner.service.security_headers import HEADERS
from bulletin_spawner.service.stranger_turns import make_turns
from bulletin_spawner.service.user_groups import UserGroups
from bulletin_spawner.service.viewer import INCLUDED, viewer_of, with_named

_HERE = Path(__file__).parent
#: So many connections at once, or half of the descriptors that the process may have, where that is less.
_MOST_CONNECTIONS = 512
#: No page takes anything but what a browser says of itself; the hub's cookies are a few kB.
_MOST_BYTES = 65_536
#: As much as the hub's own proxy lets through; what is longer takes long to parse, whoever sends it.
_MOST_OF_HEAD = 16_384
_BODY_S, _IDLE_S = 10.0, 60.0


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the hub put this service."""

    #: Where to listen, as "http://host:port".
    url: str
    #: The path below which the proxy sends us everything, with a slash at both ends.
    prefix: str
    #: The service's own token to the hub's API, and where that is.
    api_token: str = ""
    hub_api: str = ""


def settings_from_environment(environment: Mapping[str, str] = os.environ) -> ServiceSettings:
    """Read what the hub says in the environment of a managed service."""
    return ServiceSettings(
        url=environment["JUPYTERHUB_SERVICE_URL"],
        prefix=environment.get("JUPYTERHUB_SERVICE_PREFIX", "/"),
        api_token=environment.get("JUPYTERHUB_API_TOKEN", ""),
        hub_api=environment.get("JUPYTERHUB_API_URL", ""),
    )


def make_app(
    settings: ServiceSettings,
    broker: BrokerClient,
    finder: BrokerClient | None = None,
    sums: BrokerClient | None = None,
    history: BrokerClient | None = None,
    endpoints: Sequence[Endpoint] = ALL_ENDPOINTS,
) -> web.Application:
    """Make the tornado application; the caller listens.

    `finder` is a link of its own for what nodes are asked, `history` one for what projects used, which takes the
    ledger seconds, and `sums` one for what takes it minutes.
    """
    built = find_built(_HERE / "static")
    pool = PoolSource(broker, finder or broker, sums or broker, history or broker)
    return web.Application(
        [
            *(
                (settings.prefix + one.path, PoolPage, {"broker": broker, "pool": pool, "shown": one, "built": built})
                for one in PAGES
            ),
            (settings.prefix + "api/status", StatusApi, {"broker": broker}),
            (settings.prefix + "metrics", MetricsApi, {"broker": broker}),
            (settings.prefix + "health", HealthApi, {"broker": broker}),
            (settings.prefix + "oauth_callback", LoginCallback),
            *_api_routes(settings, pool, endpoints),
            # No other path: of one with a zero byte Tornado leaves a traceback in the log.
            (settings.prefix + r"static/([a-z.]+)", _StaticFiles, {"path": _HERE / "static"}),
            (settings.prefix + r"static/built/([a-z.]+)", _StaticFiles, {"path": _HERE / "static" / "built"}),
        ],
        cookie_secret=secrets.token_bytes(32),  # pages ask the hub again after a restart; nobody types anything
        template_path=str(_HERE / "templates"),
        prefix=settings.prefix,
        pace=ReaderPace(),
        pace_of_files=ReaderPace(),
        strangers=make_turns(),
        default_handler_class=_NoSuchPage,
        log_function=log_request,
    )


def _api_routes(
    settings: ServiceSettings, pool: PoolSource, endpoints: Sequence[Endpoint]
) -> Iterator[tuple[str, type[web.RequestHandler], dict[str, object]] | tuple[str, type[web.RequestHandler]]]:
    """Make the routes of the REST API: one for each path, with its methods."""
    shared = {"pool": pool, "groups": UserGroups(settings.hub_api, settings.api_token)}
    base = settings.prefix + "api/v1"
    by_path: dict[str, dict[str, Endpoint]] = {}
    for one in endpoints:
        by_path.setdefault(one.path, {})[one.method] = one
    for path, methods in by_path.items():
        pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path)
        yield base + pattern, ApiHandler, {"endpoints": methods, **shared}
    document = json.dumps(describe_api(endpoints, base)).encode()
    yield base + "/openapi.json", ApiDocument, {"document": document}
    yield settings.prefix + r"api/.*", NoSuchPath


def log_request(handler: web.RequestHandler) -> None:
    """Log a request without its query, where a login has its code."""
    status, request = handler.get_status(), handler.request
    level = logging.INFO if status < HTTPStatus.BAD_REQUEST else logging.WARNING
    duration_ms = 1000 * request.request_time()
    user = getattr(handler, "_current_user", None)  # where it is known: the property would ask the hub, and wait
    access_log.log(
        level,
        "%d %s %s (%s) %.0f ms",
        status,
        request.method,
        request.path,
        request.remote_ip,
        duration_ms,
        extra={"visit": visit_kind(request.method or "", user["name"] if user else "")},
    )


def listen(app: web.Application, port: int, host: str, most_connections: int | None = None) -> HTTPServer:
    """Listen; nobody has logged in before a request is read, so that what it may cost is little."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = BoundedServer(
        app,
        most_connections=most_connections or min(_MOST_CONNECTIONS, descriptors // 2),
        max_body_size=_MOST_BYTES,
        max_buffer_size=4 * _MOST_BYTES,
        max_header_size=_MOST_OF_HEAD,
        body_timeout=_BODY_S,
        idle_connection_timeout=_IDLE_S,
    )
    app.settings["server"] = server
    server.listen(port, host, reuse_port=True)  # the hub holds it
    return server


async def _take_turn(handler: Any) -> None:
    """Ask the hub who it is, and wait for the turn of that reader, or of strangers. Raises HTTPError."""
    await handler.hub_auth.get_user(handler, sync=False)  # `current_user` then has it: it would hold everybody up
    if handler.current_user is None:
        await handler.settings["strangers"]["login"].take(handler)
        return
    reader: str = handler.current_user["name"]
    note_reader(handler, reader)
    if not await handler.settings["pace"].admit(reader, handler):
        raise web.HTTPError(HTTPStatus.TOO_MANY_REQUESTS, TOO_OFTEN)


class _PoolHandler(HubOAuthenticated, web.RequestHandler):  # type: ignore[misc]  # jupyterhub has no types
    """The base of all pages: for users whom the hub lets use the pool, with the security headers."""

    hub_auth_class = PageLogin

    def initialize(self, broker: BrokerClient) -> None:
        self.broker = broker

    async def prepare(self) -> None:
        await _take_turn(self)

    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)

    async def fetch_picture(self) -> Picture:
        """Ask for the pool as the person who asks may see it. Raises NoPool."""
        picture = await self.broker.fetch_picture()
        if self.is_manager:
            return picture
        picture = hide_others(picture, self.current_user["name"])
        return msgspec.structs.replace(picture, project=None)  # the pool's own user's, who asked

    @property
    def is_manager(self) -> bool:
        """Whether the person who asks may manage the pool."""
        user: dict[str, Any] = self.current_user
        return may_manage(user.get("scopes", ()), is_hub_admin=user.get("admin") is True)


class _NoSuchPage(ProblemPage, OpenToAll):
    """Whatever else is asked for."""

    kind = "nothing"

    def set_default_headers(self) -> None:
        """Send the headers of all pages."""
        for name, value in HEADERS.items():
            self.set_header(name, value)

    async def prepare(self) -> None:
        """Refuse every method."""
        await super().prepare()
        raise web.HTTPError(HTTPStatus.NOT_FOUND)


class _StaticFiles(OpenToAll, web.StaticFileHandler):
    """Script and style, with the headers of all pages but that on caching."""

    kind = "files"

    def set_default_headers(self) -> None:
        """Send them with refusals, too."""
        for name, value in HEADERS.items():
            if name != "Cache-Control":
                self.set_header(name, value)


class LoginCallback(ProblemPage, HubOAuthCallbackHandler):  # type: ignore[misc]  # as above
    """Where the hub sends people back to after a login."""

    hub_auth_class, is_login = PageLogin, True

    async def prepare(self) -> None:
        """Ask the hub who it is, by whatever came along."""
        await _take_turn(self)

    def set_default_headers(self) -> None:
        """Send the headers of all pages."""
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def log_exception(self, _: object, error: BaseException | None, *_trace: object) -> None:
        """Log a login that failed, as `log_request` does: without the query."""
        if isinstance(error, web.HTTPError):
            gen_log.warning("%s %s: %s", self.request.method, self.request.path, error)
        else:
            app_log.error("%s failed", self.request.path, exc_info=error)


class PoolPage(ProblemPage, _PoolHandler):
    """A page for people: its script fills it, and *Now* is there without one, too, as tables."""

    def initialize(
        self,
        broker: BrokerClient,
        pool: PoolSource | None = None,
        shown: ShellPage | None = None,
        built: BuiltFiles | None = None,
    ) -> None:
        """Take which page it is, and what npm has built, if it has."""
        super().initialize(broker)
        self._pool, self._shown, self._built = pool, shown or PAGES[0], built

    @web.authenticated
    async def get(self) -> None:
        """Render the page; without a pool, what to do about it."""
        viewer = viewer_of(self.current_user, self.current_user.get("groups", ()))
        picture, problem = None, None
        try:
            picture = await self.fetch_picture() if self._shown.name == "now" else None
            if viewer.may_be_named_lead and self._pool is not None:
                viewer = with_named(viewer, await self._pool.fetch_pool())
        except NoPool as error:
            problem = f"{error.problem} {error.remedy}"
            self.set_status(HTTPStatus.SERVICE_UNAVAILABLE)
        self.render(
            "pool.html",
            page=describe_page(picture, for_admins=self.is_manager) if picture is not None else None,
            problem=problem,
            shown=self._shown,
            built=self._built,
            pages=[one for one in PAGES if viewer.role in INCLUDED[one.role]],
            role=viewer.role,
            user=self.current_user["name"],
            hub=self.hub_auth.hub_host + self.hub_auth.hub_prefix,
            xsrf=self.xsrf_token,
            version=bulletin.__version__,
        )


class MetricsApi(_PoolHandler):
    """What is counted of the pool, for Prometheus: for tokens with the hub's scope `read:metrics`, and managers."""

    async def get(self) -> None:
        """Answer in Prometheus' text format. Names of users are not in it; those of projects are."""
        self.set_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        user: dict[str, Any] = self.current_user or {}
        if not may_read_metrics(user.get("scopes", ()), is_hub_admin=user.get("admin") is True):
            self.set_status(HTTPStatus.FORBIDDEN)
            self.finish(
                "Send a token of the hub that has the scopes read:metrics and access:services!service=bulletin.\n"
            )
            return
        try:
            self.finish(await self.broker.fetch_metrics())
        except NoPool as error:
            self.set_status(HTTPStatus.SERVICE_UNAVAILABLE)
            self.finish(f"{error.problem} {error.remedy}\n")


class HealthApi(OpenToAll):
    """Whether cells can run, for whatever watches services: anybody may ask, and reads nothing but that."""

    kind = "health"

    def initialize(self, broker: BrokerClient) -> None:
        """Take who asks the pool; however often this is asked, that one asks twice a second at most."""
        self._broker = broker

    def set_default_headers(self) -> None:
        """Send the headers of all pages."""
        for name, value in HEADERS.items():
            self.set_header(name, value)

    async def get(self) -> None:
        """Answer 200 where the pool answers and has a slot, else 503; with a word for which it is."""
        try:
            picture = await self._broker.fetch_picture()
            word = "ok" if any(slot.state != "drained" for slot in picture.slots) else "no-slots"
        except NoPool:
            word = "no-pool"
        self.set_status(HTTPStatus.OK if word == "ok" else HTTPStatus.SERVICE_UNAVAILABLE)
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode({"status": word}))


class StatusApi(_PoolHandler):
    """The pool's status, for programs: the wire's Picture as JSON, with the same names left out as on the page."""

    async def get(self) -> None:
        """Answer whoever has the page's cookie, or a hub token in the Authorization header."""
        self.set_header("Content-Type", "application/json")
        if self.current_user is None:
            self._refuse(
                HTTPStatus.FORBIDDEN, "not-allowed", "Log in on the hub, or send a token that may use the pool."
            )
            return
        try:
            self.finish(msgspec.json.encode(await self.fetch_picture()))
        except NoPool as error:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, error.code, f"{error.problem} {error.remedy}")

    def _refuse(self, status: HTTPStatus, code: str, sentence: str) -> None:
        self.set_status(status)
        self.finish(msgspec.json.encode({"code": code, "sentence": sentence}))
