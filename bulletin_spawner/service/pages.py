"""What the pool's page says: each number as a person reads it. Pure."""

from datetime import UTC, datetime

import msgspec

from bulletin.pool_words import (
    describe_absence,
    describe_node,
    describe_outcome,
    describe_state,
    state_words,
    warn_of_accounts,
    warn_of_missing,
)
from bulletin.units import show_duration, show_size
from bulletin.wait_words import wait_columns
from bulletin.wire.messages import Picture, SlotPicture


class HtmlTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of the page: its caption, its columns, and its rows as words."""

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: What to say instead of a table without rows.
    empty: str


class PageContent(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows: a sentence, what people are to be warned of, then tables in order."""

    summary: str
    warnings: tuple[str, ...]
    tables: tuple[HtmlTable, ...]


def describe_page(picture: Picture, *, for_admins: bool = False) -> PageContent:
    """Put a picture of the pool into the words of the page."""
    word = picture.slot_word
    return PageContent(
        summary=_summary(picture),
        warnings=(
            *filter(None, (picture.announcement, picture.ledger_problem if for_admins else "")),
            *warn_of_accounts(picture.shared_accounts),
            *warn_of_missing(picture.missing_protections, for_admins=for_admins),
            *(describe_absence(one.node, one.absent_ms, one.problem) for one in picture.absent_nodes if for_admins),
        ),
        tables=(
            HtmlTable(
                name="slots",
                caption=f"{word}s",
                columns=("Node", word, "Now", "Held by"),
                rows=tuple(
                    (
                        describe_node(slot.node, slot.owner),
                        _show_slot(slot),
                        describe_state(state_words(slot.state), slot.drains_in_ms, slot.why_drained),
                        slot.user or "—",
                    )
                    for slot in picture.slots
                ),
                empty="No node has joined the pool yet.",
            ),
            HtmlTable(
                name="waiting",
                caption="Waiting",
                columns=("Place", "Who", f"{word}s", "QoS", "Waited", "Usually", "At most", "Why"),
                rows=tuple(
                    (
                        str(one.position),
                        one.user,
                        str(one.gpus),
                        one.qos,
                        show_duration(one.waited_ms),
                        *wait_columns(one.usual_ms, one.wait_ms),
                        one.reason or "—",
                    )
                    for one in sorted(picture.waiting, key=lambda one: one.position)
                ),
                empty="Nobody waits.",
            ),
            HtmlTable(
                name="recent",
                caption="Recent cells",
                columns=("Ended (UTC)", "Who", "Project", "Node", "Outcome", "Ran", f"{word} time", "Peak memory"),
                rows=tuple(
                    (
                        f"{datetime.fromtimestamp(cell.ended_at_ms / 1000, UTC):%d %b %H:%M:%S}",
                        cell.user,
                        cell.project or "—",
                        cell.node,
                        describe_outcome(cell.outcome),
                        show_duration(cell.ran_ms),
                        show_duration(cell.slot_ms),
                        show_size(cell.peak_memory_bytes) if cell.peak_memory_bytes is not None else "—",
                    )
                    for cell in picture.recent
                ),
                empty="No recent cell that you may see.",
            ),
        ),
    )


def _summary(picture: Picture) -> str:
    """Say in a sentence how many slots are free, and who waits."""
    slots, word = [slot for slot in picture.slots if not slot.owner], picture.slot_word
    total = len(slots)
    if not total:
        return f"The pool has no {word} at this moment."
    free = sum(slot.state == "free" for slot in slots)
    ready = sum(slot.state == "hot" for slot in slots)
    words = [f"{free} of {total} {word}{'s' if total > 1 else ''} free"]
    if ready:
        words.append(f"{ready} kept ready for the next cell")
    drained = sum(slot.state == "drained" for slot in slots)
    if drained:
        words.append(f"{drained} on a node that is drained")
    words.append(f"{len(picture.waiting)} waiting" if picture.waiting else "nobody waits")
    return ", ".join(words) + f". The pool has been up for {show_duration(picture.uptime_ms)}."


def _show_slot(slot: SlotPicture) -> str:
    return f"{slot.name} ({show_size(slot.memory_bytes)})" if slot.memory_bytes else slot.name
