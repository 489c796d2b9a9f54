"""`%%gpu --plan` for people: what would be sent, as a table and in a few sentences."""

from collections import Counter
from collections.abc import Iterator, Sequence

from bulletin.state.plan import Fate, Plan, Row
from bulletin.units import show_size
from bulletin.wait_words import count
from bulletin.wire.messages import Picture
from bulletin_magic.connection.resource_spec import LeaseInfo, ResourceSpec
from bulletin_magic.output import text_table
from bulletin_magic.output.receipts import describe_slots

_HEAD = ("name", "kind", "size", "to be sent", "note")
_FIGURES = {2, 3}
_MILLI = 1000
_NOTES = {
    Fate.SENT: "",
    Fate.THERE: "There already.",
    Fate.BY_NAME: "Imported there by its name.",
    Fate.STAYS: "Stays here.",
    Fate.REFUSED: "Cannot be sent: see below.",
}


def describe_plan(plan: Plan, about: Sequence[str]) -> dict[str, str]:
    """Return the table and the sentences below it as a bundle of MIME types. `about` has sentences about the pool."""
    below = [*_sentences(plan), *filter(None, about), "This is a plan: nothing was run, and nothing was sent."]
    return text_table.as_bundle(_HEAD, [_cells(row) for row in plan.rows], below, _FIGURES)


def _cells(row: Row) -> tuple[str, ...]:
    is_moving = row.fate in {Fate.SENT, Fate.THERE}
    return (
        row.name,
        row.kind,
        show_size(row.size_bytes) if row.size_bytes else "",
        show_size(row.sent_bytes) if is_moving else "",
        " ".join(filter(None, (_NOTES[row.fate], row.note))),
    )


def _sentences(plan: Plan) -> Iterator[str]:
    if plan.is_open:
        yield "The cell may look up names that it does not spell, so all variables go with it."
    total, rest = show_size(plan.total_bytes), f"{show_size(plan.rest_bytes)} of settings and random states"
    if plan.refused:
        names = " and ".join(dict.fromkeys(repr(error.name) for error in plan.refused))
        yield f"The cell would be refused. Without {names}, {total} would be sent, with {rest}."
        yield from map(str, plan.refused)
    elif any(row.sent_bytes for row in plan.rows):
        yield f"{total} would be sent in all, with {rest}."
    else:
        yield f"None of your variables would be sent, only {rest}."


def describe_wait(
    picture: Picture, lease: LeaseInfo | None, resources: ResourceSpec, *, is_refused: bool = False
) -> str:
    """Say whether the cell would run at once, as far as a picture of the pool shows, or on the `lease` that is held.

    `is_refused` says that the executor there has refused the notebook's cells.
    """
    if lease is not None and is_refused:
        return f"This notebook holds {describe_slots(lease)}: the cell would be refused there, as the last one was."
    if lease is not None:
        return f"This notebook holds {describe_slots(lease)}: the cell would run there at once."
    word, wanted = picture.slot_word, max(1, resources.gpus)
    if picture.waiting:
        waiting = len(picture.waiting)
        return f"1 cell waits for a {word}." if waiting == 1 else f"{waiting} cells wait for a {word}."
    if resources.is_exclusive:
        return (
            f"Nobody waits. --exclusive takes all of a node that has just {count(wanted, word)}, and is charged as "
            "that: whether one is free shows when the cell is run."
        )
    if resources.gpu_type or resources.gpu_memory_bytes or resources.cpus or resources.memory_bytes:
        return "Nobody waits. Whether what the cell asks for beside its GPUs is free shows when it is run."
    needed = f"{count(wanted, word)} {'is' if wanted == 1 else 'are'}"
    free = Counter(slot.node for slot in picture.slots if slot.state == "free")
    idle = Counter(slot.node for slot in picture.slots if slot.state in {"free", "hot"})
    if max(free.values(), default=0) >= wanted:
        return f"{needed[0].upper()}{needed[1:]} free: the cell would not have to wait."
    busy = f"No {word} is free" if wanted == 1 else f"No node has {wanted} {word}s free"
    if max(idle.values(), default=0) >= wanted:
        return f"{busy}, but a notebook that holds one without a cell gives way."
    return f"{busy}: the cell would wait. Nobody else waits."


def describe_quota(picture: Picture, resources: ResourceSpec) -> str:
    """Say whether the user's own project would pay for the cell, or it would borrow; empty where nobody can say."""
    project, cost_milli = picture.project, resources.gpus * _MILLI
    if project is None or not cost_milli or resources.project not in (None, project.project):
        return ""
    uses, name, word = f"{project.used_milli / _MILLI:g}", f"your project {project.project!r}", picture.slot_word
    if project.limit_milli is not None and project.used_milli + cost_milli > project.limit_milli:
        limit = _count(project.limit_milli, word)
        return f"It would wait for others of {name}, which uses {uses} of {limit} that it may use."
    if cost_milli <= project.covered_milli:
        return f"It would be in quota: the guarantee of {name} covers it."
    if not project.guaranteed_milli:
        return ""
    guaranteed = _count(project.guaranteed_milli, word)
    return f"It would borrow, and its owner may need it back: {name} uses {uses} of {guaranteed} guaranteed."


def _count(milli: int, word: str) -> str:
    return f"{milli / _MILLI:g} {word}{'' if milli == _MILLI else 's'}"
