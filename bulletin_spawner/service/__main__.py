"""The hub's `bulletin` service: keeps the pool running, and shows it on a page.

    python -m bulletin_spawner.service --folder FOLDER [--no-pool | -- OPTIONS OF `bulletin pool`]

The hub starts it with its address and token in the environment, which the pool inherits. A service that a killed hub
left behind is ended by the next one.
"""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

from bulletin_spawner.service.broker_client import BrokerClient
from bulletin_spawner.service.pool_process import PoolProcess
from bulletin_spawner.service.single_instance import take_over
from bulletin_spawner.service.web_app import listen, make_app, settings_from_environment

log = logging.getLogger("bulletin.service")

#: How long the pages wait for the pool's first start: servers that start then are told where it is.
_FIRST_START_S = 10.0


def main() -> None:
    """Run the service until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m bulletin_spawner.service", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--no-pool", action="store_true")
    parser.add_argument("pool_args", nargs="*", metavar="OPTION")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="[%(levelname).1s %(asctime)s %(name)s] %(message)s")
    options.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "gpu_worker.cli", "pool", "--folder", str(options.folder), "--exit-with-stdin"]
    with take_over(options.folder / "service.pid"):
        asyncio.run(_serve(options.folder, None if options.no_pool else [*command, *options.pool_args]))


async def _serve(folder: Path, command: list[str] | None) -> None:
    connection_file = folder / "connection.json"
    settings = settings_from_environment()
    with closing(BrokerClient(connection_file)) as broker, _stop_signals() as stop:
        async with PoolProcess(command) if command is not None else nullcontext():
            if command is not None:
                await _wait_for_file(connection_file, stop)
            address = urlsplit(settings.url)
            server = listen(make_app(settings, broker), address.port or 80, address.hostname or "127.0.0.1")
            log.info("serving %s", settings.prefix)
            await stop.wait()
            server.stop()


@contextmanager
def _stop_signals() -> Iterator[asyncio.Event]:
    """Make an event that SIGINT and SIGTERM set."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    yield stop


async def _wait_for_file(path: Path, stop: asyncio.Event) -> None:
    """Wait for a file, but not for long: pages without a pool are better than no pages."""
    deadline = asyncio.get_running_loop().time() + _FIRST_START_S
    while not (path.exists() or stop.is_set()):  # noqa: ASYNC240  # a stat of a local folder
        if asyncio.get_running_loop().time() > deadline:
            log.warning("the pool is not up after %.0f s; serving pages without it", _FIRST_START_S)
            return
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    main()
