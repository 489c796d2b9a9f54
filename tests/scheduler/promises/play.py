"""Plays one history under the referee, and shows it in words."""

from collections.abc import Callable

import msgspec

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.judge import Judge


def play(history: hi.History, most: int = 20, *, keeps_log: bool = False) -> tuple[Judge, int]:
    """Play it: the referee with all that was found, and the number of steps."""
    judge = Judge(history, most)
    judge.keeps_log = keeps_log
    driver = Driver(history, judge)
    driver.play()
    return judge, driver.steps


def show(history: hi.History, accept: Callable[[object], bool] = lambda _: True) -> str:
    """Show a history: what is given, what was told and decided, and what the referee says."""
    judge, _ = play(history, most=1, keeps_log=True)
    lines = ["settings:"]
    lines += [f"  {_words(project)}" for project in history.settings.projects]
    named = {at.what.qos for at in history.happenings if isinstance(at.what, hi.Opens)}
    lines += [f"  {_words(qos)}" for qos in history.settings.qos if qos.name in named]
    lines += [f"delays: {_words(history.delays)}", "happenings:"]
    lines += [f"  {at.ms / 1000:9.1f} s  {_words(at.what)}" for at in history.happenings]
    lines.append("told, and decided:")
    for now_ms, event, actions in judge.log:
        lines.append(f"  {(now_ms - history.begin_ms) / 1000:9.1f} s  {_words(event)}")
        lines += [f"               -> {_words(action)}" for action in actions]
    lines += [f"VIOLATED: {violation}" for violation in judge.violations]
    return "\n".join(lines)


def _words(value: msgspec.Struct) -> str:
    """Show what differs from the defaults."""
    shown = []
    for field in msgspec.structs.fields(type(value)):
        found = getattr(value, field.name)
        if found == field.default or (field.name == "slots" and len(found) > 4):
            continue
        if field.name == "slots" and found and not isinstance(found[0], str):
            found = ",".join(f"{slot.id}:{slot.name}" for slot in found)
        if field.name == "cells":
            found = ",".join(f"{cell.think_ms / 1000:g}+{cell.run_ms / 1000:g}s" for cell in found)
        shown.append(f"{field.name}={found}")
    return f"{type(value).__name__}({', '.join(shown)})"
