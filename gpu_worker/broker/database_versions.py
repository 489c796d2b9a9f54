"""The versions of the ledger's tables: from any older one to the newest, step by step, by Alembic."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from bulletin.errors import BadConfig


def bring_up_to_date(connection: Connection, migrations: Path, shown: str, *, upgrade: bool) -> None:
    """Run the steps of a folder that the database lacks, in the connection's transaction, where it may be upgraded.

    Raises
    ------
    BadConfig
        If a newer Bulletin wrote it; or an older one, and it is not to be upgraded.
    """
    config = Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    steps = ScriptDirectory.from_config(config)
    versions = MigrationContext.configure(connection).get_current_heads()
    known = {step.revision for step in steps.walk_revisions()}
    for version in versions:
        if version not in known:
            raise BadConfig(
                f"The ledger at {shown} has version {version}, which this Bulletin does not know: "
                "a newer one wrote it. Upgrade Bulletin, or give it another ledger. Nothing was changed."
            )
    if upgrade:
        command.upgrade(config, "head")
    elif set(versions) != set(steps.get_heads()):
        raise BadConfig(
            f"The ledger at {shown} was written by an older Bulletin. Start the pool once with this one, which brings "
            "it up to date. Nothing was changed."
        )
