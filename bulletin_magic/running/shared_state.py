"""The state that this notebook shares with one executor: what that one has already is not sent again."""

from typing import Any

from bulletin import state
from bulletin.ids import LeaseId
from bulletin.state.holdings import Holdings, holdings
from bulletin.state.plan import Plan, rehearse
from bulletin.wire.frames import Blob


class SharedState:
    """The notebook's half of the object table, and the lease whose executor has the other half."""

    def __init__(self) -> None:
        self._table = state.Table()
        self._lease_id: LeaseId | None = None
        self._is_settled = True  #: whether what came of the last capture is known here

    @property
    def lease_id(self) -> LeaseId | None:
        """The lease whose executor has what `capture` leaves out; None while it leaves out nothing."""
        return self._lease_id

    def capture(self, namespace: dict[str, Any], needs: state.Needs) -> state.Captured:
        """Return what a cell needs and the executor does not have, which is then shared. Raises CannotSend.

        Where nobody took in what became of the capture before this one, a stop came between: all is sent anew.
        """
        if not self._is_settled:
            self.forget()
        self._is_settled = False
        return state.capture(namespace, needs, table=self._table)

    def plan(self, namespace: dict[str, Any], needs: state.Needs, *, is_executor_alive: bool) -> Plan:
        """Return what `capture` would send. Raises ModulesTooLarge."""
        return rehearse(namespace, needs, table=self._table if is_executor_alive else state.Table())

    def holdings(self, namespace: dict[str, Any], *, is_executor_alive: bool) -> Holdings:
        """Return what the executor holds of the notebook: nothing, where it has ended."""
        return holdings(namespace, self._table if is_executor_alive and self._lease_id is not None else state.Table())

    def apply(
        self, parts: tuple[Blob, ...], namespace: dict[str, Any], sent: state.Captured, lease_id: LeaseId
    ) -> state.Applied:
        """Take in what the executor of a lease has changed. Raises CannotReturn; then nothing is shared any more."""
        self._lease_id = None
        try:
            applied = state.apply(parts, namespace, sent=sent)
        except BaseException:  # a stop, too: the executor is a step ahead
            self._table.clear()
            raise
        self._lease_id = lease_id
        self._is_settled = True
        return applied

    def forget(self) -> None:
        """Share nothing any more: the executor is gone, or has lost count."""
        self._table.clear()
        self._lease_id = None
        self._is_settled = True
