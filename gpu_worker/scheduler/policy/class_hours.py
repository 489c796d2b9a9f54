"""Class hours: when in the week a project is guaranteed more, by the clock on the wall of some place.

Inside the scheduler a time is UTC, in whole milliseconds since 1970. What the clocks of a place show comes as a table,
so that nothing here asks a clock, a calendar or a database of time zones, and a history is played again exactly.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from bulletin.units import DAY_MS, MINUTE_MS

#: After all times.
_FAR_MS = 1 << 62
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Zone(msgspec.Struct, frozen=True):
    """How far the clocks of a place are ahead of UTC."""

    name: str  #: as the tz database has it: "Europe/Berlin"
    #: From when, and how far, in milliseconds; in order. The first holds before its time too, the last one for ever.
    offsets: tuple[tuple[int, int], ...] = ((0, 0),)

    def spans(self, now_ms: int) -> Iterator[tuple[int, int | None, int]]:
        """From this time on: since when, until when (None is for ever) and how far clocks are ahead."""
        for number, (from_ms, ahead_ms) in enumerate(self.offsets):
            until_ms = self.offsets[number + 1][0] if number + 1 < len(self.offsets) else None
            if until_ms is None or now_ms < until_ms:
                yield (max(from_ms, now_ms) if number else now_ms), until_ms, ahead_ms

    def find_moment(self, local_ms: int, *, is_last: bool = False) -> int:
        """Find when clocks show this: where they show it twice, first or last; where they skip it, when they do so."""
        shown = [at_ms for from_ms, until_ms, at_ms in self._candidates(local_ms) if from_ms <= at_ms < until_ms]
        if shown:
            return shown[-1 if is_last else 0]
        return min(from_ms for from_ms, _, at_ms in self._candidates(local_ms) if from_ms > at_ms)

    def _candidates(self, local_ms: int) -> Iterator[tuple[int, int, int]]:
        """List from when until when clocks are so far ahead, and when they would show this."""
        for number, (from_ms, ahead_ms) in enumerate(self.offsets):
            until_ms = self.offsets[number + 1][0] if number + 1 < len(self.offsets) else _FAR_MS
            yield (from_ms if number else -_FAR_MS), until_ms, local_ms - ahead_ms

    def show_moment(self, at_ms: int) -> str:
        """Show a time as clocks there do, and whose they are: "on Wed at 10:00 Europe/Berlin"."""
        day = (at_ms + self._ahead_ms(at_ms)) // DAY_MS
        return f"on {DAYS[(day + 3) % 7]} at {self.show_clock(at_ms)}"

    def show_clock(self, at_ms: int) -> str:
        """Show a time of day so: "10:00 Europe/Berlin". Who reads it may be elsewhere, and the server, too."""
        return self.show_minute((at_ms + self._ahead_ms(at_ms)) % DAY_MS // MINUTE_MS)

    def show_minute(self, minute: int) -> str:
        """Show a minute of the day there, which may be the last one's end: "24:00 Europe/Berlin"."""
        return f"{show_clock(minute)} {self.name}"

    def _ahead_ms(self, at_ms: int) -> int:
        return next(self.spans(at_ms))[2]


class Window(Protocol):
    """Some time in which a project is guaranteed so much: class hours or a reservation."""

    @property
    def name(self) -> str:
        """What the file calls it."""

    @property
    def setting(self) -> str:
        """Name the table of the file that it is in."""

    @property
    def guaranteed_milli(self) -> int:
        """What the project is guaranteed in it, in thousandths of a GPU."""

    @property
    def zone(self) -> Zone:
        """Whose clocks count."""

    @property
    def first_day(self) -> int | None:
        """Before which day it is not on, as the place counts them since 1970."""

    def is_on(self, now_ms: int) -> bool:
        """Whether it is on."""

    def next_edge_ms(self, now_ms: int) -> int | None:
        """When it begins or ends next, after this time; None is never."""

    def is_over(self, now_ms: int) -> bool:
        """Whether it never is on again."""

    def begins(self, at_ms: int) -> bool:
        """Whether it begins at this time."""

    def show_edge(self, project: str, *, is_end: bool) -> str:
        """Say that it begins or ends: "the class hours of project 'cs101' begin"."""


class ClassHours(msgspec.Struct, frozen=True, kw_only=True):
    """A window of the week in which a project is guaranteed so much, where that is more than it has otherwise.

    By the clock on the wall: where clocks are set forward or back, it is as long as they show.
    """

    name: str
    days: tuple[int, ...]  #: 0 is Monday
    from_minute: int  #: of the day
    until_minute: int  #: of the same day, and not in it any more; 1440 is its end
    guaranteed_milli: int  #: thousandths of a GPU
    zone: Zone
    first_day: int | None = None  #: days since 1970, as the place counts them; None is no bound
    last_day: int | None = None

    def is_on(self, now_ms: int) -> bool:
        """Whether it is such an hour."""
        _, _, ahead_ms = next(self.zone.spans(now_ms))
        return self._shows(now_ms + ahead_ms)

    def next_edge_ms(self, now_ms: int) -> int | None:
        """When it begins or ends next, after this time; None is never. What goes on at midnight ends and begins."""
        is_on = self.is_on(now_ms)
        for from_ms, until_ms, ahead_ms in self.zone.spans(now_ms):
            if self._shows(from_ms + ahead_ms) != is_on:  # clocks were set forward or back
                return from_ms
            local_ms = self._next_local_ms(from_ms + ahead_ms, is_on=is_on)
            if local_ms is not None and (until_ms is None or local_ms - ahead_ms < until_ms):
                return local_ms - ahead_ms
        return None

    def is_over(self, now_ms: int) -> bool:
        """Whether it never is such an hour again."""
        return not self.is_on(now_ms) and self.next_edge_ms(now_ms) is None

    def begins(self, at_ms: int) -> bool:
        """Whether it begins at this time."""
        return self.is_on(at_ms) and self.next_edge_ms(at_ms - 1) == at_ms

    @property
    def setting(self) -> str:
        """Name the table of the file that it is in."""
        return "class_hours"

    def show_edge(self, project: str, *, is_end: bool) -> str:
        """Say that it begins or ends: "the class hours of project 'cs101' begin"."""
        return f"the class hours of project {project!r} {'end' if is_end else 'begin'}"

    def _has(self, day: int) -> bool:
        """Whether it is on that day, counted from 1970, which began on a Thursday."""
        is_begun = self.first_day is None or day >= self.first_day
        return is_begun and (self.last_day is None or day <= self.last_day) and (day + 3) % 7 in self.days

    def _shows(self, local_ms: int) -> bool:
        day, in_day_ms = divmod(local_ms, DAY_MS)
        return self.from_minute * MINUTE_MS <= in_day_ms < self.until_minute * MINUTE_MS and self._has(day)

    def _next_local_ms(self, local_ms: int, *, is_on: bool) -> int | None:
        """When clocks show its end or, where it is not on, its next beginning."""
        today = local_ms // DAY_MS
        if is_on:
            return today * DAY_MS + self.until_minute * MINUTE_MS
        start = today if self.first_day is None else max(today, self.first_day)
        for day in range(start, start + 8):
            at_ms = day * DAY_MS + self.from_minute * MINUTE_MS
            if at_ms > local_ms and self._has(day):
                return at_ms
        return None


def guaranteed_at(hours: Iterable[Window], now_ms: int) -> int:
    """Find what they guarantee at a time, in thousandths of a GPU: where two are on at once, the larger one counts."""
    return max((one.guaranteed_milli for one in hours if one.is_on(now_ms)), default=0)


def most_from(hours: Iterable[Window], now_ms: int) -> int:
    """Find the most that they guarantee at that time or any later one, in thousandths of a GPU."""
    return max((one.guaranteed_milli for one in hours if not one.is_over(now_ms)), default=0)


def next_edge_ms(hours: Iterable[Window], now_ms: int) -> int | None:
    """When the first of them begins or ends, after this time; None is never."""
    edges = (one.next_edge_ms(now_ms) for one in hours)
    return min((edge_ms for edge_ms in edges if edge_ms is not None), default=None)


def next_beginning(hours: Iterable[Window], now_ms: int) -> tuple[int, Window] | None:
    """When the next one of them begins that is not on, and which one that is."""
    beginnings = ((one.next_edge_ms(now_ms), one) for one in hours if not one.is_on(now_ms))
    known = ((at_ms, one) for at_ms, one in beginnings if at_ms is not None)
    return min(known, key=lambda found: (found[0], -found[1].guaranteed_milli), default=None)


def show_clock(minute: int) -> str:
    """Show a minute of the day as a clock does: "10:00"."""
    return f"{minute // 60:02}:{minute % 60:02}"


def moments(hours: Iterable[Window]) -> list[int]:
    """List times at which all that they guarantee together is as much as it ever is.

    What is guaranteed grows only where one begins. Those that ever meet do so within a week after the first day of one
    of them or, where clocks of two places may be nearer to each other for some weeks, within a week after one of these
    was changed: after the last such day or change they meet every week, until one of them is over. Where there is
    neither, any week will do.
    """
    hours = tuple(hours)
    weeks = {7 * DAY_MS // 2}  # of no term: from before the first Monday on, wherever that is
    zones = {one.zone for one in hours}
    if len(zones) > 1:
        weeks |= {at_ms for zone in zones for at_ms, _ in zone.offsets[1:]}
    for one in hours:
        if one.first_day is not None:
            weeks.add((one.first_day - 1) * DAY_MS)
    found: dict[int, None] = {}
    for week_ms in sorted(weeks):
        for one in hours:
            at_ms = one.next_edge_ms(week_ms)
            while at_ms is not None and at_ms <= week_ms + 9 * DAY_MS:
                if one.begins(at_ms):
                    found[at_ms] = None
                at_ms = one.next_edge_ms(at_ms)
    return sorted(found)
