"""The hub's `bulletin` service: keeps the pool running, and shows it on a page.

    python -m bulletin_spawner.service --folder FOLDER [--no-pool | -- OPTIONS OF `bulletin pool`]

The hub starts it with its address and token in the environment, which the pool inherits. A service that a killed hub
left behind is ended by the next one; without a pool it ends with its hub.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

from bulletin.errors import BadConfig
from bulletin.wire.keys import make_folder
from bulletin_spawner.service import page_log
from bulletin_spawner.service.broker_client import HISTORY_S, SUMS_S, BrokerClient
from bulletin_spawner.service.pool_process import PoolProcess
from bulletin_spawner.service.single_instance import take_over
from bulletin_spawner.service.web_app import listen, make_app, settings_from_environment

log = logging.getLogger("bulletin.service")

#: How long the pages wait for the pool's first start: servers that start then are told where it is.
_FIRST_START_S = 10.0
#: How long an older page may take to end.
_ALONE_S = 5.0


def main() -> None:
    """Run the service until SIGINT or SIGTERM. What it cannot work with is a sentence in the hub's log."""
    try:
        _run()
    except BadConfig as error:
        sys.exit(f"bulletin: {error}")


def _run() -> None:
    parser = argparse.ArgumentParser(prog="python -m bulletin_spawner.service", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--no-pool", action="store_true")
    parser.add_argument("pool_args", nargs="*", metavar="OPTION")
    options = parser.parse_args()
    page_log.configure()
    if options.no_pool:  # the folder is the pool's, who may be another user
        asyncio.run(_serve(options.folder, None))
        return
    make_folder(options.folder)
    command = [sys.executable, "-P", "-m", "gpu_worker.cli", "pool", "--exit-with-stdin"]
    command += ["--folder", str(options.folder), *options.pool_args]
    with take_over(options.folder / "service.pid"):
        asyncio.run(_serve(options.folder, command))


async def _serve(folder: Path, command: list[str] | None) -> None:
    connection_file = folder / "connection.json"
    settings = settings_from_environment()
    with (
        closing(BrokerClient(folder, settings.api_token)) as broker,
        closing(BrokerClient(folder, settings.api_token)) as finder,
        closing(BrokerClient(folder, settings.api_token, SUMS_S)) as sums,
        closing(BrokerClient(folder, settings.api_token, HISTORY_S)) as history,
        _stop_signals(ends_with_parent=command is None) as stop,
    ):
        async with PoolProcess(command) if command is not None else nullcontext():
            if command is not None:
                await _wait_for_file(connection_file, stop)
            address = urlsplit(settings.url)
            host, port = address.hostname or "127.0.0.1", address.port or 80
            await _wait_until_alone(host, port)
            server = listen(make_app(settings, broker, finder, sums, history), port, host)
            log.info("serving %s", settings.prefix)
            await stop.wait()
            server.stop()


@contextmanager
def _stop_signals(*, ends_with_parent: bool) -> Iterator[asyncio.Event]:
    """Make an event that SIGINT and SIGTERM set, and perhaps the end of the process that has started this one."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if ends_with_parent:
        loop.add_reader(os.pidfd_open(os.getppid()), stop.set)
    yield stop


async def _wait_for_file(path: Path, stop: asyncio.Event) -> None:
    """Wait for a file, but not for long: pages without a pool are better than no pages."""
    deadline = asyncio.get_running_loop().time() + _FIRST_START_S
    while not (path.exists() or stop.is_set()):  # noqa: ASYNC240  # a stat of a local folder
        if asyncio.get_running_loop().time() > deadline:
            log.warning("the pool is not up after %.0f s; serving pages without it", _FIRST_START_S)
            return
        await asyncio.sleep(0.05)


async def _wait_until_alone(host: str, port: int) -> None:
    """Wait until nobody listens there: an older page may be ending.

    Raises
    ------
    BadConfig
        If somebody goes on. Who shares a port gets a part of what comes.
    """
    deadline = asyncio.get_running_loop().time() + _ALONE_S
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except ConnectionRefusedError:
            return
        writer.close()
        if asyncio.get_running_loop().time() > deadline:
            raise BadConfig(
                f"Another program of this Unix user listens on port {port} of {host}, perhaps the page of another hub. "
                "Give one of them another port: configure(c, port=...)."
            )
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    main()
