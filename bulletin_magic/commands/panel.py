"""What `%gpu` shows: where the pool is, what this notebook holds, its quota, the slots, the queue, its last cells."""

import html
from collections import Counter
from collections.abc import Iterator, Sequence

from bulletin.pool_words import (
    describe_node,
    describe_project,
    describe_state,
    state_words,
    warn_of_accounts,
    warn_of_missing,
)
from bulletin.units import show_duration, show_size
from bulletin.wait_words import count, describe_rest, ordinal, wait_columns
from bulletin.wire.messages import SlotPicture, WaitingPicture
from bulletin_magic.connection.deliveries import PoolStatus
from bulletin_magic.output import text_table
from bulletin_magic.output.receipts import Receipt, describe_receipt, describe_slots

_WAITING_SHOWN = 10
_SLOT_HEAD = ("node", "slot", "state", "who", "memory")
_WAITING_HEAD = ("place", "who", "wants", "class", "waited", "usually", "at most", "why")


def describe_panel(
    status: PoolStatus,
    pool_description: str,
    mode: str | None,
    receipts: Sequence[Receipt],
    background_lines: Sequence[str] = (),
    asked_lines: Sequence[str] = (),
) -> dict[str, str]:
    """Return the panel as a bundle of MIME types.

    `mode` are the options of every cell, or None where cells run in the notebook. `background_lines` has a line for
    each background cell, `asked_lines` one for each thing that was asked for beyond the rules.
    """
    own = [*(f"In the background, {cell}" for cell in background_lines), *_own(status, mode), *asked_lines]
    last = [_cell(one) for one in receipts]
    text = [*_about(status, pool_description), *own, *_listed(status), *(["Last cells:"] if last else [])]
    text += [f"  {one}" for one in last]
    return {"text/plain": "\n".join(text), "text/html": _html(status, [*_about(status, pool_description), *own], last)}


def describe_pool(status: PoolStatus, pool_description: str) -> str:
    """Return a few lines of text about the pool and the lease."""
    return "\n".join([*_about(status, pool_description), *_listed(status)])


def _about(status: PoolStatus, pool_description: str) -> Iterator[str]:
    picture = status.picture
    states = Counter(state_words(slot.state) for slot in picture.slots)
    counts = ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "none yet"
    total = f"{len(picture.slots)} {picture.slot_word}{'' if len(picture.slots) == 1 else 's'}"
    held = describe_slots(status.lease) if status.lease else f"no {picture.slot_word}"
    yield f"The pool {pool_description}: {total} ({counts}), up {show_duration(picture.uptime_ms)}."
    yield f"This notebook holds {held}{_quota_of(status)}."
    yield from _unused_own(status)
    yield from warn_of_accounts(picture.shared_accounts)
    yield from warn_of_missing(picture.missing_protections, for_admins=False)


def _unused_own(status: PoolStatus) -> Iterator[str]:
    """Say of a node that this notebook's user has brought that cells of this notebook do not go there yet, and why."""
    lease, slots = status.lease, status.picture.slots
    if lease is None:
        return
    names = set(lease.slots)
    mine = {
        slot.user for slot in slots if slot.node == lease.node and not slot.owner and names & {slot.slot, slot.name}
    }
    free = [slot for slot in slots if slot.owner and slot.owner in mine and slot.state == "free"]
    for node in dict.fromkeys(describe_node(slot.node, slot.owner) for slot in free):
        yield (
            f"{node} has room. Cells of this notebook stay on {lease.node}, where its session is, until that is over: "
            "%gpu stop ends it, and the next cell goes to your own node."
        )


def _quota_of(status: PoolStatus) -> str:
    if status.lease is None or status.lease.is_in_quota is None:
        return ""
    return ", in quota" if status.lease.is_in_quota else ", borrowed: it goes back when its owner needs it"


def _own(status: PoolStatus, mode: str | None) -> Iterator[str]:
    if mode is not None:
        yield f"Every cell runs on the pool{f' with {mode}' if mode else ''}; %gpu off ends this."
    project = status.picture.project
    if project is not None and (project.guaranteed_milli or project.limit_milli is not None or project.class_hours):
        yield describe_project(
            project.project,
            status.picture.slot_word,
            used_milli=project.used_milli,
            guaranteed_milli=project.guaranteed_milli,
            limit_milli=project.limit_milli,
            class_hours=project.class_hours,
        )


def _listed(status: PoolStatus) -> Iterator[str]:
    picture = status.picture
    yield from (f"  {_slot(slot)}" for slot in picture.slots)
    if picture.waiting:
        yield f"Waiting: {len(picture.waiting)}."
        yield from (f"  {_waiting(waiting, picture.slot_word)}" for waiting in picture.waiting[:_WAITING_SHOWN])


def _cell(receipt: Receipt) -> str:
    ended = "" if receipt.outcome == "returned" else f" · {receipt.ended}"
    return f"[{receipt.number}] {describe_receipt(receipt)}{ended}"


def _slot(slot: SlotPicture) -> str:
    memory = f", {show_size(slot.memory_bytes)}" if slot.memory_bytes else ""
    user = f", {slot.user}" if slot.user else ""
    state = describe_state(state_words(slot.state), slot.drains_in_ms, slot.why_drained)
    return f"{describe_node(slot.node, slot.owner)} {slot.name}{memory}: {state}{user}"


def _waiting(waiting: WaitingPicture, slot_word: str) -> str:
    waited = f"waited {show_duration(waiting.waited_ms)}"
    slots = count(waiting.gpus, slot_word)
    about = describe_rest(waiting.usual_ms, waiting.wait_ms)
    row = f"{ordinal(waiting.position)}: {waiting.user}, {slots}, {waiting.qos}, {waited}{about}."
    return f"{row} {waiting.reason}" if waiting.reason else row


def _html(status: PoolStatus, sentences: Sequence[str], last: Sequence[str]) -> str:
    picture = status.picture
    slots = [
        (
            describe_node(slot.node, slot.owner),
            slot.name,
            describe_state(state_words(slot.state), slot.drains_in_ms, slot.why_drained),
            slot.user or "",
            show_size(slot.memory_bytes) if slot.memory_bytes else "",
        )
        for slot in picture.slots
    ]
    shown = len(_SLOT_HEAD) - (not any(slot.memory_bytes for slot in picture.slots))  # CPU slots have none of their own
    waiting = [
        (
            ordinal(one.position),
            one.user,
            count(one.gpus, picture.slot_word),
            one.qos,
            show_duration(one.waited_ms),
            *wait_columns(one.usual_ms, one.wait_ms),
            one.reason,
        )
        for one in picture.waiting[:_WAITING_SHOWN]
    ]
    parts = [f"<div>{html.escape(sentence)}</div>" for sentence in sentences]
    parts.append(text_table.as_html(_SLOT_HEAD[:shown], [slot[:shown] for slot in slots], {4}) if slots else "")
    parts += (
        [f"<div>Waiting: {len(picture.waiting)}.</div>", text_table.as_html(_WAITING_HEAD, waiting, {4, 5, 6})]
        if waiting
        else []
    )
    parts += ["<div>Last cells:</div>", *(f"<div>{html.escape(one)}</div>" for one in last)] if last else []
    return "".join(parts)
