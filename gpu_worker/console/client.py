"""One question to a broker, and its answer. Who asks is known by a connection file, or by the hub's token."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import zmq
import zmq.asyncio

from bulletin import __version__
from bulletin.errors import BadConfig, MalformedMessage, NotDone
from bulletin.ids import KernelId
from bulletin.wire import channel, clients, console, frames, keys, messages as wire, page_requests
from bulletin.wire.messages.engine_broker import Demand
from bulletin.wire.messages.own_cells import OwnReport

_ANSWER_S = 10.0

#: Where the pool of a host has its folder, by the docs and by `bulletin init` of root.
SYSTEM_FOLDER = Path("/var/lib/bulletin")


def find_pool(
    folder: Path, *, is_named: bool, environ: Mapping[str, str] = os.environ, system_folder: Path = SYSTEM_FOLDER
) -> keys.Connection:
    """Find the pool in a folder. One that nobody named comes after the hub's and the environment's file.

    Last is the folder where `bulletin init` has a hub's pool as root.

    Raises
    ------
    NotDone
        If there is none.
    BadConfig
        If the connection file cannot be used.
    """
    file = environ.get("BULLETIN_CONNECTION_FILE", "")
    if not is_named and environ.get("BULLETIN_ADDRESS"):
        return keys.Connection(
            address=environ["BULLETIN_ADDRESS"],
            public_key=environ.get("BULLETIN_PUBLIC_KEY", ""),
            token=environ.get("JUPYTERHUB_API_TOKEN", ""),
        )
    path = Path(file).expanduser() if file and not is_named else folder / "connection.json"
    if not is_named and not file and not path.exists() and system_folder.is_dir():
        path = system_folder / "connection.json"
    try:
        return keys.read_private(path, keys.Connection)
    except FileNotFoundError:
        raise NotDone(f"No pool runs in {path.parent}. Start one with: bulletin pool --folder ...") from None
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}. Only the pool's own user may.") from None


def ask(connection: keys.Connection, question: console.FromConsole | wire.Look) -> console.Report | wire.Picture:
    """Ask once, and wait for the answer. What it changes is changed once, or not at all.

    Raises
    ------
    NotDone
        With the broker's own sentence, where it says no; or because it does not answer.
    """
    return asyncio.run(_ask(connection, question))


async def _ask(connection: keys.Connection, question: console.FromConsole | wire.Look) -> console.Report | wire.Picture:
    context = zmq.asyncio.Context()
    socket: zmq.asyncio.Socket = channel.connect(
        context.socket(zmq.DEALER), connection.address, connection.public_key, channel.CONTROL_LIMIT
    )
    unpacker: frames.Unpacker[clients.ToClient] = frames.Unpacker(clients.ToClient)
    hello = wire.Hello(
        protocol=wire.PROTOCOL,
        version=__version__,
        token=connection.token,
        kernel=KernelId(keys.make_secret()),
    )
    is_asked = False
    try:
        async with asyncio.timeout(_ANSWER_S):
            await socket.send_multipart(frames.pack(hello))
            while True:
                message, _ = unpacker.unpack(await socket.recv_multipart())
                match message:
                    case wire.Welcome() if not is_asked:
                        is_asked = True
                        await socket.send_multipart(frames.pack(question))
                    case wire.Refusal(sentence=sentence):
                        raise NotDone(sentence)
                    case wire.Malformed(problem=problem):
                        raise NotDone(f"The pool's broker does not understand this command: {problem}.")
                    case wire.Unknown():
                        raise NotDone("The pool's broker was restarted in this moment. Ask again.")
                    case (
                        wire.Welcome()
                        | wire.Queued()
                        | wire.Granted()
                        | wire.LeaseCost()
                        | wire.NodeMoved()
                        | wire.Revoked()
                        | wire.Found()
                        | wire.Pong()
                        | Demand()
                        | page_requests.PoolReport()
                        | page_requests.PastCells()
                        | page_requests.UseReport()
                        | page_requests.UsageTable()
                        | OwnReport()
                    ):
                        pass  # not what was asked
                    case _:
                        return message
    except TimeoutError:
        raise NotDone("The pool's broker does not answer. See its log.") from None
    except MalformedMessage as error:
        raise NotDone(f"The pool's broker answers what this command does not understand: {error.problem}.") from None
    finally:
        context.destroy(linger=0)
