"""Which process obeys a setting of the pool: where broker and agents run on several hosts, each reads its own file."""

from collections.abc import Collection, Iterable
from typing import Literal

from bulletin.errors import BadConfig

Process = Literal["broker", "agent"]

OF_BROKER = frozenset(
    (
        *("kernel_port", "agent_port", "database", "keep_cells", "quota_file", "journal_file"),
        *("max_walltime", "hub_scope", "idle_exit", "engine"),
    )
)
OF_AGENT = frozenset(
    (
        *("advertise", "node_port", "slots", "device", "preload", "environments", "environment", "devices"),
        *("isolation", "agent_user", "min_uid", "unix_groups", "memory_per_slot", "processes", "require"),
        *("freeze_hot", "keep_results", "away", "output_limit", "user_disk", "parcel_limit"),
        *("interrupt_grace", "walltime_grace", "user_namespaces", "leave_grace", "leave_alone", "ends_at"),
    )
)
OF_BOTH = frozenset(("folder", "host", "keep"))
_OWNERS: dict[Process, frozenset[str]] = {"broker": OF_BROKER, "agent": OF_AGENT}


def name_owner(setting: str) -> str:
    """Return who obeys a setting, for people."""
    return "broker" if setting in OF_BROKER else "agent" if setting in OF_AGENT else "both"


def require_obeyed(process: Process, settings: Collection[str], where: str) -> None:
    """Check that this process obeys all these settings.

    Raises
    ------
    BadConfig
        With those that are the other's, and where they belong.
    """
    other: Process = "agent" if process == "broker" else "broker"
    strange = sorted(_OWNERS[other] & set(settings))
    if strange:
        raise BadConfig(
            f"{_listed(strange)} {'is a setting' if len(strange) == 1 else 'are settings'} that the {other} obeys, and "
            f"this is the {process}, {where}. Give it to `bulletin {other}`, and leave it out here."
        )


def _listed(settings: Iterable[str]) -> str:
    return ", ".join(f"Pool.{name}" for name in settings)
