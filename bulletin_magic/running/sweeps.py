"""`gpu.map` and `%%gpu --each`: the same work for many values, by as many workers as the pool gives, in order."""

import queue
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from secrets import token_hex
from typing import NamedTuple

from IPython.core.interactiveshell import InteractiveShell

from bulletin import state
from bulletin.errors import BulletinError, CannotReturn, CellLost, Refused, WaitedTooLong
from bulletin.ids import CellId, RequestId
from bulletin.offload import Outcome
from bulletin_magic.connection.deliveries import CellFinished, LeaseChanged
from bulletin_magic.connection.link import Link
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.connection.session_events import CellSubmitted
from bulletin_magic.output.output_history import OutputHistory
from bulletin_magic.output.output_writer import cell_number
from bulletin_magic.output.receipts import ReceiptList, receipt_of
from bulletin_magic.running.background_runner import BackgroundRunner, LiveLine, RunAnswer
from bulletin_magic.running.kernel_activity import KernelActivity
from bulletin_magic.running.notebook_libraries import NotebookLibraries
from bulletin_magic.running.outcome import error_to_raise, saying_differences, show_stayed
from bulletin_magic.running.resting_workers import RestingWorkers
from bulletin_magic.running.submission_folder import submission_folder

#: An element that has lost so many workers is to blame for it.
_TRIES = 2
#: What a worker says that got no slot. The others go on without it.
_NO_SLOT = (Refused, WaitedTooLong)
#: How many characters the bar is long.
_BAR_LENGTH = 20


class SweepTask:
    """One element: the source that is run for it, with names that stand for it alone."""

    def __init__(self, source: str, names: Mapping[str, object], result: str | None) -> None:
        """Take the name of the variable that holds the result; None stands for the value of the last line."""
        self.source, self.names, self.result = source, names, result
        self.tries = 0


class SentTask(NamedTuple):
    """A task that a worker has: its number, what it was sent with, and the notebook as it was then."""

    number: int
    captured: state.Captured
    meanwhile: state.Meanwhile


class Sweep:
    """Runs tasks on several workers, each with a link and an executor of its own; the notebook's variables stay.

    Everything is in the thread that calls `run`, but for the listening to the workers.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        open_link: Callable[[str], Link],
        resources: ResourceSpec,
        label: str,
        activity: KernelActivity,
        history: OutputHistory,
        receipts: ReceiptList,
        max_wait_ms: int | None = None,
    ) -> None:
        """Take what opens a link of its own for a worker (`open_link`), and the words before the bar (`label`).

        A worker that waits in the queue for more than `max_wait_ms` is given up; None is for ever.
        """
        self._shell, self._open_link, self._activity = shell, open_link, activity
        self._resources, self._label, self._max_wait_ms = resources, label, max_wait_ms
        self._answers: queue.SimpleQueue[tuple[BackgroundRunner, RunAnswer]] = queue.SimpleQueue()
        self._line = LiveLine(shell)
        #: What the last worker that spoke said of the queue.
        self._queue_line = ""
        self._progress, self._failed = "", 0
        self._history, self._outputs = history, history.begin()
        self._receipts = receipts
        self._tables: dict[BackgroundRunner, state.Table] = {}
        self._resting: RestingWorkers[BackgroundRunner] = RestingWorkers()

    def run(self, tasks: Sequence[SweepTask], parallel: int) -> list[Outcome]:
        """Run all tasks; return what came of each, in their order.

        Raises
        ------
        CannotSend
            If what the tasks need cannot travel.
        Refused, WaitedTooLong
            If the pool has no slot for any of them.
        KeyboardInterrupt
            If the stop button was pressed; what runs is then ended.
        """
        outcomes: list[Outcome | None] = [None] * len(tasks)
        waiting = deque(range(len(tasks)))
        under_way: dict[BackgroundRunner, SentTask] = {}
        try:
            for number in range(min(parallel, len(tasks))):
                worker = self._start_worker(number)
                under_way[worker] = self._send_next(worker, tasks, waiting)
            while under_way or (waiting and self._resting):
                if waiting and (rested := self._resting.take(is_wanted=not under_way)) is not None:
                    under_way[rested] = self._send_next(rested, tasks, waiting)
                    continue
                self._show_progress(len(tasks), len(tasks) - len(waiting) - len(under_way), len(under_way))
                answered = self._wait_for_answer(wakes=bool(waiting))
                if answered is None:
                    continue
                worker, answer = answered
                sent = under_way.pop(worker)
                number = sent.number
                if self._is_retried(answer, tasks[number], others=bool(under_way or self._resting)):
                    waiting.appendleft(number)
                    self._tables[worker] = state.Table()
                else:
                    outcome = outcomes[number] = self._outcome(tasks[number], answer, sent)
                    self._failed += outcome.error is not None
                if isinstance(answer, LeaseChanged) and not answer.has_place:
                    self._resting.add(worker)
                    tasks[number].tries -= 1  # nobody had it
                    continue
                if not isinstance(answer, _NO_SLOT):
                    if waiting:
                        under_way[worker] = self._send_next(worker, tasks, waiting)
                        continue
                elif not (under_way or self._resting):  # no worker is left: each that waits would hear the same
                    others = [outcome for index, outcome in enumerate(outcomes) if index != number]
                    if not any(others):
                        raise answer
                    for index in waiting:
                        outcomes[index] = Outcome(error=answer)
                    self._failed += len(waiting)
                    waiting.clear()
                worker.close()
            self._show_progress(len(tasks), len(tasks), 0)
        finally:
            for worker in under_way:
                worker.abort()
            for worker in self._tables:
                worker.close()
            self._history.add_note(self._outputs, self._progress)
            self._history.end(self._outputs)
        return [outcome for outcome in outcomes if outcome is not None]

    def _wait_for_answer(self, *, wakes: bool) -> tuple[BackgroundRunner, RunAnswer] | None:
        """Wait for what comes of a task; None if a worker has rested by then and `wakes`."""
        while True:
            dues_s = (self._activity.due_in_s, self._resting.due_in_s if wakes else None)
            try:
                return self._answers.get(timeout=min((one for one in dues_s if one is not None), default=None))
            except queue.Empty:
                self._activity.report()
                if wakes and self._resting.due_in_s == 0:
                    return None

    def _start_worker(self, number: int) -> BackgroundRunner:
        worker = BackgroundRunner(
            f"{self._label} {number + 1}",
            self._open_link(f"sweep-{token_hex(4)}"),
            self._shell,
            self._on_status,
            lambda worker, answer: self._answers.put((worker, answer)),
            shows_values=False,
            record=partial(self._history.add, self._outputs),
        )
        worker.start()
        self._tables[worker] = state.Table()
        return worker

    def _on_status(self, text: str) -> None:
        """Note where a worker is; only the wait for one is shown."""
        self._queue_line = text if text.startswith("⏳") else ""

    def _send_next(self, worker: BackgroundRunner, tasks: Sequence[SweepTask], waiting: deque[int]) -> SentTask:
        """Send the next task that waits to a worker; the names of its element hide the notebook's meanwhile."""
        number = waiting.popleft()
        task = tasks[number]
        task.tries += 1
        namespace = self._shell.user_ns
        hidden = {name: namespace[name] for name in task.names if name in namespace}
        namespace.update(task.names)
        try:
            needs = state.needs(task.source, namespace)
            captured = state.capture(namespace, needs, table=self._tables[worker])
            is_first = captured.exchange.base == 0
            environment = NotebookLibraries().describe(needs, captured, 0, is_new=True) if is_first else None
            meanwhile = state.depart(namespace, captured, is_aside=True)
        finally:
            for name in task.names:
                del namespace[name]
            namespace.update(hidden)
        worker.submit(
            CellSubmitted(
                cell=CellId(token_hex(16)),
                request=RequestId(token_hex(16)),
                source=task.source,
                number=cell_number(self._shell),
                parts=tuple(captured.parts),
                lease_id=None if is_first or worker.lease is None else worker.lease.lease_id,
                is_told_of_loss=True,
                resources=self._resources,
                max_wait_ms=self._max_wait_ms,
                is_call=task.result is not None,
                folder=submission_folder(),
                versions=environment.versions if environment is not None else None,
                libraries=environment.libraries if environment is not None else {},
                absent=environment.absent if environment is not None else (),
            )
        )
        return SentTask(number, captured, meanwhile)

    @staticmethod
    def _is_retried(answer: RunAnswer, task: SweepTask, *, others: bool) -> bool:
        """Tell whether the element is to be run once more, because of its worker."""
        match answer:
            case LeaseChanged():
                return True
            case Refused() | WaitedTooLong():  # there is no slot for one more worker
                return others
            case CellLost():
                return task.tries < _TRIES
        return False

    def _outcome(self, task: SweepTask, answer: RunAnswer, sent: SentTask) -> Outcome:
        """Take the results of a task in; return its value or its error."""
        if not isinstance(answer, CellFinished):
            if isinstance(answer, BulletinError):
                return Outcome(error=answer)
            assert isinstance(answer, BaseException), "a lease that changed is tried again"
            raise answer
        self._receipts.keep(receipt_of(answer, cell_number(self._shell), "element"))
        if not answer.parts:
            return Outcome(error=error_to_raise(answer, None))
        try:
            with saying_differences(answer):
                applied = state.apply(answer.parts, self._shell.user_ns, sent=sent.captured, meanwhile=sent.meanwhile)
        except CannotReturn as error:
            return Outcome(error=error)
        show_stayed(applied.stayed, self._shell)
        if answer.ended.outcome != "returned":
            return Outcome(error=error_to_raise(answer, applied.extra.get("error")))
        return Outcome(applied.extra.get("result") if task.result is None else applied.aside.get(task.result))

    def _show_progress(self, total: int, ended: int, running: int) -> None:
        """Say how far it is. It is said for each element: what all of them came to is not looked through."""
        full = _BAR_LENGTH * ended // total
        facts = [f"{ended} of {total} done"]
        if running:
            facts.append(f"{running} under way")
        if self._failed:
            facts.append(f"{self._failed} failed")
        waits = f" {self._queue_line}" if self._queue_line and not ended else ""
        self._progress = f"{self._label} {'█' * full}{'░' * (_BAR_LENGTH - full)} {', '.join(facts)}{waits}"
        self._line.show(self._progress)


def names_for(element: object) -> dict[str, object]:
    """Return what a cell that is run for an element calls it: `each`, and the keys of a dict that can be names."""
    is_named = isinstance(element, dict) and all(isinstance(key, str) and key.isidentifier() for key in element)
    return {**(element if is_named and isinstance(element, dict) else {}), "each": element}
