"""`gpu`: what a notebook writes to run a block or a function on the pool. Everywhere else the same code runs in place.

The notebook's extension says who takes the work (`serve`). An executor, a script, or a notebook with `BULLETIN=off` has
nobody: there a block is a block and a function is a function. The object travels by its name, so code that uses it can.
"""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from bulletin.errors import CannotOffload, SomeFailed, name_kind

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Outcome:
    """What came of one element: its value, or its error."""

    value: object = None
    error: BaseException | None = None


class Taker(Protocol):
    """Who runs work on the pool."""

    @property
    def is_able(self) -> bool:
        """Whether there may be a pool, and this is the process that may ask it."""

    def check(self, options: Mapping[str, object]) -> None:
        """Raise BadOption if these options of %%gpu, as Python writes them, are not understood."""

    def run(self, work: Callable[[], object], options: Mapping[str, object], *, is_block: bool) -> object:
        """Run it as a cell, and return its result or raise what it raised. A coroutine function is awaited there.

        Raises a BulletinError where the pool cannot run it.
        """

    def map(
        self,
        function: Callable[[Any], object],
        items: Sequence[object],
        options: Mapping[str, object],
        parallel: int | None,
    ) -> list[Outcome]:
        """Run it for each item, on several places at once, and return what came of each, in order."""

    def ran_here(self) -> None:
        """Warn, once, that a block was entered where nobody could take it out of its place."""


_taker: Taker | None = None


def serve(taker: Taker | None) -> None:
    """Let this taker run the work of this process from now on; with None, work runs in place."""
    global _taker
    _taker = taker


def is_off() -> bool:
    """Tell whether Bulletin is switched off in this process: `BULLETIN=off`."""
    return os.environ.get("BULLETIN", "").lower() == "off"


def taker() -> Taker | None:
    """Return who runs the work of this process on the pool; None where it runs in place."""
    if _taker is None or is_off() or not _taker.is_able:
        return None
    return _taker


class Gpu:
    """What stands after `with`, or above a function. Called with options, it is the same with those options."""

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        self._options = dict(options or {})

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(self, /, **options: object) -> "Gpu": ...
    def __call__(self, function: Callable[P, R] | None = None, /, **options: object) -> "Callable[P, R] | Gpu":
        """`gpu(gpus=2, time="1 h")`, with the options of %%gpu; or, as a decorator, a function that runs on the pool.

        Raises
        ------
        BadOption
            If an option is not understood.
        CannotOffload
            If what is decorated is not a function, or is a generator: it would have to run in two places at once.
        """
        if function is not None:
            return _offloaded(function, self)
        if (served := taker()) is not None:
            served.check(options)
        return Gpu({**self._options, **options})

    @property
    def takes_blocks(self) -> bool:
        """Whether a `with` block of a notebook's cell goes to the pool now."""
        return taker() is not None

    def run_block(self, block: FunctionType) -> Any:
        """Run the body of a `with` block on the pool. Tracebacks name it as the function that it stands in."""
        served = taker()
        assert served is not None, "asked for after takes_blocks"
        outer = block.__qualname__.rpartition(".")[0].removesuffix(".<locals>") or "<module>"
        block.__code__ = block.__code__.replace(co_name=outer.rpartition(".")[2], co_qualname=outer)
        return served.run(block, self._options, is_block=True)

    def refuse(self, what: str, remedy: str) -> None:
        """Raise CannotOffload: a block with this in it cannot be taken out of its place."""
        raise CannotOffload(f"A `with gpu:` block cannot hold {what}.", remedy)

    def run_function(self, function: Callable[[], object]) -> Any:
        """Run a decorated function on the pool, with its arguments bound; in place where nobody takes it."""
        served = taker()
        return function() if served is None else served.run(function, self._options, is_block=False)

    def map(
        self,
        function: Callable[[Any], R],
        items: Iterable[Any],
        *,
        parallel: int | None = None,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[R | BaseException]:
        """`[function(item) for item in items]`, on as many places of the pool as it gives at once.

        Each element works on copies: what it changes in the notebook's variables stays there. One that fails does not
        stop the others.

        Parameters
        ----------
        function, items
            Both travel as the variables of a cell do.
        parallel
            How many places to ask for; None is as many as the pool has, and no more than elements.
        errors
            "return" puts an error in the place of the element that failed.

        Raises
        ------
        SomeFailed
            When all have ended and some have failed; it has the results of the others.
        """
        if errors not in {"raise", "return"}:
            raise ValueError(f"errors is {errors!r}; it can be 'raise' or 'return'")
        elements, served = list(items), taker()
        if not elements:
            return []
        if served is None:
            outcomes = [_tried(function, item) for item in elements]
        else:
            outcomes = served.map(function, elements, self._options, parallel)
        results: list[Any] = [outcome.value if outcome.error is None else outcome.error for outcome in outcomes]
        failed = {number: outcome.error for number, outcome in enumerate(outcomes) if outcome.error is not None}
        if failed and errors == "raise":
            raise SomeFailed(results, failed)
        return results

    def __enter__(self) -> Self:
        if (served := taker()) is not None:  # the block stands in a module: only the notebook's own cells are rewritten
            served.ran_here()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"gpu({', '.join(f'{name}={value!r}' for name, value in self._options.items())})".removesuffix("()")

    def __reduce__(self) -> str | tuple[Any, ...]:
        return "gpu" if self is gpu else (Gpu, (self._options,))


gpu = Gpu()


def _tried(function: Callable[[Any], object], item: object) -> Outcome:
    try:
        return Outcome(function(item))
    except Exception as error:  # noqa: BLE001 - the user's function: it is given back, or raised, when all have ended
        return Outcome(error=error)


def _offloaded(function: Callable[P, R], lender: Gpu) -> Callable[P, R]:
    if not callable(function):
        raise CannotOffload(
            f"gpu() takes a function, or options by their names, and this is {name_kind(type(function).__name__)}.",
            'Write options as in `with gpu(gpus=2, time="1 h"):`.',
        )
    if not inspect.isroutine(function):
        kind = "a class" if inspect.isclass(function) else name_kind(type(function).__name__)
        raise CannotOffload(
            f"@gpu stands above a function, and this is {kind}.", "Put it above the method that needs it."
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise CannotOffload(
            f"@gpu cannot run the generator {function.__name__}(): it would be in two places at once.",
            "Let it return a list.",
        )

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def elsewhere_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            if taker() is None:
                return await function(*args, **kwargs)

            async def call() -> Any:
                return await function(*args, **kwargs)

            return lender.run_function(call)

        return elsewhere_async  # type: ignore[return-value]  # a coroutine function, as the one it wraps

    @functools.wraps(function)
    def elsewhere(*args: P.args, **kwargs: P.kwargs) -> R:
        result: R = lender.run_function(lambda: function(*args, **kwargs))
        return result

    return elsewhere
