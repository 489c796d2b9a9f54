"""`gpu.map` and `%%gpu --each`: the same work for many values, on as many places as the pool gives, in order."""

import queue
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from secrets import token_hex

from IPython.core.interactiveshell import InteractiveShell

from bulletin import state
from bulletin.errors import BulletinError, CannotReturn, CellLost, Refused
from bulletin.ids import CellId, RequestId
from bulletin.offload import Outcome
from bulletin_magic.connection.deliveries import CellFinished, LeaseChanged
from bulletin_magic.connection.link import Link
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.connection.session_events import CellSubmitted
from bulletin_magic.output.output_history import OutputHistory
from bulletin_magic.output.output_writer import cell_number
from bulletin_magic.running.background_runner import BackgroundRunner, LiveLine, RunAnswer
from bulletin_magic.running.kernel_activity import KernelActivity
from bulletin_magic.running.outcome import error_to_raise, show_stayed

#: A place that is lost takes this many elements with it before the element is to blame.
_TRIES = 2
_BAR = 20


class SweepTask:
    """One element: the source that is run for it, with names that stand for it alone."""

    def __init__(self, source: str, names: Mapping[str, object], result: str | None) -> None:
        """`result` is the name of its value; None is the value of the last line."""
        self.source, self.names, self.result = source, names, result
        self.tries = 0


#: An element's number, what it was sent with, and the notebook as it was then.
SentTask = tuple[int, state.Captured, state.Meanwhile]


class Sweep:
    """Runs tasks on places of their own; the notebook's variables stay as they are.

    Everything is in the thread that calls `run`, but for the listening to the places.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        connect: Callable[[str], Link],
        resources: ResourceSpec,
        label: str,
        activity: KernelActivity,
        shown: OutputHistory,
    ) -> None:
        self._shell, self._connect, self._resources, self._label, self._activity = (
            shell,
            connect,
            resources,
            label,
            activity,
        )
        self._answers: queue.SimpleQueue[tuple[BackgroundRunner, RunAnswer]] = queue.SimpleQueue()
        self._line = LiveLine(shell)
        self._waits = self._said = ""
        self._shown, self._showing = shown, shown.begin()
        self._tables: dict[BackgroundRunner, state.Table] = {}

    def run(self, tasks: Sequence[SweepTask], parallel: int) -> list[Outcome]:
        """What came of each task, in their order.

        Raises
        ------
        CannotSend
            If what the tasks need cannot travel.
        Refused
            If the pool gives no place to any.
        KeyboardInterrupt
            If the stop button was pressed; what runs is then ended.
        """
        outcomes: list[Outcome | None] = [None] * len(tasks)
        waiting = deque(range(len(tasks)))
        under_way: dict[BackgroundRunner, SentTask] = {}
        try:
            for number in range(min(parallel, len(tasks))):
                place = self._open(number)
                under_way[place] = self._send(place, tasks, waiting)
            while under_way:
                self._show(outcomes, len(under_way))
                place, answer = self._next()
                number, sent, meanwhile = under_way.pop(place)
                if self._is_again(answer, tasks[number], others=bool(under_way)):
                    waiting.appendleft(number)
                    self._tables[place] = state.Table()
                else:
                    outcomes[number] = self._outcome(tasks[number], answer, sent, meanwhile)
                if waiting and not isinstance(answer, Refused):
                    under_way[place] = self._send(place, tasks, waiting)
                elif isinstance(answer, Refused) and not under_way:  # nobody can be had: each would hear the same
                    raise answer
                else:
                    place.close()
            self._show(outcomes, 0)
        finally:
            for place in under_way:
                place.leave()
            for place in self._tables:
                place.close()
            self._shown.note(self._showing, self._said)
            self._shown.end(self._showing)
        return [outcome for outcome in outcomes if outcome is not None]

    def _next(self) -> tuple[BackgroundRunner, RunAnswer]:
        while True:
            try:
                return self._answers.get(timeout=self._activity.due_in_s)
            except queue.Empty:
                self._activity.tell()

    def _open(self, number: int) -> BackgroundRunner:
        place = BackgroundRunner(
            f"{self._label} {number + 1}",
            self._connect(f"spread-{token_hex(4)}"),
            self._shell,
            self._hear,
            lambda place, answer: self._answers.put((place, answer)),
            shows_values=False,
            keep=partial(self._shown.take, self._showing),
        )
        place.start()
        self._tables[place] = state.Table()
        return place

    def _hear(self, text: str) -> None:
        """Where a place is; only the wait for one is said."""
        self._waits = text if text.startswith("⏳") else ""

    def _send(self, place: BackgroundRunner, tasks: Sequence[SweepTask], waiting: deque[int]) -> SentTask:
        number = waiting.popleft()
        task = tasks[number]
        task.tries += 1
        namespace = self._shell.user_ns
        hidden = {name: namespace[name] for name in task.names if name in namespace}
        namespace.update(task.names)
        try:
            needs = state.needs(task.source, namespace)
            captured = state.capture(namespace, needs, table=self._tables[place])
            is_first = captured.parcel.base == 0
            meanwhile = state.depart(namespace, captured, is_aside=True)
        finally:
            for name in task.names:
                del namespace[name]
            namespace.update(hidden)
        place.ask(
            CellSubmitted(
                cell=CellId(token_hex(16)),
                request=RequestId(token_hex(16)),
                source=task.source,
                number=cell_number(self._shell),
                parts=tuple(captured.parts),
                lease_id=None if is_first or place.lease is None else place.lease.lease_id,
                resources=self._resources,
                is_call=task.result is not None,
            )
        )
        return number, captured, meanwhile

    @staticmethod
    def _is_again(answer: RunAnswer, task: SweepTask, *, others: bool) -> bool:
        """Whether the element is to be run once more, because of its place."""
        match answer:
            case LeaseChanged():
                return True
            case Refused():  # the line takes no more of this user: those that have a place go on
                return others
            case CellLost():
                return task.tries < _TRIES
        return False

    def _outcome(self, task: SweepTask, answer: RunAnswer, sent: state.Captured, meanwhile: state.Meanwhile) -> Outcome:
        if not isinstance(answer, CellFinished):
            if isinstance(answer, BulletinError):
                return Outcome(error=answer)
            assert isinstance(answer, BaseException), "a move is tried again"
            raise answer
        if not answer.parts:
            return Outcome(error=error_to_raise(answer, None))
        try:
            applied = state.apply(answer.parts, self._shell.user_ns, sent=sent, meanwhile=meanwhile)
        except CannotReturn as error:
            return Outcome(error=error)
        show_stayed(applied.stayed, self._shell)
        if answer.ended.outcome != "returned":
            return Outcome(error=error_to_raise(answer, applied.extra.get("error")))
        return Outcome(applied.extra.get("result") if task.result is None else applied.aside.get(task.result))

    def _show(self, outcomes: Sequence[Outcome | None], running: int) -> None:
        total, ended = len(outcomes), [outcome for outcome in outcomes if outcome is not None]
        full = _BAR * len(ended) // total
        facts = [f"{len(ended)} of {total} done"]
        if running:
            facts.append(f"{running} under way")
        if failed := sum(outcome.error is not None for outcome in ended):
            facts.append(f"{failed} failed")
        waits = f" {self._waits}" if self._waits and not ended else ""
        self._said = f"{self._label} {'█' * full}{'░' * (_BAR - full)} {', '.join(facts)}{waits}"
        self._line.say(self._said)


def names_of(element: object) -> dict[str, object]:
    """What a cell that is run for an element calls it: `each`, and the keys of a dict that can be names."""
    is_named = isinstance(element, dict) and all(isinstance(key, str) and key.isidentifier() for key in element)
    return {**(element if is_named and isinstance(element, dict) else {}), "each": element}
