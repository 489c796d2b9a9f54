"""The ledger's database: whether it can be opened, and is of this Bulletin's time."""

from collections.abc import Iterator

from bulletin.errors import BadConfig, LedgerAway
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.file_owners import is_there
from gpu_worker.doctor.pool_setup import PoolSetup


def check_ledger(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Open the ledger and change nothing in it. One that is not there yet is made by the broker."""
    url = setup.settings.database
    from gpu_worker.broker.database import Database  # it loads SQLAlchemy, which other commands do not need

    own = setup.settings.folder / "ledger.sqlite"
    if url == f"sqlite:///{own}" and not is_there(own):
        return
    try:
        Database.open(url, upgrade=False).close()
    except (BadConfig, LedgerAway) as error:
        yield Diagnosis(
            check="ledger",
            what=str(error),
            why="Who used what, credits and past use are in the ledger, and the broker reads them at its start.",
            remedy="Keep a backup of it before you change anything.",
        )
