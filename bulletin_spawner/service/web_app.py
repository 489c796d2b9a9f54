"""The service's web side: one page for people and one for programs, both behind the hub's own login."""

import logging
import os
import resource
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from jupyterhub.services.auth import HubOAuthCallbackHandler, HubOAuthenticated
from tornado import web
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.log import access_log, app_log, gen_log

import bulletin
from bulletin.errors import NoPool
from bulletin.hub_scopes import may_manage, may_read_metrics
from bulletin.wire.messages import Picture
from bulletin_spawner.service.broker_client import BrokerClient
from bulletin_spawner.service.page_login import PageLogin
from bulletin_spawner.service.pages import describe_page, hide_others

_HERE = Path(__file__).parent
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

#: So many connections at once, or half of the descriptors that the process may have, where that is less.
_MOST_CONNECTIONS = 512
#: No page takes anything but what a browser says of itself; the hub's cookies are a few kB.
_MOST_BYTES = 65_536
_BODY_S, _IDLE_S = 10.0, 60.0


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the hub put this service."""

    #: Where to listen, as "http://host:port".
    url: str
    #: The path below which the proxy sends us everything, with a slash at both ends.
    prefix: str
    #: The service's own token to the hub's API.
    api_token: str = ""


def settings_from_environment(environment: Mapping[str, str] = os.environ) -> ServiceSettings:
    """Read what the hub says in the environment of a managed service."""
    return ServiceSettings(
        url=environment["JUPYTERHUB_SERVICE_URL"],
        prefix=environment.get("JUPYTERHUB_SERVICE_PREFIX", "/"),
        api_token=environment.get("JUPYTERHUB_API_TOKEN", ""),
    )


def make_app(settings: ServiceSettings, broker: BrokerClient) -> web.Application:
    """Make the tornado application; the caller listens."""
    return web.Application(
        [
            (settings.prefix, PoolPage, {"broker": broker}),
            (settings.prefix + "api/status", StatusApi, {"broker": broker}),
            (settings.prefix + "metrics", MetricsApi, {"broker": broker}),
            (settings.prefix + "health", HealthApi, {"broker": broker}),
            (settings.prefix + "oauth_callback", LoginCallback),
            # No other path: of one with a zero byte Tornado leaves a traceback in the log.
            (settings.prefix + r"static/([a-z.]+)", _StaticFiles, {"path": _HERE / "static"}),
        ],
        cookie_secret=secrets.token_bytes(32),  # pages ask the hub again after a restart; nobody types anything
        template_path=str(_HERE / "templates"),
        log_function=log_request,
    )


def log_request(handler: web.RequestHandler) -> None:
    """Log a request without its query, where a login has its code."""
    status, request = handler.get_status(), handler.request
    level = logging.INFO if status < HTTPStatus.BAD_REQUEST else logging.WARNING
    duration_ms = 1000 * request.request_time()
    access_log.log(level, "%d %s %s (%s) %.0f ms", status, request.method, request.path, request.remote_ip, duration_ms)


class _BoundedServer(HTTPServer):
    """Has so many connections at most; of more, the oldest goes: answers take moments, and who waits says nothing.

    Where no descriptor is left, Tornado tries to accept again and again, and logs each time.
    """

    def initialize(self, *arguments: Any, most_connections: int = _MOST_CONNECTIONS, **limits: Any) -> None:
        super().initialize(*arguments, **limits)
        self._most_connections = most_connections
        #: The oldest first.
        self._streams: dict[IOStream, None] = {}

    def handle_stream(self, stream: IOStream, address: tuple[object, ...]) -> None:
        """Take in a connection."""
        self._streams[stream] = None
        while len(self._streams) > self._most_connections:
            oldest = next(iter(self._streams))
            del self._streams[oldest]
            oldest.close()
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Forget a connection that has ended."""
        self._streams.pop(server_conn.stream, None)  # type: ignore[attr-defined]  # what Tornado passes has it
        super().on_close(server_conn)


def listen(app: web.Application, port: int, host: str, most_connections: int | None = None) -> HTTPServer:
    """Listen; nobody has logged in before a request is read, so that what it may cost is little."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = _BoundedServer(
        app,
        most_connections=most_connections or min(_MOST_CONNECTIONS, descriptors // 2),
        max_body_size=_MOST_BYTES,
        max_buffer_size=4 * _MOST_BYTES,
        max_header_size=_MOST_BYTES,
        body_timeout=_BODY_S,
        idle_connection_timeout=_IDLE_S,
    )
    server.listen(port, host, reuse_port=True)  # the hub holds it
    return server


class _PoolHandler(HubOAuthenticated, web.RequestHandler):  # type: ignore[misc]  # jupyterhub has no types
    """The base of all pages: for users whom the hub lets use the pool, with the security headers."""

    hub_auth_class = PageLogin

    def initialize(self, broker: BrokerClient) -> None:
        self.broker = broker

    def set_default_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    async def fetch_picture(self) -> Picture:
        """Ask for the pool as the person who asks may see it. Raises NoPool."""
        picture = await self.broker.fetch_picture()
        return hide_others(picture, self.current_user["name"], is_manager=self.is_manager)

    @property
    def is_manager(self) -> bool:
        """Whether the person who asks may manage the pool."""
        user: dict[str, Any] = self.current_user
        return may_manage(user.get("scopes", ()), is_hub_admin=user.get("admin") is True)


class _StaticFiles(web.StaticFileHandler):
    """Script and style, with the headers of all pages but that on caching."""

    def set_extra_headers(self, path: str) -> None:
        del path
        for name, value in _HEADERS.items():
            if name != "Cache-Control":
                self.set_header(name, value)


class LoginCallback(HubOAuthCallbackHandler):  # type: ignore[misc]  # as above
    """Where the hub sends people back to after a login."""

    hub_auth_class = PageLogin

    def set_default_headers(self) -> None:
        """Send the headers of all pages."""
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    def log_exception(self, _: object, error: BaseException | None, *_trace: object) -> None:
        """Log a login that failed, as `log_request` does: without the query."""
        if isinstance(error, web.HTTPError):
            gen_log.warning("%s %s: %s", self.request.method, self.request.path, error)
        else:
            app_log.error("%s failed", self.request.path, exc_info=error)


class PoolPage(_PoolHandler):
    """The pool's page, for people."""

    @web.authenticated
    async def get(self) -> None:
        """Render the page; without a pool, what to do about it."""
        picture, problem = None, None
        try:
            picture = await self.fetch_picture()
        except NoPool as error:
            problem = f"{error.problem} {error.remedy}"
            self.set_status(HTTPStatus.SERVICE_UNAVAILABLE)
        self.render(
            "pool.html",
            page=describe_page(picture, for_admins=self.is_manager) if picture is not None else None,
            problem=problem,
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


class HealthApi(web.RequestHandler):
    """Whether cells can run, for whatever watches services: anybody may ask, and reads nothing but that."""

    def initialize(self, broker: BrokerClient) -> None:
        """Take who asks the pool; however often this is asked, that one asks twice a second at most."""
        self._broker = broker

    def set_default_headers(self) -> None:
        """Send the headers of all pages."""
        for name, value in _HEADERS.items():
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
