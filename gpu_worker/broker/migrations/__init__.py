"""How the ledger's tables came to be, step by step. Run by `Ledger.open`; a step that was released is never changed."""

from bulletin.errors import BadConfig


def refuse_downgrade() -> None:
    """Say why no step leads back: older tables have no place for what newer ones hold, and the ledger drops nothing.

    Raises
    ------
    BadConfig
        Always.
    """
    raise BadConfig(
        "The ledger only goes forward: older tables have no place for what is in it. To go back to an older Bulletin, "
        "give it the backup of the database from before the upgrade. Nothing was changed."
    )
