"""Writes the reference pages that come from the code: `python docs/generate.py`. A test holds them up to date."""

import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from traitlets import Undefined
from traitlets.config import Configurable

from bulletin import codes, errors
from bulletin.ids import ProjectId
from bulletin_magic.commands.magics import BulletinMagics
from bulletin_magic.commands.options import EXCLUSIVE, FLAGS, RESOURCE_OPTIONS, RUN_OPTIONS
from bulletin_spawner.service.all_endpoints import ALL_ENDPOINTS
from bulletin_spawner.service.typescript_types import write_types
from bulletin_spawner.spawner import BulletinMixin
from gpu_worker import cli
from gpu_worker.config import Pool
from gpu_worker.console.query_commands import QueryCommand
from gpu_worker.engine_settings import CommandAgents, EngineTraits, Scaling, SlurmAgents
from gpu_worker.quotas import schema
from gpu_worker.quotas.class_hours_settings import CLASS_HOURS_SETTINGS
from gpu_worker.quotas.group_rule_settings import EMPTY_RULE, GROUP_RULE_SETTINGS, NEVER_BY_RULE
from gpu_worker.quotas.node_pool_settings import NODE_POOL_SETTINGS
from gpu_worker.quotas.quota_settings import NEW_QOS, PRICE_SETTINGS, PROJECT_SETTINGS, QOS_SETTINGS, SCHEDULER_SETTINGS
from gpu_worker.quotas.reservation_settings import RESERVATION_SETTINGS
from gpu_worker.quotas.value_kinds import QuotaSetting
from gpu_worker.scheduler.leases.life import LEASE_MOVES, REQUEST_MOVES
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, NodePool, Project, QoS, SchedulerSettings
from gpu_worker.setting_owners import name_owner

HERE = Path(__file__).parent
#: The commands that ask a pool that runs.
ASKING = [name for name, command in cli.COMMANDS.items() if issubclass(command, QueryCommand)]
NOTE = "<!-- Written by docs/generate.py from the code. Change it there. -->\n\n"


def settings() -> str:
    """Every trait that can be configured."""
    parts = ["# Settings\n\n" + NOTE]
    parts.append(
        "Set in a configuration file as `c.CLASS.NAME = value`, or on the command line as `--CLASS.NAME=value`.\n"
    )
    for where, section in (
        ("of the pool: `bulletin pool --config FILE`", Pool),
        ("of the pool: how many agents an engine runs that starts and ends them", Scaling),
        ("of the pool: the engine `slurm`", SlurmAgents),
        ("of the pool: the engine `command`", CommandAgents),
        ("of the hub: `jupyterhub_config.py`, mostly set by `configure`", BulletinMixin),
        ("of the notebook: `ipython_kernel_config.py`", BulletinMagics),
    ):
        is_pool = section is Pool  # whose processes may be on several hosts
        columns = ("name", "default", *["obeyed by"] * is_pool, "")
        parts.append(f"\n## {section.__name__}, {where}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}\n")
        for name, trait in sorted(_own_traits(section).items()):
            default = trait.default() if trait.default_value is Undefined else trait.default_value
            owner = f" {name_owner(name)} |" * is_pool
            parts.append(f"| `{name}` | `{default!r}` |{owner} {_cell(trait.help)} |\n")
    return "".join(parts)


def _own_traits(section: type) -> dict[str, object]:
    own = set(vars(section)) | (set(vars(EngineTraits)) if issubclass(section, EngineTraits) else set())
    traits = (
        section.class_traits(config=True)
        if issubclass(section, Configurable)
        else {name: trait for name, trait in vars(section).items() if getattr(trait, "metadata", {}).get("config")}
    )
    return {name: trait for name, trait in traits.items() if name in own}


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def commands() -> str:
    """The command line."""
    parts = ["# Commands\n\n" + NOTE, "`bulletin COMMAND --help-all` shows every setting.\n"]
    for name, command in cli.COMMANDS.items():
        parts.append(f"\n## bulletin {name}\n\n{command.description}\n")
    parts.append(f"\n## Options of {', '.join(ASKING[:-1])} and {ASKING[-1]}\n\n| option | |\n| --- | --- |\n")
    parts += ["| `--folder` | the folder of the pool; without it, the hub's pool |\n| `--json` | write JSON |\n"]
    for name in ASKING:
        parts += [
            f"| `--{alias}` | {name}: {_cell(trait.help)} |\n"
            for alias, trait in cli.COMMANDS[name].class_own_traits(config=True).items()
        ]
    parts.append("\n## Options of pool, broker and agent\n\n| option | setting |\n| --- | --- |\n")
    parts += [
        f"| `--{alias}` | `{trait}` |\n"
        for alias, trait in sorted(cli.COMMANDS["pool"].aliases.items())
        if isinstance(alias, str) and len(alias) > 1 and not trait.startswith("Command.") and "Application" not in trait
    ]
    parts.append("| `--config FILE` | a configuration file |\n| `--exit-with-stdin` | end when standard input ends |\n")
    for command, flag in (
        (cli.COMMANDS["init"], "`--defaults` asks nothing."),
        (cli.COMMANDS["doctor"], "`--json` prints JSON."),
    ):
        word = command.name.partition("-")[2]
        parts.append(f"\n## Options of {word}\n\n{flag}\n\n| option | |\n| --- | --- |\n")
        traits = command.class_traits(config=True)
        for alias, name in command.aliases.items():
            if name.startswith(command.__name__):
                parts.append(f"| `--{alias}` | {_cell(traits[name.partition('.')[2]].help)} |\n")
    parts.append(
        "\n## Options of simulate\n\n`bulletin simulate TRACE` plays a file; `--json` prints JSON. "
        "With `--journal`, `--check` judges each step.\n\n"
    )
    parts.append("| option | default | |\n| --- | --- | --- |\n")
    traits = cli.COMMANDS["simulate"].class_own_traits(config=True)
    for alias, name in cli.COMMANDS["simulate"].aliases.items():
        trait = traits[name.partition(".")[2]]
        parts.append(f"| `--{alias}` | `{trait.default_value!r}` | {_cell(trait.help)} |\n")
    parts.append("\nExit status 78 is bad configuration: the line on standard error says what and where.\n")
    return "".join(parts)


def magic() -> str:
    """What can be typed in a notebook."""
    cell = inspect.getdoc(BulletinMagics.cell) or ""
    line = inspect.getdoc(BulletinMagics.line) or ""
    others = "".join(
        f"\n## {name}\n\n```text\n{inspect.getdoc(magic) or ''}\n```\n"
        for name, magic in (("%%remote", BulletinMagics.remote), ("%%cpu", BulletinMagics.here))
    )
    options = "".join(f"| `{name}` | `{field}` |\n" for name, (field, _) in RESOURCE_OPTIONS.items())
    options += "".join(f"| `{name}` | `{field}` |\n" for name, (field, _) in RUN_OPTIONS.items())
    options += "".join(
        f"| `{name}` | {'`is_exclusive`: it' if name == EXCLUSIVE else 'nothing: it'} {does} |\n"
        for name, does in FLAGS.items()
    )
    head = f"# %%gpu and %gpu\n\n{NOTE}## %%gpu\n\n```text\n{cell}\n```\n"
    return f"{head}\n| option | sets |\n| --- | --- |\n{options}\n## %gpu\n\n```text\n{line}\n```\n{others}"


def all_errors() -> str:
    """The classes of errors, their codes and what they mean."""
    parts = [
        "# Errors\n\n" + NOTE,
        "```text\n",
        inspect.getdoc(errors) or "",
        "\n```\n\n| error | code | again later? | |\n| --- | --- | --- | --- |\n",
    ]
    for name, kind in sorted(vars(errors).items()):
        if isinstance(kind, type) and issubclass(kind, errors.BulletinError) and kind is not errors.BulletinError:
            again = "yes" if kind.retryable else "no"
            parts.append(f"| `{name}` | `{kind.code}` | {again} | {_cell(inspect.getdoc(kind) or '')} |\n")
    return "".join(parts)


def lives() -> str:
    """The lives of requests and leases, drawn from their tables."""
    parts = ["# The lives of a request and of a lease\n\n" + NOTE]
    for title, moves in (("A request", REQUEST_MOVES), ("A lease", LEASE_MOVES)):
        parts.append(f"\n## {title}\n\n```mermaid\nstateDiagram-v2\n")
        parts += [
            f"    {was.value} --> {to.value}\n"
            for was, tos in moves.items()
            for to in sorted(tos, key=lambda phase: phase.value)
        ]
        parts.append("```\n")
    return "".join(parts)


def ends() -> str:
    """The words for how cells and leases end and why something is refused."""
    parts = ["# How cells and leases end, and why something is refused\n\n" + NOTE, inspect.getdoc(codes) or "", "\n"]
    for title, words in (
        ("How a cell ended: the column `outcome` of the ledger", codes.CellOutcome),
        ("Why a lease ended: the column `why` of the ledger", codes.LeaseEnd),
        ("Why something is refused", codes.RefusalCode),
    ):
        parts.append(f"\n## {title}\n\n| word | |\n| --- | --- |\n")
        parts += [f"| `{word.value}` | {_cell(word.__doc__ or '')} |\n" for word in words]
    return "".join(parts)


def type_matrix() -> str:
    """Which kinds of values travel: the rows of tests/state/matrix, which its tests hold to what happens."""
    sys.path.insert(0, str(HERE.parent))
    from tests.state.matrix import page

    return f"# Type matrix\n\n{NOTE}{page.text()}"


QUOTA_FILE = """
A quota file says what each project is promised and what each class of service allows. It is TOML
(`quotas.toml`) or YAML (`quotas.yaml`, `.yml`) and means the same in both: [this TOML](../../examples/quotas.toml) and
[this YAML](../../examples/quotas.yaml) are one example. An empty file is right: no project has a guarantee, and the
classes of service are those that come with Bulletin.

`bulletin quota check FILE` says every error with its line and what to do, all at once (errors of the language itself,
such as a missing quote, come one at a time), and what it warns of: guarantees that cannot be kept together, settings
that have no effect. `--gpus=N` says how many GPUs the pool has. Exit status 0 is a file that can be used.

Amounts of GPUs are numbers with at most three decimals; durations have a unit and stand in quotes in TOML. A name that
is not known is an error. YAML's merge keys (`<<`) and tags are not read; a file has at most 1 MB.

Editors complete and check a file with the [JSON schema](quota-file.schema.json): `#:schema PATH` in the first line of
TOML, `# yaml-language-server: $schema=PATH` in that of YAML.

## [projects.NAME]

A hub group by its name; `default` is who has no group. A group that is not in the file has what the first rule for it
says ([group_rules.NAME](#group_rulesname)), and the defaults where no rule is for it.

"""
QUOTA_FILE_GROUP_RULES = """
## [group_rules.NAME]

What groups have that are no projects of the file, as soon as one of their members runs a cell: `course-*`, say. The
first rule that fits a group counts, in the order of the file; a group that no rule fits has the defaults of a project,
with no limit. A last rule with `groups = ["*"]` leaves none of those; `default` is no group, and no rule is for it.
[The page on quotas](../explanation/quotas.md) has an example.

No rule gives a guarantee. What it may not say is an error:

"""
QUOTA_FILE_HOURS = """
## [projects.NAME.class_hours.NAME]

Class hours: a window of the week in which the project is guaranteed more than it is otherwise. It may have several,
each with a name; where two are on at once, the larger one counts. They are by the clock on the wall of the time zone,
in summer as in winter, and end on the day on which they begin. Outside them the project has what `guaranteed` says.

"""
QUOTA_FILE_NODE_POOLS = """
## [node_pools.NAME]

Some of the GPUs of the pool, by their name or by their nodes, of which projects may be guaranteed some (`node_pools`
of a project). A GPU is in the first node pool of the file that it fits, and in none otherwise.

"""
QUOTA_FILE_QOS = """
## [qos.NAME]

A class of service, as `%%gpu --qos NAME` asks for it. One that comes with Bulletin is changed where the file says so.
Any other name is a new class: it needs a walltime, and has these defaults.

"""
QUOTA_FILE_SCHEDULER = """
## [scheduler]

How the scheduler goes about it, for all projects and classes of service. What it does with these is on
[the page on quotas](../explanation/quotas.md). How long a cell waits before it takes something back for its share
(`share_after`), or stands before others (`patience`), is set for each class of service, above.

"""


QUOTA_FILE_RESERVATIONS = """
## [reservations.NAME]

GPUs that are guaranteed once, from one time to another, to a project or to some of its users:
[the page on quotas](../explanation/quotas.md) has an example, and says what counts in it. A time that clocks show twice
bounds it so that it is as long as can be.

"""
QUOTA_FILE_PRICES = """
## [prices]

Words of a GPU's name, and behind them what an hour of such a GPU counts for where use adds up: budgets, past use and
the ledger. The first one whose words are all in the name counts, in the order of the file; what no price fits has 1.
[The page on quotas](../explanation/quotas.md) says what prices do not count for.

"""


def quota_file() -> str:
    """What may be written in a quota file."""
    parts = ["# The quota file\n\n" + NOTE.rstrip("\n") + "\n" + QUOTA_FILE]
    parts += _settings_table(PROJECT_SETTINGS, Project(id=ProjectId("")))
    parts.append(QUOTA_FILE_HOURS)
    parts += _settings_table(CLASS_HOURS_SETTINGS, None)
    parts += [QUOTA_FILE_GROUP_RULES, _never_by_rule(), *_settings_table(GROUP_RULE_SETTINGS, EMPTY_RULE)]
    parts.append(QUOTA_FILE_NODE_POOLS)
    parts += _settings_table(NODE_POOL_SETTINGS, NodePool(name=""))
    parts.append(QUOTA_FILE_QOS)
    parts += _settings_table(QOS_SETTINGS, NEW_QOS)
    parts.append(
        "\n### Those that come with Bulletin\n\n| setting |" + "".join(f" {one.name} |" for one in DEFAULT_QOS)
    )
    parts.append("\n| --- |" + " --- |" * len(DEFAULT_QOS) + "\n")
    for setting in QOS_SETTINGS:
        shown = "".join(f" {setting.kind.show(getattr(one, setting.field))} |" for one in DEFAULT_QOS)
        parts.append(f"| `{setting.name}` |{shown}\n")
    parts.append(QUOTA_FILE_SCHEDULER)
    parts += _settings_table(SCHEDULER_SETTINGS, SchedulerSettings())
    parts.append(QUOTA_FILE_RESERVATIONS)
    parts += _settings_table(RESERVATION_SETTINGS, None)
    [price], example = PRICE_SETTINGS, "H100 = 4.0"
    parts.append(QUOTA_FILE_PRICES)
    parts.append("| name | value | default | example | |\n| --- | --- | --- | --- | --- |\n| words of a GPU's name | ")
    parts.append(f"{price.kind.form} | 1 | `{example}` | {price.help} |\n")
    return "".join(parts)


def _never_by_rule() -> str:
    return "".join(f"* `{name}`: {why[0].lower()}{why[1:]}.\n" for name, why in NEVER_BY_RULE.items()) + "\n"


def _settings_table(settings: Sequence[QuotaSetting], model: Project | QoS | SchedulerSettings | None) -> list[str]:
    rows = ["| setting | value | default | example | |\n| --- | --- | --- | --- | --- |\n"]
    for setting in settings:
        must = setting.is_needed or setting.field == "walltime_ms"
        default = "must be written" if must else setting.kind.show(getattr(model, setting.field, None))
        cells = [f"`{setting.name}`", _cell(setting.kind.form), default, f"`{setting.example}`", _cell(setting.help)]
        rows.append("| " + " | ".join(cells) + " |\n")
    return rows


def quota_schema() -> str:
    """The quota file as JSON schema."""
    return json.dumps(schema.quota_schema(), indent=2) + "\n"


PAGES = {
    "reference/settings.md": settings,
    "reference/commands.md": commands,
    "reference/gpu-magic.md": magic,
    "reference/errors.md": all_errors,
    "reference/lives.md": lives,
    "reference/ends.md": ends,
    "reference/type-matrix.md": type_matrix,
    "reference/quota-file.md": quota_file,
    "reference/quota-file.schema.json": quota_schema,
    "../frontend/pages/src/api_types.ts": lambda: write_types(ALL_ENDPOINTS),
}


def main() -> None:
    """Write every page."""
    for path, page in PAGES.items():
        (HERE / path).write_text(page())
    sys.stdout.write(f"{len(PAGES)} pages written\n")


if __name__ == "__main__":
    main()
