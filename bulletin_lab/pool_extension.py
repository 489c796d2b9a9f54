"""The extension of Jupyter's server: what its page may ask, behind the server's own login and XSRF check."""

import msgspec
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.application import ExtensionApp
from tornado import web

from bulletin.errors import NotDone
from bulletin_lab.page_view import PageView, describe
from bulletin_lab.pool_link import NotLetIn, PoolLink

#: What the server's authorizer is asked about: `read` to look, `write` to cancel.
_RESOURCE = "bulletin"
_MOST_BODY, _MOST_ID = 1_000, 100
_CANCELLED = {
    "withdrawn": "The cell waits no more.",
    "interrupted": "The cell was asked to stop, as by the stop button. Cancel it again to end its process.",
    "ended": "The cell's process was ended.",
}


class CancelAsked(msgspec.Struct, frozen=True):
    """What the page sends to cancel a cell: the name of its request or lease."""

    lease: str


class _OwnHandler(APIHandler):
    auth_resource = _RESOURCE
    # A page that is open is no work: a server that nobody uses is to be found idle.
    _track_activity = False

    def initialize(self, link: PoolLink) -> None:
        self.link = link

    def answer(self, content: object) -> None:
        self.set_header("Cache-Control", "no-store")
        self.finish(msgspec.json.encode(content))


class CellsHandler(_OwnHandler):
    """What of the pool is the user's own."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with the cells as of a moment ago; `?whole=1` for those that ended or lost their notebook, too."""
        try:
            cells = await self.link.fetch(whole=self.get_query_argument("whole", "") == "1")
        except NotLetIn:
            self.answer(PageView(pool="none"))
        except NotDone as error:
            self.answer(PageView(pool="away", summary=str(error), brief="GPU pool away"))
        else:
            self.answer(PageView(pool=cells) if isinstance(cells, str) else describe(cells))


class CancelHandler(_OwnHandler):
    """Cells that are to wait or run no more."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Cancel one of the user's, and say in a sentence what that did."""
        body = self.request.body
        if len(body) > _MOST_BODY:
            raise web.HTTPError(413)
        try:
            asked = msgspec.json.decode(body, type=CancelAsked)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise web.HTTPError(400, "The body is to be a JSON object with a lease.") from None
        if len(asked.lease) > _MOST_ID:
            raise web.HTTPError(400, "This is no name of a lease.")
        try:
            cancelled = await self.link.cancel(asked.lease)
        except NotDone as error:
            self.set_status(409)
            self.answer({"sentence": str(error)})
        else:
            self.answer({"sentence": _CANCELLED[cancelled.what]})


class PoolExtension(ExtensionApp):
    """The pool in the notebook server. It asks nobody before a page asks it."""

    name = "bulletin_lab"
    extension_url = "/lab"
    load_other_extensions = True

    def initialize_handlers(self) -> None:
        """Answer under /bulletin/v1 from now on."""
        self._link = PoolLink()
        given = {"link": self._link}
        self.handlers.extend(
            [(r"/bulletin/v1/cells", CellsHandler, given), (r"/bulletin/v1/cancel", CancelHandler, given)]
        )

    async def stop_extension(self) -> None:
        """Leave the pool: the server ends."""
        self._link.close()
