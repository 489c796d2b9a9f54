"""What becomes of a cell whose lease is over: whether it may end well all the same, or is not sent again. Pure."""

from bulletin.codes import LeaseEnd
from bulletin.errors import BulletinError, CannotStart, CellLost, CellStopped
from bulletin.wire import messages as say
from bulletin_magic.connection.cell_phase import CellPhase
from bulletin_magic.connection.cell_run import MAY_HAVE_BEGUN, NEVER_RAN, CellRun

#: A cell whose leases come to nothing so often, before it ran, is given up.
TRIES = 3


def may_go_on(run: CellRun, news: say.Revoked) -> bool:
    """Tell whether a cell may still end well whose lease is over: the pool does not hear its node; this may."""
    is_unheard = news.code in (LeaseEnd.NODE_LOST, LeaseEnd.NOT_HELD)
    return run.phase is CellPhase.RETURNING or (is_unheard and run.is_under_way and run.is_taken)


def why_not_again(run: CellRun, sentence: str) -> BulletinError | None:
    """Return why a cell is not sent to another lease whose own came to nothing, as `sentence` says; None: it is."""
    if run.tries - run.reclaims == TRIES:  # leases come to nothing again and again
        return CellLost(f"{sentence} {MAY_HAVE_BEGUN}") if run.may_have_begun else CannotStart(sentence)
    if run.is_stopping:
        return CellStopped(f"{sentence} {MAY_HAVE_BEGUN}" if run.may_have_begun else NEVER_RAN)
    return None
