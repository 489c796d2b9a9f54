"""The kinds of notebook that people choose from when they start a server: what a kind reserves, and for whom it is."""

import html
import shlex
from collections.abc import Sequence

import msgspec

from bulletin.errors import BadConfig
from bulletin.units import parse_duration_ms

#: The name of the choice in the form, and of what is chosen in the options of a server.
FIELD = "bulletin_notebook"
#: What is chosen where nobody chooses.
ON_CPU = "cpu"
_ON_CPU_TITLE = "Notebook on CPUs, whose cells ask for a GPU (%%gpu)"


class NotebookKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A notebook that has GPUs of its own for as long as its server runs and it is used.

    The lease is in `qos`, within the guarantee of the user's project, and goes when no cell has run for `keep`.
    """

    #: As in the API's `{"bulletin_notebook": "gpu"}`.
    name: str
    title: str
    description: str = ""
    #: Hub groups whose members may choose it; empty is everybody.
    groups: tuple[str, ...] = ()
    gpus: int = 1
    gpu_type: str = ""
    #: On a node that has just so many GPUs, and that nobody else is on; for a class of service that lets it.
    exclusive: bool = False
    keep: str = "20 min"
    #: How long the server may have the GPUs in all; empty is the walltime of the class.
    time: str = ""
    #: The class of service; empty leaves it to the pool, which takes one that never borrows.
    qos: str = ""

    @property
    def keep_ms(self) -> int:
        """For how long after its last cell the GPUs are kept."""
        return parse_duration_ms(self.keep)

    @property
    def walltime_ms(self) -> int | None:
        """For how long they are had in all, where it is said."""
        return parse_duration_ms(self.time) if self.time else None

    @property
    def cell_options(self) -> str:
        """The options of `%%gpu` that each cell of the notebook has."""
        words = ["--keep", self.keep, "--gpus", str(self.gpus)]
        for option, value in (("--gpu-type", self.gpu_type), ("--time", self.time), ("--qos", self.qos)):
            words += [option, value] if value else []
        words += ["--exclusive"] if self.exclusive else []
        return shlex.join(words)

    def is_for(self, groups: Sequence[str]) -> bool:
        """Tell whether a member of these groups may choose it."""
        return not self.groups or not set(self.groups).isdisjoint(groups)


#: One that fits every hub.
WHOLE_NOTEBOOK = NotebookKind(
    name="gpu",
    title="Notebook with a GPU of its own",
    description="Every cell runs on the GPU, which nobody else gets until the server stops or no cell has run for "
    "20 min. It counts against your project's guarantee all the time.",
)


def read_kinds(given: Sequence[NotebookKind | dict[str, object]]) -> tuple[NotebookKind, ...]:
    """Check the kinds of a hub's configuration, each a `NotebookKind` or a dict with its fields.

    Raises
    ------
    BadConfig
        If one cannot be read, or two have the same name.
    """
    kinds: list[NotebookKind] = []
    for number, one in enumerate(given, 1):
        try:
            kind = one if isinstance(one, NotebookKind) else msgspec.convert(one, NotebookKind)
            is_usable = kind.keep_ms > 0 and kind.gpus > 0 and kind.walltime_ms != 0
        except (msgspec.ValidationError, ValueError) as error:
            raise BadConfig(f"configure(notebooks=...): number {number} cannot be read: {error}") from None
        if not is_usable or kind.name in {ON_CPU, *(known.name for known in kinds)}:
            raise BadConfig(
                f"configure(notebooks=...): {kind.name!r} needs a name of its own, other than {ON_CPU!r}, at least one "
                "GPU, and times above 0."
            )
        kinds.append(kind)
    return tuple(kinds)


def draw_form(kinds: Sequence[NotebookKind]) -> str:
    """Draw the choice as HTML for JupyterHub's page that starts a server."""
    cpu = NotebookKind(name=ON_CPU, title=_ON_CPU_TITLE)
    rows = [_row(kind, is_checked=kind is cpu) for kind in (cpu, *kinds)]
    return f'<fieldset class="mb-3"><legend class="fs-6">Your notebook</legend>{"".join(rows)}</fieldset>'


def _row(kind: NotebookKind, *, is_checked: bool) -> str:
    name, title = html.escape(kind.name, quote=True), html.escape(kind.title)
    checked = " checked" if is_checked else ""
    about = f'<div class="form-text">{html.escape(kind.description)}</div>' if kind.description else ""
    return (
        f'<div class="form-check"><label><input type="radio" name="{FIELD}" value="{name}"{checked}> {title}</label>'
        f"{about}</div>"
    )
