"""The command line: every `bulletin COMMAND`. Those that print what a pool or its ledger knows are in `console`."""

import errno
import sys
import textwrap
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from traitlets.utils.importstring import import_item

from bulletin import __version__
from bulletin.errors import BadConfig, BulletinError
from gpu_worker import event_log

if TYPE_CHECKING:
    from gpu_worker.console.base_command import Command
    from gpu_worker.simulator.simulate_command import SimulateCommand

#: In characters, of what `bulletin --help` prints.
_HELP_WIDTH = 100


class CommandTable(Mapping[str, "type[Command | SimulateCommand]"]):
    """The commands by their words. Each is imported when it is asked for: whoever types one waits for no other."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """Take for each word where its class is, as `module.Class`."""
        self._places = places

    def __getitem__(self, word: str) -> "type[Command | SimulateCommand]":
        command: type[Command | SimulateCommand] = import_item(self._places[word])
        return command

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


COMMANDS = CommandTable(
    {
        "init": "gpu_worker.starter_files.init_command.InitCommand",
        "doctor": "gpu_worker.doctor.doctor_command.DoctorCommand",
        "pool": "gpu_worker.pool_commands.PoolCommand",
        "broker": "gpu_worker.pool_commands.BrokerCommand",
        "agent": "gpu_worker.pool_commands.AgentCommand",
        "node": "gpu_worker.console.node_command.NodeCommand",
        "keys": "gpu_worker.console.keys_command.KeysCommand",
        "status": "gpu_worker.console.query_commands.StatusCommand",
        "queue": "gpu_worker.console.query_commands.QueueCommand",
        "explain": "gpu_worker.console.query_commands.ExplainCommand",
        "cancel": "gpu_worker.console.query_commands.CancelCommand",
        "hold": "gpu_worker.console.hand_commands.HoldCommand",
        "release": "gpu_worker.console.hand_commands.ReleaseCommand",
        "top": "gpu_worker.console.hand_commands.TopCommand",
        "requeue": "gpu_worker.console.hand_commands.RequeueCommand",
        "extend": "gpu_worker.console.hand_commands.ExtendCommand",
        "boost": "gpu_worker.console.hand_commands.BoostCommand",
        "request": "gpu_worker.console.request_command.RequestCommand",
        "drain": "gpu_worker.console.query_commands.DrainCommand",
        "announce": "gpu_worker.console.announce_command.AnnounceCommand",
        "quota": "gpu_worker.console.quota_command.QuotaCommand",
        "metrics": "gpu_worker.console.query_commands.MetricsCommand",
        "usage": "gpu_worker.console.usage_command.UsageCommand",
        "simulate": "gpu_worker.simulator.simulate_command.SimulateCommand",
    }
)


def describe_commands() -> str:
    """Return what `bulletin --help` prints, in lines that fit a terminal."""
    indent = " " * 20
    known = "\n".join(
        textwrap.fill(
            str(command.description),
            width=_HELP_WIDTH,
            initial_indent=f"  bulletin {name:8} ",
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        for name, command in COMMANDS.items()
    )
    return f"usage: bulletin COMMAND [options]\n\n{known}\n\nbulletin COMMAND --help-all shows all settings.\n"


def main(argv: list[str] | None = None) -> None:
    """Run one command; its errors are sentences, and bad configuration is exit status 78."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("--version", "-V"):
        sys.stdout.write(f"bulletin {__version__}\n")
        raise SystemExit(0)
    if words and words[0] in ("-h", "--help", "help"):
        sys.stdout.write(describe_commands())
        raise SystemExit(0)
    if not words:
        sys.stderr.write(describe_commands())
        raise SystemExit(2)
    if words[0] not in COMMANDS:
        near = get_close_matches(words[0], COMMANDS, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        sys.stderr.write(f"bulletin: there is no command {words[0]!r}.{meant} `bulletin --help` lists the commands.\n")
        raise SystemExit(2)
    event_log.configure(words[0])
    command = COMMANDS[words[0]]()
    try:
        command.initialize(words[1:])
        command.start()
        raise SystemExit(command.status)
    except BadConfig as error:
        from gpu_worker.engines import BAD_CONFIG

        sys.stderr.write(f"bulletin {words[0]}: {error}\n")
        raise SystemExit(BAD_CONFIG) from None
    except BulletinError as error:
        sys.stderr.write(f"bulletin {words[0]}: {error}\n")
        raise SystemExit(1) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = error.filename or "a file"
        sys.stderr.write(
            f"bulletin {words[0]}: {where} cannot be written, since the disk is full, or a quota of it: make room "
            "there (`df -h` and `df -i` say what is full), and start this again.\n"
        )
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
