"""A scheduler beside which another one decides the same, one that remembers nothing of what it has found before.

What is remembered, from step to step and from one request to the next, only saves time. So whoever finds it all anew
decides the same; where not, something is remembered for longer than it holds.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from gpu_worker.scheduler.actions import Action
from gpu_worker.scheduler.deferral import MANY
from gpu_worker.scheduler.events import Event
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.nodes.room_index import RoomIndex
from gpu_worker.scheduler.placement.feasible import FeasibleShapes
from gpu_worker.scheduler.placement.queue_walk import QueueWalk
from gpu_worker.scheduler.placement.room_left import RoomLeft
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from gpu_worker.scheduler.queue.closed import Closed
from gpu_worker.scheduler.queue.next_request import NextRequest
from gpu_worker.scheduler.queue.takers import TakerBook


class DecidesOtherwise(AssertionError):
    """What is remembered has changed what is decided."""


class Beside(Scheduler):
    """Decides as it is, and once more without what is remembered; both must be the same."""

    def __init__(self, settings: SchedulerSettings, *, many: int = MANY) -> None:
        super().__init__(settings, many=many)
        self._anew = Scheduler(settings, many=many)

    def step(self, event: Event, now_ms: int, *, decides: bool = True) -> list[Action]:
        """Take in one fact twice."""
        actions = super().step(event, now_ms, decides=decides)
        with forgetting():
            anew = self._anew.step(event, now_ms, decides=decides)
            due_ms = self._anew.deadline()
        if (actions, self.deadline()) != (anew, due_ms):
            raise DecidesOtherwise(f"{event}\nas it is: {actions}, {self.deadline()}\nanew: {anew}, {due_ms}")
        return actions


@contextmanager
def forgetting() -> Iterator[None]:
    """Forget all that was found before, each time before something is looked up."""
    with ExitStack() as stack:
        for where, name, forget in _LOOK_UPS:
            stack.enter_context(_first(where, name, forget))
        yield


@contextmanager
def _first(where: type, name: str, forget: Callable[..., None]) -> Iterator[None]:
    """Do something of one's own before each call of a method."""
    method = getattr(where, name)

    def look_up(self: Any, *what: Any, **how: Any) -> Any:
        forget(self, *what)
        return method(self, *what, **how)

    setattr(where, name, look_up)
    try:
        yield
    finally:
        setattr(where, name, method)


def _forget_next(found: NextRequest, closed: Closed) -> None:
    for known in (*found._known.values(), closed.known, closed.room_cache):
        known.clear()


def _forget_takers(book: TakerBook, *_: object) -> None:
    book._own_cache.clear()
    book._inside_cache.clear()


def _forget_left(left: RoomLeft, *_: object) -> None:
    left._cache.clear()
    left._left_cache.clear()


def _forget_feasible(feasible: FeasibleShapes, *_: object) -> None:
    feasible._left_cache.clear()


def _forget_taken(walk: QueueWalk, *_: object) -> None:
    walk._taken = -1


#: Where something is looked up that may be remembered, and how that is forgotten.
_LOOK_UPS: tuple[tuple[type, str, Callable[..., None]], ...] = (
    (NextRequest, "find", _forget_next),
    (TakerBook, "may_take", _forget_takers),
    (TakerBook, "may_take_inside", _forget_takers),
    (RoomLeft, "find", _forget_left),
    (RoomLeft, "on", _forget_left),
    (RoomIndex, "find", lambda index, *_: index.forget()),
    (FeasibleShapes, "has_left", _forget_feasible),
    (FeasibleShapes, "has_left_on", _forget_feasible),
    (QueueWalk, "skip_hopeless", _forget_taken),
)
