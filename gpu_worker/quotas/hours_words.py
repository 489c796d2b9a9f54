"""What may be written of class hours: days, times of day, dates and time zones, and the settings of one window."""

import difflib
import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, cast

import msgspec

from gpu_worker.quotas.tree import Scalar
from gpu_worker.quotas.values import Gpus, Unfit, Word
from gpu_worker.quotas.zones import names, zone
from gpu_worker.scheduler.class_hours import DAYS, ClassHours, Zone, show_clock
from gpu_worker.scheduler.projects import show_gpus

HOURS_NAME_LENGTH = 64
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH = date(1970, 1, 1)
_MIDNIGHT = "24:00"


class Days(msgspec.Struct, frozen=True):
    """Days of the week."""

    form: str = f'list of days: "{DAYS[0]}" to "{DAYS[-1]}"'

    def read(self, value: Scalar) -> tuple[int, ...]:
        """In the order of the week; 0 is Monday."""
        if isinstance(value, tuple) and value and len(set(value)) == len(value) and set(value) <= set(DAYS):
            return tuple(sorted(map(DAYS.index, value)))
        raise Unfit(f'Write a list of days, each once, as in ["Mon", "Wed"]; days are {", ".join(DAYS)}.')

    def schema(self) -> dict[str, Any]:
        """A list of the words."""
        return {"type": "array", "items": {"enum": list(DAYS)}, "minItems": 1, "uniqueItems": True}

    def show(self, value: Any) -> str:
        """As in "Mon, Wed"."""
        return ", ".join(DAYS[day] for day in value)


class Clock(msgspec.Struct, frozen=True):
    """A time of day."""

    may_be_midnight: bool = False  #: that at the end of the day

    @property
    def form(self) -> str:
        """What to write."""
        return f'time of day, from "00:00" to "{_MIDNIGHT if self.may_be_midnight else "23:59"}"'

    def read(self, value: Scalar) -> int:
        """Minutes since the day began."""
        match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            return int(match[1]) * 60 + int(match[2])
        if value == _MIDNIGHT and self.may_be_midnight:
            return 24 * 60
        end = f'; the end of the day is "{_MIDNIGHT}"' if self.may_be_midnight else ""
        raise Unfit(f'Write a time of day in quotes, with two digits for the hour, as in "09:30"{end}.')

    def schema(self) -> dict[str, Any]:
        """A text of this form."""
        end = f"|{_MIDNIGHT}" if self.may_be_midnight else ""
        return {"type": "string", "pattern": f"^({_CLOCK.pattern}{end})$"}

    def show(self, value: Any) -> str:
        """As it is written."""
        return show_clock(value)


class Date(msgspec.Struct, frozen=True):
    """A day of a year."""

    form: str = "day, in quotes"

    def read(self, value: Scalar) -> int:
        """Days since 1970."""
        try:
            if isinstance(value, str) and _DAY.fullmatch(value):
                return (date.fromisoformat(value) - _EPOCH).days
        except ValueError:  # the month has no such day
            pass
        raise Unfit('Write a day that there is, in quotes, as in "2026-10-12".')

    def schema(self) -> dict[str, Any]:
        """A text of this form."""
        return {"type": "string", "format": "date", "pattern": f"^{_DAY.pattern}$"}

    def show(self, value: Any) -> str:
        """As it is written."""
        return "none" if value is None else (_EPOCH + timedelta(value)).isoformat()


class TimeZone(msgspec.Struct, frozen=True):
    """A place whose clocks count."""

    form: str = "name in the tz database"

    def read(self, value: Scalar) -> Zone:
        """The scheduler's table."""
        found = zone(value) if isinstance(value, str) else None
        if found is not None:
            return found
        near = difflib.get_close_matches(value[:64], names(), n=1) if isinstance(value, str) else []
        remedy = f"Did you mean {near[0]}? " if near else ""
        raise Unfit(f'{remedy}Write the name of a time zone in the tz database, as in "Europe/Berlin" or "UTC".')

    def schema(self) -> dict[str, Any]:
        """A text; which names there are is checked by the reader."""
        return {"type": "string", "minLength": 1, "maxLength": 64}

    def show(self, value: Any) -> str:
        """The name."""
        return cast("Zone", value).name


#: The settings of class hours.
CLASS_HOURS_WORDS = (
    Word("days", "days", Days(), "The days of the week that they are on.", '["Mon", "Wed"]', is_needed=True),
    Word("from", "from_minute", Clock(), "When they begin.", '"10:00"', is_needed=True),
    Word(
        "until", "until_minute", Clock(may_be_midnight=True), "When they end, on that day.", '"12:00"', is_needed=True
    ),
    Word("guaranteed", "guaranteed_milli", Gpus(), "What the project is guaranteed in them.", "8", is_needed=True),
    Word("time_zone", "zone", TimeZone(), "Where the clock is that shows it.", '"Europe/Berlin"', is_needed=True),
    Word("first_day", "first_day", Date(), "They are not on before this day.", '"2026-10-12"'),
    Word("last_day", "last_day", Date(), "They are not on after this day.", '"2027-02-05"'),
)


class Windows(msgspec.Struct, frozen=True):
    """Class hours by name. The reader reads the table, since each of its settings has a line of its own."""

    form: str = "tables by name: see below"

    def read(self, _: Scalar) -> tuple[ClassHours, ...]:
        """Raises Unfit: it is no value."""
        raise Unfit("Write names below it, each with its settings.")

    def schema(self) -> dict[str, Any]:
        """Names of tables."""
        return {
            "type": ["object", "null"],
            "propertyNames": {"minLength": 1, "maxLength": HOURS_NAME_LENGTH},
            "additionalProperties": {"$ref": "#/$defs/class_hours"},
        }

    def show(self, value: Any) -> str:
        """Each one as in "'lecture' Mon, Wed 10:00-12:00 Europe/Berlin, 8 GPUs"."""
        return "; ".join(map(_show_one, cast("Sequence[ClassHours]", value))) or "none"


def _show_one(one: ClassHours) -> str:
    days = Days().show(one.days)
    text = f"{one.name!r} {days} {show_clock(one.from_minute)}-{show_clock(one.until_minute)} {one.zone.name}"
    text += f" from {Date().show(one.first_day)}" if one.first_day is not None else ""
    text += f" to {Date().show(one.last_day)}" if one.last_day is not None else ""
    return f"{text}, {show_gpus(one.guaranteed_milli)}"
