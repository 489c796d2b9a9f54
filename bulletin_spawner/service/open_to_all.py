"""What the page answers whoever asks: files, what its API offers, its health, and what is nowhere."""

from http import HTTPStatus

from tornado import web

from bulletin_spawner.service.bounded_server import note_reader
from bulletin_spawner.service.page_login import PageLogin
from bulletin_spawner.service.reader_pace import TOO_OFTEN


class OpenToAll(web.RequestHandler):
    """The base of all that. No crowd there holds up those who log in, nor readers, who need these files."""

    #: Whose turns strangers wait for.
    kind = ""

    async def prepare(self) -> None:
        """Wait for a turn, among strangers or of that reader, without asking the hub who it is. Raises HTTPError."""
        reader = PageLogin.instance().recall(self)
        if not reader:
            await self.settings["strangers"][self.kind].take(self)
            return
        note_reader(self, reader)
        if not await self.settings["pace_of_files"].admit(reader, self):
            raise web.HTTPError(HTTPStatus.TOO_MANY_REQUESTS, TOO_OFTEN)
