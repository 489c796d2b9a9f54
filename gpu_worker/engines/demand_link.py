"""An engine's link to the broker of its pool: news go there, and who waits for room comes back."""

import asyncio

import structlog
import zmq
import zmq.asyncio

from bulletin import __version__
from bulletin.errors import MalformedMessage
from bulletin.ids import KernelId
from bulletin.wire import channel, clients, frames, keys, messages as wire
from bulletin.wire.messages.engine_broker import Demand, EngineNews

_ANSWER_S = 5.0


class DemandLink:
    """Asks the broker whose file this is, as its owner."""

    def __init__(self, files: keys.PoolFile) -> None:
        self._files, self._name = files, KernelId(f"engine-{keys.make_secret()}")
        self._context = zmq.asyncio.Context()
        self._socket: zmq.asyncio.Socket = channel.connect(
            self._context.socket(zmq.DEALER), files.kernel_address, files.keys.public, channel.CONTROL_LIMIT
        )
        self._unpacker: frames.Unpacker[clients.ToClient] = frames.Unpacker(clients.ToClient)
        self._is_welcome = False
        self._log = structlog.get_logger("engine")

    async def ask(self, news: EngineNews) -> Demand | None:
        """Tell the news and ask; None where the broker does not answer, or not yet: it is asked again."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                if not self._is_welcome:
                    await self._say_hello()
                await self._send(news)
                while True:
                    message, _ = self._unpacker.unpack(await self._socket.recv_multipart())
                    match message:
                        case Demand():
                            return message
                        case wire.Refusal() | wire.Unknown() | wire.Malformed():
                            self._is_welcome = False
                            if not isinstance(message, wire.Unknown):
                                self._log.warning("the broker does not hear the engine", answer=str(message))
                            return None
                        case _:
                            pass  # what kernels are told
        except TimeoutError:
            self._is_welcome = False
            self._log.warning("the broker does not answer the engine; it is asked again")
        except MalformedMessage as error:
            self._log.warning("the broker sent junk", problem=error.problem)
        return None

    async def _say_hello(self) -> None:
        hello = wire.Hello(protocol=wire.PROTOCOL, version=__version__, token=self._files.token, kernel=self._name)
        await self._send(hello)
        self._is_welcome = True

    async def _send(self, message: wire.Hello | EngineNews) -> None:
        await channel.send_soon(self._socket, self._files.kernel_address, frames.pack(message))

    def close(self) -> None:
        """End the link."""
        self._context.destroy(linger=0)
