"""Hot sessions that were granted what the rules allow no longer: these have changed, or an allowance is over."""

from collections.abc import Iterable

from bulletin.ids import LeaseId
from gpu_worker.scheduler import departures
from gpu_worker.scheduler.actions import Action
from gpu_worker.scheduler.admission.cell_rules import is_next_forbidden
from gpu_worker.scheduler.state import State


def evict_outdated(state: State, touched: Iterable[LeaseId]) -> list[Action]:
    """Evict those of these leases that are hot, and whose next cell would be refused if it was asked for now.

    A hot session begins its cells without asking: it would go on with what it was granted for as long as nobody waits.
    """
    hot = departures.hot_among(state, touched)
    return [departures.evict(state, lease) for lease in hot if is_next_forbidden(state.accounts, lease)]
