"""Values of context variables that libraries have, as they were when the session of this process began."""

from collections.abc import Iterable, Iterator
from contextvars import ContextVar, copy_context
from typing import Any

from .library_places import LibraryPlace
from .place_values import ABSENT
from .reducers import context_variables


class ContextValues:
    """The variables of libraries that have got a value in this session. One for a process, since contexts are."""

    def __init__(self) -> None:
        #: What there was when the session began: of an executor that was somebody else's, what that one left.
        self._begun: dict[ContextVar[Any], Any] = {}
        #: Of each variable that has got another value, where it is found.
        self._known: dict[ContextVar[Any], LibraryPlace | None] = {}

    def take_new(self) -> Iterator[tuple[LibraryPlace, ContextVar[Any]]]:
        """Find the variables of libraries that have got a value since, with their places; each once."""
        for variable, value in copy_context().items():
            if variable in self._known or self._begun.get(variable, ABSENT) is value:
                continue
            found = None if context_variables.is_setting(variable) else context_variables.place_of(variable)
            self._known[variable] = found and LibraryPlace(found.module, "", found.attribute, found.key)
            if found is not None:
                context_variables.OF_SESSION.add(variable)
                yield LibraryPlace(found.module, "", found.attribute, found.key), variable

    def forget(self, came: Iterable[object]) -> None:
        """Give what the session has set, here or there, its value of before; what nobody takes back counts as begun."""
        found = {variable for variable, place in self._known.items() if place is not None}
        for variable in found | {value for value in came if type(value) is ContextVar}:
            context_variables.set_to(variable, context_variables.as_value(self._begun, variable))
        self._known.clear()
        context_variables.OF_SESSION.clear()
        context_variables.TRAVELLED.clear()
        self._begun = dict(copy_context().items())
        context_variables.OF_OTHERS.clear()
        context_variables.OF_OTHERS.update(self._begun)
