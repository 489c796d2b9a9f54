"""What pressing stop makes due for one cell: an interrupt, a word that it still runs, and giving up on its node."""

#: So long after the interrupt the user is told that the cell still runs.
STOP_NOTE_MS = 2_000
#: So long after a second press the node is given up.
GIVE_UP_MS = 10_000
#: So long after a second press further ones change nothing: who presses fast has not seen what the first two did.
LEAVE_AFTER_MS = 2_000


class StopSchedule:
    """Counts the presses for a cell and keeps the times at which something follows from them."""

    def __init__(self, interrupt_after_ms: int) -> None:
        """Take how long after the first press the cell is interrupted: what ends a kernel presses stop just before."""
        self.presses = 0
        self._interrupt_after_ms = interrupt_after_ms
        self._interrupt_due_ms: int | None = None
        self._note_due_ms: int | None = None
        self._give_up_due_ms: int | None = None

    @property
    def deadline_ms(self) -> int | None:
        """When the next of them is due."""
        dues = (self._interrupt_due_ms, self._note_due_ms, self._give_up_due_ms)
        return min((due for due in dues if due is not None), default=None)

    def schedule_interrupt(self, now_ms: int) -> None:
        """Start with an interrupt, and with a note to the user should that not help."""
        self._interrupt_due_ms = now_ms + self._interrupt_after_ms
        self._note_due_ms = self._interrupt_due_ms + STOP_NOTE_MS

    def schedule_giving_up(self, now_ms: int) -> None:
        """Wait for the end of the cell's process, and for nothing else."""
        self._interrupt_due_ms = self._note_due_ms = None
        self._give_up_due_ms = now_ms + GIVE_UP_MS

    def is_ending(self, now_ms: int) -> bool:
        """Tell whether the second press was so short ago that the node may yet answer it."""
        due_ms = self._give_up_due_ms
        return due_ms is not None and now_ms < due_ms - GIVE_UP_MS + LEAVE_AFTER_MS

    def cancel_interrupt(self) -> None:
        """Send no interrupt later: it has just been sent, or need not be."""
        self._interrupt_due_ms = None

    def pop_interrupt(self, now_ms: int) -> bool:
        """Tell whether the interrupt is due now; it then is no more."""
        is_due = self._interrupt_due_ms is not None and self._interrupt_due_ms <= now_ms
        if is_due:
            self._interrupt_due_ms = None
        return is_due

    def pop_note(self, now_ms: int) -> bool:
        """Tell whether the note is due now; it then is no more."""
        is_due = self._note_due_ms is not None and self._note_due_ms <= now_ms
        if is_due:
            self._note_due_ms = None
        return is_due

    def pop_giving_up(self, now_ms: int) -> bool:
        """Tell whether it is time to give up; it then is no more."""
        is_due = self._give_up_due_ms is not None and self._give_up_due_ms <= now_ms
        if is_due:
            self._give_up_due_ms = None
        return is_due
