"""What may be written of class hours: days, times of day, dates and time zones, and the settings of one window."""

import difflib
import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, cast

import msgspec

from gpu_worker.quotas.tree import Scalar
from gpu_worker.quotas.value_kinds import GpuAmount, QuotaSetting, UnfitValue
from gpu_worker.quotas.zones import find_zone, zone_names
from gpu_worker.scheduler.policy.class_hours import DAYS, ClassHours, Zone, show_clock
from gpu_worker.scheduler.policy.projects import show_gpus

HOURS_NAME_LENGTH = 64
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_LOCAL_TIME = re.compile(rf"(20[0-9]{{2}}-[0-9]{{2}}-[0-9]{{2}})T{_CLOCK.pattern}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH = date(1970, 1, 1)
_MIDNIGHT = "24:00"


class WeekDays(msgspec.Struct, frozen=True):
    """Some days of the week, each once."""

    form: str = f'list of days: "{DAYS[0]}" to "{DAYS[-1]}"'

    def read(self, value: Scalar) -> tuple[int, ...]:
        """Return the days in the order of the week; 0 is Monday. Raises UnfitValue."""
        if isinstance(value, tuple) and value and len(set(value)) == len(value) and set(value) <= set(DAYS):
            return tuple(sorted(map(DAYS.index, value)))
        raise UnfitValue(f'Write a list of days, each once, as in ["Mon", "Wed"]; days are {", ".join(DAYS)}.')

    def schema(self) -> dict[str, Any]:
        """Allow a list of days, each once."""
        return {"type": "array", "items": {"enum": list(DAYS)}, "minItems": 1, "uniqueItems": True}

    def show(self, value: Any) -> str:
        """Write days as in "Mon, Wed"."""
        return ", ".join(DAYS[day] for day in value)


class TimeOfDay(msgspec.Struct, frozen=True):
    """A time of day, to the minute."""

    may_be_midnight: bool = False  #: that at the end of the day

    @property
    def form(self) -> str:
        """Say what to write, for the reference page."""
        return f'time of day, from "00:00" to "{_MIDNIGHT if self.may_be_midnight else "23:59"}"'

    def read(self, value: Scalar) -> int:
        """Return minutes since the day began. Raises UnfitValue."""
        match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            return int(match[1]) * 60 + int(match[2])
        if value == _MIDNIGHT and self.may_be_midnight:
            return 24 * 60
        end = f'; the end of the day is "{_MIDNIGHT}"' if self.may_be_midnight else ""
        raise UnfitValue(f'Write a time of day in quotes, with two digits for the hour, as in "09:30"{end}.')

    def schema(self) -> dict[str, Any]:
        """Allow a text of this form."""
        end = f"|{_MIDNIGHT}" if self.may_be_midnight else ""
        return {"type": "string", "pattern": f"^({_CLOCK.pattern}{end})$"}

    def show(self, value: Any) -> str:
        """Write it as the file does."""
        return show_clock(value)


class LocalTime(msgspec.Struct, frozen=True):
    """A minute of a day of a year, as a clock on the wall shows it."""

    form: str = "day and time of day, in quotes"

    def read(self, value: Scalar) -> int:
        """Return minutes since 1970, as the clock counts them. Raises UnfitValue."""
        match = _LOCAL_TIME.fullmatch(value) if isinstance(value, str) else None
        try:
            if match is not None:
                return (date.fromisoformat(match[1]) - _EPOCH).days * 24 * 60 + int(match[2]) * 60 + int(match[3])
        except ValueError:  # the month has no such day
            pass
        raise UnfitValue('Write a day that there is and a time of that day, in quotes, as in "2026-12-01T10:00".')

    def schema(self) -> dict[str, Any]:
        """Allow a text of this form."""
        return {"type": "string", "pattern": f"^{_LOCAL_TIME.pattern}$"}

    def show(self, value: Any) -> str:
        """Write it as the file does."""
        day, minute = divmod(value, 24 * 60)
        return f"{CalendarDay().show(day)}T{show_clock(minute)}"


class CalendarDay(msgspec.Struct, frozen=True):
    """A day of a year."""

    form: str = "day, in quotes"

    def read(self, value: Scalar) -> int:
        """Return days since 1970. Raises UnfitValue."""
        try:
            if isinstance(value, str) and _DAY.fullmatch(value):
                return (date.fromisoformat(value) - _EPOCH).days
        except ValueError:  # the month has no such day
            pass
        raise UnfitValue('Write a day that there is, in quotes, as in "2026-10-12".')

    def schema(self) -> dict[str, Any]:
        """Allow a text of this form."""
        return {"type": "string", "format": "date", "pattern": f"^{_DAY.pattern}$"}

    def show(self, value: Any) -> str:
        """Write it as the file does; None is "none"."""
        return "none" if value is None else (_EPOCH + timedelta(value)).isoformat()


class TimeZoneName(msgspec.Struct, frozen=True):
    """A place whose clocks count, by its name in the tz database."""

    form: str = "name in the tz database"

    def read(self, value: Scalar) -> Zone:
        """Return the scheduler's table of the zone. Raises UnfitValue."""
        found = find_zone(value) if isinstance(value, str) else None
        if found is not None:
            return found
        near = difflib.get_close_matches(value[:64], zone_names(), n=1) if isinstance(value, str) else []
        remedy = f"Did you mean {near[0]}? " if near else ""
        raise UnfitValue(f'{remedy}Write the name of a time zone in the tz database, as in "Europe/Berlin" or "UTC".')

    def schema(self) -> dict[str, Any]:
        """Allow a text; which names there are is checked by the reader."""
        return {"type": "string", "minLength": 1, "maxLength": 64}

    def show(self, value: Any) -> str:
        """Write the name."""
        return cast("Zone", value).name


#: The settings of class hours.
CLASS_HOURS_SETTINGS = (
    QuotaSetting(
        "days", "days", WeekDays(), "The days of the week that they are on.", '["Mon", "Wed"]', is_needed=True
    ),
    QuotaSetting("from", "from_minute", TimeOfDay(), "When they begin.", '"10:00"', is_needed=True),
    QuotaSetting(
        "until",
        "until_minute",
        TimeOfDay(may_be_midnight=True),
        "When they end, on that day.",
        '"12:00"',
        is_needed=True,
    ),
    QuotaSetting(
        "guaranteed", "guaranteed_milli", GpuAmount(), "What the project is guaranteed in them.", "8", is_needed=True
    ),
    QuotaSetting(
        "time_zone", "zone", TimeZoneName(), "Where the clock is that shows it.", '"Europe/Berlin"', is_needed=True
    ),
    QuotaSetting("first_day", "first_day", CalendarDay(), "They are not on before this day.", '"2026-10-12"'),
    QuotaSetting("last_day", "last_day", CalendarDay(), "They are not on after this day.", '"2027-02-05"'),
)


class ClassHoursTable(msgspec.Struct, frozen=True):
    """Class hours by name. The reader reads the table, since each of its settings has a line of its own."""

    form: str = "tables by name: see below"

    def read(self, _: Scalar) -> tuple[ClassHours, ...]:
        """Raise UnfitValue: a table is no value."""
        raise UnfitValue("Write names below it, each with its settings.")

    def schema(self) -> dict[str, Any]:
        """Allow tables by name."""
        return {
            "type": ["object", "null"],
            "propertyNames": {"minLength": 1, "maxLength": HOURS_NAME_LENGTH},
            "additionalProperties": {"$ref": "#/$defs/class_hours"},
        }

    def show(self, value: Any) -> str:
        """Write each one as in "'lecture' Mon, Wed 10:00-12:00 Europe/Berlin, 8 GPUs"."""
        return "; ".join(map(_show_one, cast("Sequence[ClassHours]", value))) or "none"


def _show_one(one: ClassHours) -> str:
    days = WeekDays().show(one.days)
    text = f"{one.name!r} {days} {show_clock(one.from_minute)}-{show_clock(one.until_minute)} {one.zone.name}"
    text += f" from {CalendarDay().show(one.first_day)}" if one.first_day is not None else ""
    text += f" to {CalendarDay().show(one.last_day)}" if one.last_day is not None else ""
    return f"{text}, {show_gpus(one.guaranteed_milli)}"
