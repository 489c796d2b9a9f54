"""%%gpu and %gpu."""

import atexit
import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from types import ModuleType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from msgspec import structs
from traitlets import Bool, CaselessStrEnum, Enum, Float, Unicode

from bulletin import state
from bulletin.errors import BadOption, BulletinError, CellLost, NoPool
from bulletin.ids import CellId, KernelId, RequestId
from bulletin.offload import Outcome
from bulletin.state import modules
from bulletin.state.names import HEARD, users
from bulletin_magic import discovery, glance
from bulletin_magic.activity import Activity
from bulletin_magic.background import Background, Backgrounds
from bulletin_magic.cell import Conversation
from bulletin_magic.commands import advise, stands_above_code
from bulletin_magic.comms import Comms
from bulletin_magic.completion import complete
from bulletin_magic.debugging import Debugging
from bulletin_magic.display import StatusLine, cell_text, message_id, show_note
from bulletin_magic.echoes import Echoes
from bulletin_magic.facts import (
    CellAsked,
    CellsAsked,
    CellsFound,
    Finished,
    LeaveAsked,
    Left,
    Moved,
    PictureAsked,
    Pictured,
    Wish,
)
from bulletin_magic.here import NEVER_BEGAN, describe_fallback, run_here
from bulletin_magic.holdings import describe_holdings
from bulletin_magic.left import choose, describe_found
from bulletin_magic.link import Link
from bulletin_magic.mode import Mode
from bulletin_magic.moves import call_of, describe_pushed, describe_reset, refuse_stayed
from bulletin_magic.options import parse
from bulletin_magic.outcome import land
from bulletin_magic.outputs import cell_number
from bulletin_magic.plan import describe_plan, describe_wait
from bulletin_magic.receipts import Receipts, describe_place, describe_receipts, receipt_of
from bulletin_magic.shared import SharedState
from bulletin_magic.spread import Spread, Task, names_of
from bulletin_magic.status import panel

_UNDER_WAY = (
    "Another %%gpu cell of this notebook is under way.",
    "Wait for it, or run this one in another notebook.",
)
_HEAR = f"__import__('gpu_worker.executor.comms', fromlist=['hear']).hear({HEARD})"
_LAST_SHOWN, _RECEIPTS_SHOWN = 3, 20
_HOLDS_NONE = "This notebook holds no GPU."
_MEANT_TWO = "With one %, this only shows the pool, and the code below runs here. To run it on the pool, write %%gpu."
_MISPLACED = "`%%gpu` must be the first line of its cell. The lines above it have run, here; those below have not."


@magics_class
class BulletinMagics(Magics):
    """Cells on a GPU of a shared pool."""

    receipts = Bool(
        default_value=True, help="Show one line about time, place and memory after a %%gpu cell that took a while."
    ).tag(config=True)
    activity_every_s = Float(
        60.0,
        help="How often the kernel says that it is busy while a cell waits or runs on the pool, in seconds. Well below "
        "the time after which the hub ends idle servers: that counts what kernels say.",
    ).tag(config=True)
    mode = Enum(
        ("off", "on"),
        default_value="off",
        help="`on`: kernels start as if their first cell were `%gpu on`. The environment variable BULLETIN, where it "
        "is `on` or `off`, has the last word.",
    ).tag(config=True)
    mode_options = Unicode(
        "", help="The options of %%gpu that each cell has in a kernel that starts with `mode` on, as in `--time 1h`."
    ).tag(config=True)

    on_restart = CaselessStrEnum(
        ["detach", "cancel"],
        "detach",
        help="What becomes of a %%gpu cell whose kernel dies: detach: it goes on, and `%gpu attach` in your "
        "next kernel has all of it. cancel: it is ended after half a minute.",
    ).tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell=shell)
        self._shell = shell
        self._place: discovery.Place | None = None
        self._link: Link | None = None
        self._is_busy, self._pid = False, os.getpid()
        self._shared = SharedState()
        self._backgrounds = Backgrounds(shell, self._connect_apart)
        self._comms = Comms(shell, self._bring)
        self._echoes = Echoes(shell, self._comms)
        self._debugging = Debugging(shell, self._debug)
        self._debugging.serve()
        self._turn = threading.RLock()  # comms may come in threads of their own
        self._is_bringing = False
        self._receipts = Receipts()
        self._wish: Wish | None = None  # of the last cell, and so of the lease, if one is held
        kernel = getattr(shell, "kernel", None)
        file = getattr(getattr(kernel, "parent", None), "connection_file", None)
        self._kernel = discovery.kernel_id(file)
        self._every_cell = Mode(shell)
        self._every_cell.serve()
        said = os.environ.get("BULLETIN", "").lower()
        if (said if said in {"on", "off"} else self.mode) == "on":
            self._every_cell.options = self.mode_options
        atexit.register(self.close)
        for magic in ("%gpu", "%%gpu", "%%remote"):
            shell.set_hook("complete_command", complete, str_key=magic)  # type: ignore[no-untyped-call]  # IPython's
        shell.events.register("post_run_cell", lambda _: modules.observe())

    @cell_magic("gpu")  # type: ignore[arg-type]  # IPython types its decorators for no argument
    def cell(self, line: str, cell: str) -> Background | list[object] | None:
        """Run this cell on a GPU of the pool, as if it ran here.

        The cell sees the notebook's variables, prints into the notebook, and leaves its results in the notebook's
        variables. If all GPUs are busy it waits, and says for how long and why. The stop button stops it.

            %%gpu
            model.fit(images, labels)

            %%gpu --gpus 2 --time "2 h" --label "big run"
            train(model)

        Options, all of which may be left out:

            --gpus N            how many GPUs, on one node (1)
            --gpu-type NAME     words of the GPU's name, as in A100; "MIG" or "1g.10gb" for a slice of one
            --gpu-memory "20 GB"  what each GPU must have
            --cpus N            how many CPUs of the GPU's node
            --memory "50 GB"    how much of that node's memory
            --time "30 min"     how long the cell may run; shorter cells wait less
            --qos NAME          the class of service, as your pool names them (interactive)
            --project NAME      which of your projects pays
            --label TEXT        a name for the cell in lists and reports
            --environment ID    one of the pool's environments
            --background NAME   run it while the notebook goes on; NAME.result() waits for it (QoS batch)
            --each NAME         run it once for each element of NAME, on several places; the values of its last line
            --max-wait "2 min"  give up if no GPU came free for so long
            --fallback cpu      run the cell here, without a GPU, where the pool does not run it: there is none, it
                                refuses the cell or your account, the cell waited for its --max-wait, or one of its
                                variables cannot travel
            --plan              run nothing; show what would be sent, how much of it is new, and what stays here

        `%gpu` shows the pool and what this notebook holds; `%gpu stop` gives the GPU back. For a part of a cell, write
        `with gpu:` above it; for a function, `@gpu`.
        """
        options = parse(line)
        wish = options.wish
        if not cell.strip():
            show_note(self._shell, "The cell is empty: nothing was run.")
            return None
        if options.is_plan:
            self._plan(cell, wish)
            return None
        if options.is_background:
            started = self._backgrounds.start(cell, options.name, wish)
            return None if options.name else started
        if options.each:
            return self._each(cell, options.each, wish)
        with self._alone():
            try:
                answer, captured, input_error = self._run(cell, wish, max_wait_ms=options.max_wait_ms)
            except NEVER_BEGAN as error:
                if not options.fallback:
                    raise
                why = error
            else:
                self._land(answer, captured, input_error)
                return None
        show_note(self._shell, describe_fallback(why))
        run_here(self._shell, cell, lines_above=0 if self._every_cell.sends(cell) else 1)
        return None

    def _each(self, cell: str, name: str, wish: Wish) -> list[object]:
        """Run the cell for each element of a variable: its last line's values, and errors in their places."""
        if name not in self._shell.user_ns:
            raise BadOption(f"The option --each of %%gpu: there is no variable {name!r}.")
        try:
            elements = list(self._shell.user_ns[name])
        except TypeError:
            raise BadOption(f"The option --each of %%gpu: {name} is not a list or the like.") from None
        tasks = [Task(cell, names_of(element), None) for element in elements]
        outcomes = self.spread(tasks, wish, f"%%gpu --each {name}", None)
        failed = [(number, outcome.error) for number, outcome in enumerate(outcomes) if outcome.error is not None]
        if failed:
            number, first = failed[0]
            text = f"{len(failed)} of {len(outcomes)} elements failed; at first number {number}: {type(first).__name__}"
            show_note(self._shell, f"{text}: {first}. The errors stand in their places.")
        return [outcome.value if outcome.error is None else outcome.error for outcome in outcomes]

    def spread(self, tasks: Sequence[Task], wish: Wish, words: str, parallel: int | None) -> list[Outcome]:
        """Run tasks on places of their own; what came of each, in order."""
        if not tasks:
            return []
        if parallel is None:
            looked = self._look()
            parallel = len(looked.picture.slots) if isinstance(looked, Pictured) else 1
        return Spread(self._shell, self._connect_apart, wish, words).run(tasks, max(1, parallel))

    def call(self, source: str, wish: Wish, check: Callable[[state.Captured], None]) -> None:
        """Run a line of ours that calls something of the user's, as a cell; it leaves its results as a cell does.

        `check` may raise because of what would stay behind.
        """
        with self._alone():
            answer, captured, input_error = self._run(source, wish, check)
            self._land(answer, captured, input_error)

    def _bring(self, message: Mapping[str, Any]) -> bool:
        """Let the twin of a widget hear what its view said; what its callbacks change comes back as from a cell.

        False where the executor that has the twin is not there any more. Waits for a cell that is under way: comms may
        come in threads of their own.
        """
        with self._turn:
            link, wish, lease = self._link, self._wish, self._shared.lease
            if link is None or wish is None or lease is None or not link.is_usable or link.lease != lease:
                return False
            self._is_bringing, namespace = True, self._shell.user_ns
            parts = {key: message[key] for key in ("header", "content", "metadata")}
            header = {key: value for key, value in parts["header"].items() if isinstance(value, str)}
            namespace[HEARD] = {**parts, "header": header, "buffers": [bytes(one) for one in message["buffers"]]}
            try:
                held = self._shared.holdings(namespace, is_kept=True)
                names = [value.name for value in held.values if value.name in namespace]
                names += [name for name in users(namespace) if isinstance(namespace[name], ModuleType)]
                answer = self._ask(_HEAR, state.Needs(reads=(HEARD, *names)), wish, is_call=True)
                if not isinstance(answer[0], Finished):
                    self._shared.forget()
                    return False
                land(answer[0], answer[1], self._shared, self._shell)
            except BulletinError as error:
                show_note(self._shell, str(error))
            finally:
                self._is_bringing = False
                namespace.pop(HEARD, None)
        return True

    def _debug(self) -> bool:
        """Debug the last cell in its executor. False where that is not there any more."""
        wish, lease = self._wish, self._shared.lease
        if wish is None or lease is None or self._link is None or self._link.lease != lease:
            return False
        with self._alone():
            answer, captured, input_error = self._run("%debug", wish)
            self._land(answer, captured, input_error)
        return True

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One cell at a time: it waits for the callback of a widget. Raises NoPool while another thread has a cell."""
        if not self._turn.acquire(blocking=self._is_bringing):
            raise NoPool(*_UNDER_WAY)
        try:
            yield
        finally:
            self._turn.release()

    def _land(self, answer: Finished, captured: state.Captured, input_error: Exception | None) -> None:
        try:
            land(answer, captured, self._shared, self._shell)
        except KeyboardInterrupt:
            if input_error is not None:
                raise input_error from None
            raise
        finally:
            for text in self._receipts.take(receipt_of(answer, cell_number(self._shell))):
                if self.receipts:
                    show_note(self._shell, text)

    def _run(
        self,
        cell: str,
        wish: Wish,
        check: Callable[[state.Captured], None] | None = None,
        max_wait_ms: int | None = None,
    ) -> tuple[Finished, state.Captured, Exception | None]:
        """Send the cell with what its executor does not have yet, and wait for its end."""
        plan = state.needs(cell, self._shell.user_ns)
        waited_ms, self._wish = 0, wish
        while True:
            left_ms = None if max_wait_ms is None else max(1, max_wait_ms - waited_ms)
            answer, captured, input_error = self._ask(
                cell, plan, wish, check, is_call=check is not None, max_wait_ms=left_ms
            )
            if isinstance(answer, Finished):
                answer = structs.replace(answer, waited_ms=answer.waited_ms + waited_ms)
                return answer, captured, input_error
            waited_ms += answer.waited_ms
            self._shared.forget()

    def _ask(
        self,
        cell: str,
        plan: state.Needs,
        wish: Wish,
        check: Callable[[state.Captured], None] | None = None,
        *,
        is_call: bool,
        max_wait_ms: int | None = None,
    ) -> tuple[Finished | Moved, state.Captured, Exception | None]:
        """Send the cell to the executor that has the rest of its state, and wait for its end."""
        captured = self._shared.capture(self._shell.user_ns, plan)
        if check is not None:
            check(captured)
        name = token_hex(16)
        self._echoes.began(CellId(name))
        asked = CellAsked(
            cell=CellId(name),
            request=RequestId(name),
            source=cell,
            number=cell_number(self._shell),
            parts=tuple(captured.parts),
            lease=self._shared.lease,
            wish=wish,
            message=message_id(self._shell),
            max_wait_ms=max_wait_ms,
            is_call=is_call,
            outlives_kernel=self.on_restart == "detach",
            is_whole=self._every_cell.sends(cell),
        )
        answer, input_error = self._converse(asked)
        assert isinstance(answer, Finished | Moved)
        return answer, captured, input_error

    @line_magic("gpu")  # type: ignore[arg-type]  # see above
    def line(self, line: str) -> None:
        """Show or change where %%gpu cells of this notebook run.

            %gpu                 the pool, its queue, your quota, what this notebook holds, its last cells
            %gpu receipts [N]    what the last N cells of this notebook cost (20)
            %gpu vars            the variables of this notebook that are on the pool
            %gpu push NAMES      send these variables now, so that the next cell need not
            %gpu reset           end the process on the pool; the next cell has a fresh one, with your variables
            %gpu stop            give the GPU back now, instead of when somebody needs it
            %gpu on [OPTIONS]    from the next cell on, run every cell on the pool, with these options of %%gpu
            %gpu off             run cells here again, except those with %%gpu
            %gpu attach          your cells whose notebook was closed or died
            %gpu attach ID       show all that such a cell printed, wait for its end, bring its variables here
            %gpu connect PATH    use the pool of this connection file

        A cell that starts with %%gpu runs on the pool; `%%gpu?` shows its options. While the pool runs every cell, one
        that starts with %%cpu runs here.
        """
        verb, _, rest = line.strip().partition(" ")
        rest = rest.strip().strip("\"'")
        if verb in {"", "status"} and not rest:
            if stands_above_code(cell_text(self._shell)):
                show_note(self._shell, _MEANT_TWO)
            answer, _ = self._converse(PictureAsked())
            assert isinstance(answer, Pictured)
            place, last = self._place.words if self._place else "", self._receipts.last(_LAST_SHOWN)
            self._shell.display_pub.publish(panel(answer, place, self._every_cell.options, last))
        elif verb == "receipts" and (not rest or rest.isdecimal()):
            last = self._receipts.last(int(rest[:4] or _RECEIPTS_SHOWN))
            self._shell.display_pub.publish(describe_receipts(last))
        elif verb == "vars" and not rest:
            self._vars()
        elif verb == "push" and rest:
            self._push(list(dict.fromkeys(rest.replace(",", " ").split())))
        elif verb == "reset" and not rest:
            self._reset()
        elif verb == "stop" and not rest:
            self._stop()
        elif verb == "on":
            self._switch_on(line.strip().partition(" ")[2].strip())
        elif verb == "off" and not rest:
            self._switch_off()
        elif verb == "attach":
            self._attach(rest)
        elif verb == "connect" and rest:
            place_named = discovery.from_file(Path(rest).expanduser())
            self._leave()
            self._place = place_named
            show_note(self._shell, f"%%gpu cells of this notebook now run on the pool {place_named.words}.")
        else:
            raise BadOption(advise(line.strip()))

    @cell_magic("remote")  # type: ignore[arg-type]  # see above
    def remote(self, line: str, cell: str) -> None:
        """Run this cell on the pool without a GPU: `%%gpu --gpus 0`. It takes the other options of %%gpu."""
        if re.search(r"(^|\s)--gpus\b", line):
            raise BadOption("%%remote asks for no GPU. To have some, start the cell with %%gpu.")
        self.cell(f"--gpus 0 {line}", cell)

    @cell_magic("cpu")  # type: ignore[arg-type]  # see above
    def here(self, line: str, cell: str) -> None:
        """Run this cell here, in the notebook, after `%gpu on`. It takes no options."""
        if line.strip():
            raise BadOption(f"%%cpu takes no options: {line.strip()!r} cannot stand beside it.")
        shell: Any = self._shell
        shell.run_cell(cell)  # below another magic: as the first line of a cell, it is a remark

    @line_magic("%gpu")  # type: ignore[arg-type]  # see above
    def misplaced(self, _line: str) -> None:
        """What IPython makes of a %%gpu that is not the first line of its cell."""
        raise UsageError(_MISPLACED)

    def close(self) -> None:
        """Give the session back and leave the pool."""
        if self._pid == os.getpid():
            self._backgrounds.close()
            self._leave()
            self._comms.close()
            self._debugging.stop()

    def _leave(self) -> None:
        """Give back what cells of this notebook hold; background cells go on."""
        if self._link is not None and self._pid == os.getpid():
            self._link.close()
            self._link = None

    def leave(self) -> None:
        """Close, and let the notebook's cells alone."""
        self.close()
        self._every_cell.stop()

    def _switch_on(self, options: str) -> None:
        parsed = parse(options)
        if parsed.is_plan or parsed.is_background or parsed.each:
            raise BadOption("%gpu on takes no --plan, --background or --each: these are for a cell that asks for them.")
        was_on, self._every_cell.options = self._every_cell.options is not None, options
        since = "Every cell of this notebook now runs" if was_on else "From the next cell on, every cell runs"
        how = f" with {options}" if options else " without options" if was_on else ""
        show_note(self._shell, f"{since} on the pool{how}. %%cpu above a cell keeps it here; %gpu off ends this.")

    def _switch_off(self) -> None:
        was_on, self._every_cell.options = self._every_cell.options is not None, None
        again = "again" if was_on else "already"
        show_note(self._shell, f"Cells of this notebook run here {again}, except those with %%gpu.")

    def _plan(self, cell: str, wish: Wish) -> None:
        """Show what the cell would send, and whether it would wait. Nothing is run, leased or started."""
        self._check_free()
        looked, about = self._look(), []
        had = self._shared.lease
        is_fitting = self._wish is not None and wish.is_like(self._wish)
        is_kept = is_fitting and self._is_kept(looked)
        if had is not None and not is_fitting:
            about.append("Other options than those of the last cell mean another executor, which has nothing yet.")
        elif had is not None and not is_kept:
            about.append("The executor of the last cell is gone, so everything is sent to another one.")
        if isinstance(looked, Pictured):
            about.append(describe_wait(looked.picture, looked.where if is_fitting else None, wish))
        else:
            about.append(looked or "The cell would start a pool of your own first.")
        plan = self._shared.plan(self._shell.user_ns, state.needs(cell, self._shell.user_ns), is_kept=is_kept)
        self._shell.display_pub.publish(describe_plan(plan, about))

    def _vars(self) -> None:
        """Show what the pool holds of this notebook."""
        self._check_free()
        looked: Pictured | str | None = self._look() if self._shared.lease is not None else None
        held = self._shared.holdings(self._shell.user_ns, is_kept=self._is_kept(looked))
        where = looked.where if isinstance(looked, Pictured) else None
        doubt = looked if isinstance(looked, str) else ""
        self._shell.display_pub.publish(describe_holdings(held, where, doubt))

    def _look(self) -> Pictured | str | None:
        """The pool as it is; a sentence where it cannot be asked; None where it would have to be started first."""
        may_start = self._place is None or self._place.is_own
        is_connected = self._link is not None and self._link.is_usable and self._link.is_settled
        if may_start and not is_connected and not glance.starts_none(os.environ):
            return None
        try:
            answer, _ = self._converse(PictureAsked())
        except BulletinError as error:
            return error.problem if isinstance(error, NoPool) else str(error)
        assert isinstance(answer, Pictured)
        return answer

    def _is_kept(self, looked: Pictured | str | None) -> bool:
        """Whether the executor that has our half of the table is still there, or nobody can say."""
        if isinstance(looked, Pictured):
            return looked.where is not None and looked.where.lease == self._shared.lease
        return looked is not None and self._shared.lease is not None

    def _stop(self) -> None:
        if self._link is None or not self._link.is_usable:
            show_note(self._shell, _HOLDS_NONE)
            return
        answer, _ = self._converse(LeaveAsked())
        assert isinstance(answer, Left)
        where = answer.where
        show_note(self._shell, f"Given back: {describe_place(where)}." if where else _HOLDS_NONE)

    def _reset(self) -> None:
        """End the executor: what is only there is gone, what is here stays."""
        held = self._shared.holdings(self._shell.user_ns, is_kept=self._shared.lease is not None)
        had = self._link is not None and self._link.is_usable
        if had:
            self._converse(LeaveAsked())
        self._shared.forget()
        show_note(self._shell, describe_reset(held, had=had))

    def _push(self, names: list[str]) -> None:
        """Let a cell on the pool mention the names: what it needs is sent."""
        source, wish = call_of(names, self._shell.user_ns), self._wish or Wish()
        answer, captured, input_error = self._run(source, wish, refuse_stayed(names))
        self._land(answer, captured, input_error)
        show_note(self._shell, describe_pushed(names, answer))

    def _attach(self, name: str) -> None:
        """List the cells that nodes have, or take one over."""
        answer, _ = self._converse(CellsAsked())
        assert isinstance(answer, CellsFound)
        if not name:
            print(describe_found(answer.found))  # noqa: T201 - the answer to a question that was typed
            return
        note = choose(answer.found, name)
        if note is None:
            raise BadOption(f"No cell of yours, or more than one, has the name {name!r}. `%gpu attach` lists them.")
        nothing = state.capture({}, state.needs("", {}))
        self._shared.forget()  # the lease of before is given back
        asked = CellAsked(
            cell=note.cell,
            request=RequestId(token_hex(16)),
            source="",
            number=cell_number(self._shell),
            parts=(),
            joins=note.agent,
        )
        joined, input_error = self._converse(asked)
        assert isinstance(joined, Finished)
        try:
            land(joined, nothing, SharedState(), self._shell)
        except KeyboardInterrupt:
            if input_error is not None:
                raise input_error from None
            raise

    def _check_free(self) -> None:
        """Raise NoPool where this process, or this moment, is not one for the pool."""
        if os.getpid() != self._pid:
            raise NoPool("A process that was forked from a notebook has no pool.", "Use %%gpu in the notebook itself.")
        if self._is_busy:
            raise NoPool(*_UNDER_WAY)

    def _converse(
        self, asked: CellAsked | PictureAsked | CellsAsked | LeaveAsked
    ) -> tuple[Finished | Moved | Pictured | CellsFound | Left, Exception | None]:
        self._check_free()
        self._is_busy = True
        line = StatusLine(self._shell, is_whole=isinstance(asked, CellAsked) and asked.is_whole)
        conversation = None
        try:
            activity = Activity(self._shell, self.activity_every_s)
            conversation = Conversation(self._connect(line), self._shell, line, self._comms, activity)
            return conversation.hold(asked), conversation.input_error
        except CellLost:  # of a cell that was ended because nobody could answer it
            if conversation is not None and conversation.input_error is not None:
                raise conversation.input_error from None
            raise
        finally:
            line.clear()
            self._is_busy = False

    def _connect_apart(self, name: str) -> Link:
        """A link of its own to this notebook's pool, for work beside its cells."""
        self._check_free()
        line = StatusLine(self._shell)
        try:
            self._connect(line)  # so that a pool of one's own is started, or found again
        finally:
            line.clear()
        assert self._place is not None, "it has just been connected to"
        return Link(self._place.connection, KernelId(f"{self._kernel}-{name}"), self._place.words, self._echoes.show)

    def _connect(self, line: StatusLine) -> Link:
        """The link that is there, or one to the pool that is found. A pool of one's own may have gone to sleep."""

        def say(text: str) -> None:
            line.say(text)
            line.show_now()

        link = self._link
        if link is not None and link.is_usable and (link.is_settled or self._place is None or not self._place.is_own):
            return link
        place = self._place
        if place is None or place.is_own:
            place = discovery.find(os.environ, say)
        if link is not None and link.is_usable and place == self._place:
            return link
        self._leave()
        self._place = place
        self._link = Link(place.connection, self._kernel, place.words, self._echoes.show)
        return self._link
