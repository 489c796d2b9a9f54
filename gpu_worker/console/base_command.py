"""What every command shares: settings, a configuration file, an exit status, clean words for bad ones."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from traitlets import Bool, Int, Unicode
from traitlets.config import Application, Configurable, catch_config_error

from bulletin import __version__
from bulletin.errors import BadConfig
from gpu_worker.config import Pool, PoolSettings
from gpu_worker.descriptor_limit import raise_descriptor_limit
from gpu_worker.engine_settings import CommandAgents, Scaling, SlurmAgents
from gpu_worker.setting_owners import OF_AGENT, Process, require_obeyed
from gpu_worker.unknown_settings import require_known, require_typed

#: An agent that an engine started leaves when it has heard no broker for so long: nobody else would end it.
_ALONE_S = 600.0


class Command(Application):
    """The base of all commands of a pool: reads its settings from the command line and a configuration file."""

    version = __version__
    raise_config_file_errors = True
    #: The exit status, set by `start`.
    status = 0
    classes = [Pool, Scaling, SlurmAgents, CommandAgents]
    config_file = Unicode("", help="A configuration file in Python, as Jupyter's. Example: bulletin_config.py").tag(
        config=True
    )
    exit_with_stdin = Bool(False, help="End when standard input ends: whoever started this is gone.").tag(config=True)
    root_helper = Int(
        None, allow_none=True, help="Of the agent's own making: the pipe to the part of it that is root."
    ).tag(config=True)
    #: The words that it was given, for processes that get the same ones.
    given: tuple[str, ...] = ()
    aliases = {
        "folder": "Pool.folder",
        "host": "Pool.host",
        "slots": "Pool.slots",
        "device": "Pool.device",
        "keep": "Pool.keep",
        "isolation": "Pool.isolation",
        "engine": "Pool.engine",
        "idle-exit": "Pool.idle_exit",
        "database": "Pool.database",
        "config": "Command.config_file",
    }
    flags = {
        "exit-with-stdin": ({"Command": {"exit_with_stdin": True}}, "End when standard input ends."),
    }

    def print_help(self, classes: bool = False) -> None:  # noqa: FBT001, FBT002  as traitlets has it
        """Print it for whoever reads, be it the first lines."""
        with end_quietly_on_broken_pipe():
            super().print_help(classes)
            sys.stdout.flush()

    @catch_config_error
    def initialize(self, argv: list[str] | None = None) -> None:
        """Read the command line and the configuration file."""
        self.given = tuple(sys.argv[1:] if argv is None else argv)
        super().initialize(argv)
        require_typed(self.cli_config, self._settable, [*self.aliases, *self.flags])
        if self.config_file:
            path = Path(self.config_file).absolute()
            if not path.exists():
                raise BadConfig(f"There is no configuration file {path}.")
            if not is_config_file(path):
                raise BadConfig(f"{path} is no configuration file: that is a file whose name ends in .py or .json.")
            try:
                self.load_config_file(path.name, path=str(path.parent))
            except Exception as error:  # whatever somebody's file raises
                line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
                raise BadConfig(
                    f"{path}{line} cannot be read: {type(error).__name__}: {error}. Nothing was started: it would run "
                    "with none of what the file sets."
                ) from error
            require_known(self.config, self._settable, str(path))

    @property
    def _settable(self) -> list[type[Configurable]]:
        """What its settings may be of."""
        return [type(self), *self.classes]

    def require_obeyed(self, process: Process, *, is_alone: bool = False) -> None:
        """Check that nothing was set that this process does not obey. Raises BadConfig.

        A configuration file may be for both, unless the process `is_alone`: the other is on another host. What
        `bulletin pool` was given is for both, too.
        """
        if not self.exit_with_stdin:
            require_obeyed(process, self.cli_config.get("Pool", {}), "where it was typed")
        if is_alone:
            require_obeyed(process, self.config.get("Pool", {}), f"which runs on another host, with {self.config_file}")

    def settings(self) -> PoolSettings:
        """Return the pool's settings, checked together. Raises BadConfig."""
        return Pool(parent=self).settings()

    def agent_settings(self) -> dict[str, Any]:
        """Return what was set of agents' settings, for those that an engine starts on other hosts."""
        pool = Pool(parent=self)
        wanted = (OF_AGENT | {"keep"}) - {"agent_user", "advertise", "ends_at"}
        given = {name: getattr(pool, name) for name in sorted(wanted) if name in self.config.get("Pool", {})}
        return {"leave_alone": _ALONE_S, **given}

    def serve(self, make: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run a coroutine until it ends, a signal comes, or standard input ends; return the exit status."""
        raise_descriptor_limit()

        async def main() -> int:
            task = asyncio.create_task(make())
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, task.cancel)
            if self.exit_with_stdin:
                when_stdin_ends(loop, task.cancel)
            with contextlib.suppress(asyncio.CancelledError):
                return await task
            return 128 + signal.SIGTERM

        return asyncio.run(main())


def is_config_file(path: Path) -> bool:
    """Tell whether traitlets reads what is at a path: it looks for files of these names alone."""
    return path.is_file() and path.suffix in {".py", ".json"}


def when_stdin_ends(loop: asyncio.AbstractEventLoop, then: Callable[[], object]) -> None:
    """Call `then` once whoever started this has closed its standard input."""
    handle = sys.stdin.fileno()

    def look() -> None:
        if not os.read(handle, 4096):
            loop.remove_reader(handle)
            then()

    loop.add_reader(handle, look)


@contextlib.contextmanager
def end_quietly_on_broken_pipe() -> Iterator[None]:
    """Write to standard output until whoever reads has seen enough; the interpreter's own flush does not complain."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
