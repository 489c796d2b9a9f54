"""When class hours and reservations begin and end, in words."""

from bulletin.units import HOUR_MS, show_duration
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.policy.class_hours import ClassHours, Window, next_beginning

#: What is nearer than a day is told by the clock alone.
_SOON_MS = 24 * HOUR_MS


def show_end(window: Window, at_ms: int, now_ms: int) -> str:
    """Show when something is over: "12:00 Europe/Berlin", or "Wed at 10:00 Europe/Berlin"."""
    zone = window.zone
    return zone.show_clock(at_ms) if at_ms - now_ms < _SOON_MS else zone.show_moment(at_ms).removeprefix("on ")


def show_class_hours(account: Account, now_ms: int) -> str:
    """How a project stands to its class hours: "class hours until 12:00 UTC, for another 40 min"; or empty."""
    on = [one for one in account.project.windows if one.is_on(now_ms)]
    if on:
        most = max(on, key=lambda one: one.guaranteed_milli)
        end_ms = most.next_edge_ms(now_ms) or now_ms
        if isinstance(most, ClassHours):  # which may be until 24:00
            what = f"class hours until {most.zone.show_minute(most.until_minute)}"
        else:
            what = f"reservation {most.name!r} until {show_end(most, end_ms, now_ms)}"
        return f"{what}, for another {show_duration(end_ms - now_ms)}"
    found = next_beginning(account.project.windows, now_ms)
    if found is None:
        return ""
    what = "class hours begin" if isinstance(found[1], ClassHours) else f"reservation {found[1].name!r} begins"
    return f"{what} {show_turn(*found, now_ms)}"


def show_turn(at_ms: int, hours: Window, now_ms: int) -> str:
    """When class hours begin or end: "at 10:00 UTC, in 25 min", or "on Wed at 10:00 UTC, in 3 days"."""
    left_ms = at_ms - now_ms
    if left_ms < _SOON_MS:
        return f"at {hours.zone.show_clock(at_ms)}, in {show_duration(left_ms)}"
    days = round(left_ms / _SOON_MS)
    return f"{hours.zone.show_moment(at_ms)}, in {days} day{'' if days == 1 else 's'}"
