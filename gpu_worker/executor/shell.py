"""The IPython shell of an executor: a notebook's, whose outputs go to the relay and whose input comes from the pipe."""

import builtins
import contextlib
import getpass
import os
import sys
import traceback
import types
import warnings
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.core.pylabtools import activate_matplotlib
from traitlets import Type
from traitlets.config import Config

from bulletin.cell_words import EXITED
from bulletin.wire.messages import Asked, ErrorText
from gpu_worker.executor import comms, notebook_magics
from gpu_worker.executor.cell_display import CellDisplayHook, CellPublisher
from gpu_worker.executor.relay import Relay
from gpu_worker.executor.tracebacks import error_message, hide_bulletin_frames, register_cell_module

#: As ipykernel has it: programs that the cell starts show colours, and page nothing.
_TERMINAL = {
    "TERM": "xterm-color",
    "CLICOLOR": "1",
    "FORCE_COLOR": "1",
    "CLICOLOR_FORCE": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}


#: IPython's own annotations are partial and differ between its versions.
_Untyped: Any = InteractiveShell
_activate: Any = activate_matplotlib


def _show_wide_frames() -> None:
    """Let pandas show wide frames: it was imported when there was no shell, and took that for a terminal."""
    config: Any = sys.modules.get("pandas._config.config")
    option = getattr(config, "_registered_options", {}).get(_COLUMNS)
    if option is not None and option.defval == 0:
        config._registered_options[_COLUMNS] = option._replace(defval=20)
        config.set_option(_COLUMNS, 20)


_COLUMNS = "display.max_columns"


def _look_like_a_kernel() -> None:
    """Put a stand-in for ipykernel's shell module where libraries look for it to tell a notebook from a terminal."""
    stand_in: Any = types.ModuleType("ipykernel.zmqshell")
    stand_in.ZMQInteractiveShell, stand_in.ZMQDisplayPublisher = ZMQInteractiveShell, CellPublisher
    sys.modules.setdefault(stand_in.__name__, stand_in)


class ZMQInteractiveShell(_Untyped):  # type: ignore[misc]
    """The shell. It bears the name by which libraries know a notebook from a terminal (rich, tqdm, plotly do)."""

    displayhook_class = Type(CellDisplayHook)
    display_pub_class = Type(CellPublisher)
    #: pandas takes a shell without one for a terminal, and cuts wide frames.
    kernel: object = None

    def __init__(self, relay: Relay) -> None:
        _look_like_a_kernel()
        config = Config(IPKernelApp=Config())
        config.HistoryManager.enabled = False
        self.relay = relay
        #: What the user types, as the reader of the pipe hands it over.
        self.answers: SimpleQueue[str] = SimpleQueue()
        #: The cell's own result; statements that it runs in turn (`%run`) have others.
        self._cell_result: ExecutionResult | None = None
        #: The error that ends the cell, and its traceback as IPython shows it.
        self._shown_error: tuple[BaseException, list[str]] | None = None
        #: The cell, and the Python that it is once IPython has transformed it.
        self._source = ""
        self._python: str | None = None
        #: The filter that silences IPython's advice how to leave a terminal.
        self._advice_filter: object = None
        #: How many lines stand above the cell's source in the notebook.
        self._lines_above = 0
        #: The notebook's request that runs the cell.
        self.request = ""
        super().__init__(config=config)
        comms.connect(relay, self)
        for magic in ("gpu", "remote", "cpu"):
            self.register_magic_function(_refuse_second, "cell", magic)
        notebook_magics.register(self)
        builtins.input = self._input
        getpass.getpass = self._getpass
        _show_wide_frames()
        inline: Any = sys.modules.get("matplotlib_inline.backend_inline")
        if inline is not None:  # the zygote imported it when there was no shell to show figures in
            backend = os.environ.get("MPLBACKEND", "inline")
            with contextlib.suppress(ImportError):
                _activate(backend)  # or figures that nobody names would not be shown
            inline.configure_inline_support(self, backend)

    # --- one cell

    def begin(self, source: str, number: int, request: str, *, is_whole: bool = False) -> None:
        """Prepare for the cell with this execution count, that the notebook was asked for by this request.

        `is_whole`: it stands below no other line.
        """
        self.request = request
        comms.reinstall()
        self.execution_count = number
        for history in (self.history_manager.input_hist_parsed, self.history_manager.input_hist_raw):
            del history[number:]
            history.extend([""] * (number - len(history)))  # In[number] is this cell, whatever ran elsewhere
        with contextlib.suppress(OSError):  # the folder is gone
            self.user_ns["_dh"][-1:] = [os.getcwd()]  # noqa: PTH109  `%cd` says from it where it is
        # The cell stands below its %%gpu line, and IPython takes empty lines off its head.
        self._lines_above = 0 if is_whole else 1 + source[: len(source) - len(source.lstrip())].count("\n")
        self._source, self._python = source, None
        self._cell_result = self._shown_error = None

    def get_parent(self) -> dict[str, Any]:
        """Return the request that the output belongs to, of which only the id is known here.

        Widgets that catch output ask for it.
        """
        return {"header": {"msg_id": self.request, "msg_type": "execute_request"}} if self.request else {}

    async def run(self, source: str, *, silent: bool) -> Any:
        """Run the cell inside the running loop, where `await` and tasks work; return IPython's result of it."""
        try:
            transformed = self.transform_cell(source)
        except Exception:  # noqa: BLE001  IPython comes upon it again, and shows it as the cell's error
            return self.run_cell(source, store_history=not silent, silent=silent)
        if not self.should_run_async(source, transformed_cell=transformed):
            return self.run_cell(source, store_history=not silent, silent=silent)
        result = None
        try:
            result = await self.run_cell_async(
                source, store_history=not silent, silent=silent, transformed_cell=transformed
            )
        finally:
            self.events.trigger("post_execute")
            if not silent:
                self.events.trigger("post_run_cell", result)
        return result

    def should_run_async(self, raw_cell: str, *, transformed_cell: str | None = None, **keys: Any) -> bool:
        """Tell whether the cell awaits something.

        IPython compiles a cell twice to find out; one without the words `await` and `async` is not compiled at all.
        """
        python = transformed_cell if transformed_cell is not None else raw_cell
        if "await" not in python and "async" not in python:
            return False
        return bool(super().should_run_async(raw_cell, transformed_cell=transformed_cell, **keys))

    def error_text(self, error: BaseException) -> ErrorText:
        """Describe the cell's error, with the traceback as IPython has shown it, or without one where it has not."""
        if self._shown_error is not None and self._shown_error[0] is error:
            lines = self._shown_error[1]
        else:
            lines = traceback.format_exception_only(error)
        return ErrorText(name=type(error).__name__, value=error_message(error), traceback=tuple(lines))

    def transform_cell(self, raw_cell: str) -> str:
        """Transform code into Python; the cell itself below as many empty lines as stand above it in the notebook."""
        if raw_cell is not self._source:
            return str(super().transform_cell(raw_cell))
        if self._python is None:  # IPython asks twice
            self._python = "\n" * self._lines_above + str(super().transform_cell(raw_cell))
        return self._python

    async def run_code(self, code_obj: types.CodeType, result: Any = None, *, async_: bool = False) -> bool:
        """Run one statement; remember which result is the cell's own."""
        if self._cell_result is None:
            self._cell_result = result
        try:
            return bool(await super().run_code(code_obj, result, async_=async_))
        finally:
            if self._advice_filter is not None:
                with contextlib.suppress(ValueError):
                    warnings.filters.remove(self._advice_filter)  # type: ignore[attr-defined]
                self._advice_filter = None

    # --- errors

    def _get_exc_info(self, exc_tuple: Any = None) -> Any:
        kind, error, at = super()._get_exc_info(exc_tuple)
        hide_bulletin_frames(error)
        register_cell_module(error, self.user_ns)
        return kind, error, error.__traceback__ if exc_tuple is None else at

    def _showtraceback(self, etype: type[BaseException], evalue: BaseException, stb: list[str]) -> None:
        if issubclass(etype, SystemExit):  # IPython then warns how to leave a terminal
            warnings.filterwarnings("ignore", "To exit: use", UserWarning)
            self._advice_filter = warnings.filters[0]
        if self._ends_cell(evalue):
            self._shown_error = evalue, stb  # goes back with the cell, which ends here
        else:
            content = {"ename": etype.__name__, "evalue": error_message(evalue), "traceback": stb}
            self.relay.publish("error", content)

    def show_usage_error(self, exc: BaseException) -> None:
        """Show one line for a magic that is used wrongly; if it ends the cell, the notebook shows it."""
        if self._ends_cell(exc):
            self._shown_error = exc, [f"UsageError: {error_message(exc)}"]
        else:
            super().show_usage_error(exc)

    def _ends_cell(self, error: BaseException) -> bool:
        """Tell whether the cell ends with this error: `%tb` and the like show others."""
        result = self._cell_result
        return result is None or error is result.error_in_exec or error is result.error_before_exec

    # --- input

    def _input(self, prompt: object = "", /) -> str:
        return self._ask(str(prompt), password=False)

    def _getpass(self, prompt: str = "Password: ", *_: object, **__: object) -> str:
        return self._ask(str(prompt), password=True)

    def _ask(self, prompt: str, *, password: bool) -> str:
        if self.relay.is_child:
            raise EOFError("a forked process cannot ask the user")
        while not self.answers.empty():
            self.answers.get()  # typed for a question that was interrupted
        self.relay.send(Asked(cell=self.relay.owners.cell, prompt=prompt, password=password))
        return self.answers.get()

    # --- what a notebook has and a terminal has not

    def init_environment(self) -> None:
        """Tell programs, in the environment, what this "terminal" can do."""
        os.environ.update(_TERMINAL)

    def init_hooks(self) -> None:
        """Show help in the notebook instead of in a pager."""
        super().init_hooks()
        self.set_hook("show_in_pager", self._show_page, 99)

    def _show_page(self, _shell: object, page: Any, start: int = 0, *_: object, **__: object) -> None:
        data = page if isinstance(page, dict) else {"text/plain": page}
        self.relay.publish("payload", {"source": "page", "data": data, "start": max(0, start)})

    def set_next_input(self, text: str, replace: bool = False) -> None:  # noqa: FBT001, FBT002
        """Put a text into the notebook's next cell, or into this one."""
        self.relay.publish("payload", {"source": "set_next_input", "text": text, "replace": replace})

    def enable_gui(self, gui: str | None = None) -> None:
        """Refuse what needs a screen, which the executor does not have."""
        if gui not in (None, "inline", "agg"):
            raise UsageError(
                f"There is no screen where the cell runs, so {gui} cannot be used. Try %matplotlib inline."
            )

    def ask_exit(self) -> None:
        """End the cell, as `exit` ends a script."""
        raise SystemExit(EXITED)

    @contextlib.contextmanager
    def _tee(self, channel: str) -> Iterator[None]:  # noqa: ARG002
        """Keep no copy of what is printed, as IPython does for ever."""
        yield


def _refuse_second(_line: str, _cell: str) -> None:
    raise UsageError("This cell is on the pool already: only its first line says where it runs. Leave this one out.")
