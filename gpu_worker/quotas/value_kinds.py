"""The values that a quota file may have, each kind once: how it is read, shown, and told to an editor."""

import re
from decimal import Decimal
from typing import Any, Protocol, cast

import msgspec

from bulletin.ids import ProjectId
from bulletin.units import DAY_MS, HOUR_MS, parse_duration_ms
from gpu_worker.quotas.tree import Scalar
from gpu_worker.scheduler.policy.projects import GPU_MILLI, Budget, Preemption, show_gpus

_MOST_GPUS = 1_000_000
MOST_WHOLE = 1_000_000
_MOST_HOURS = 1_000_000_000
#: As long as the ledger keeps them.
PROJECT_NAME_LENGTH, QOS_NAME_LENGTH = 255, 64
#: Says that there is no limit, where the default is one or somebody might think so.
UNLIMITED = "unlimited"
#: Shown where nothing is set, and what the project is in decides.
OF_PARENT = "as its parent"
_THREE_PLACES = r"(?:\.[0-9]{1,3})?"
_DURATION = re.compile(r"\s*[0-9]{1,12}(?:\.[0-9]{1,6})?\s*(?:ms|s|min|h|d)\s*", re.IGNORECASE)
_BUDGET = re.compile(rf"\s*([0-9]{{1,10}}{_THREE_PLACES}) GPU[- ]hours? per (day|week|month)\s*", re.IGNORECASE)
_UNITS = (("d", DAY_MS), ("h", HOUR_MS), ("min", 60_000), ("s", 1000), ("ms", 1))


class UnfitValue(Exception):
    """A value that a setting cannot have. The message is the remedy, as a sentence."""


class ValueKind(Protocol):
    """The values that a setting may have: how they are read, shown, and told to an editor."""

    @property
    def form(self) -> str:
        """Say what to write, for the reference page: "GPUs, from 0"."""

    def read(self, value: Scalar) -> Any:
        """Turn what the file says into what the scheduler's model has for it. Raises UnfitValue."""

    def schema(self) -> dict[str, Any]:
        """Describe the same values as JSON schema."""

    def show(self, value: Any) -> str:
        """Write a value of the scheduler's model as people read it. Two values never look alike."""


class GpuAmount(msgspec.Struct, frozen=True):
    """An amount of GPUs, to the thousandth: "4", "1.5", or "unlimited" where that is allowed."""

    may_be_unlimited: bool = False

    @property
    def form(self) -> str:
        """Say what to write, for the reference page."""
        return "GPUs, from 0" + _or_unlimited(self.may_be_unlimited)

    def read(self, value: Scalar) -> int | None:
        """Return thousandths of a GPU; None is no limit. Raises UnfitValue."""
        if value == UNLIMITED and self.may_be_unlimited:
            return None
        milli = _scaled(value, GPU_MILLI, 0, _MOST_GPUS)
        if milli is None:
            either = f', or "{UNLIMITED}"' if self.may_be_unlimited else ""
            raise UnfitValue(f"Write a number of GPUs from 0 on with at most three decimals, as in 4 or 1.5{either}.")
        return milli

    def schema(self) -> dict[str, Any]:
        """Allow a number, or the word for no limit."""
        return _schema_or_unlimited({"type": "number", "minimum": 0, "maximum": _MOST_GPUS}, self.may_be_unlimited)

    def show(self, value: Any) -> str:
        """Write thousandths of a GPU as in "1.5 GPUs"."""
        return UNLIMITED if value is None else show_gpus(value)


class WholeNumber(msgspec.Struct, frozen=True):
    """A whole number from `least` on, or "unlimited" where that is allowed."""

    least: int
    may_be_unlimited: bool = False
    without: str = UNLIMITED  #: shown where nothing is set

    @property
    def form(self) -> str:
        """Say what to write, for the reference page."""
        start = f"whole number, from {self.least}" if self.least >= 0 else "whole number, also below 0"
        return start + _or_unlimited(self.may_be_unlimited)

    def read(self, value: Scalar) -> int | None:
        """Return the number; None is no limit. Raises UnfitValue."""
        if value == UNLIMITED and self.may_be_unlimited:
            return None
        number = _scaled(value, 1, self.least, MOST_WHOLE)
        if number is None:
            either = f', or "{UNLIMITED}"' if self.may_be_unlimited else ""
            raise UnfitValue(f"Write a whole number from {self.least} to {MOST_WHOLE}{either}.")
        return number

    def schema(self) -> dict[str, Any]:
        """Allow a whole number, or the word for no limit."""
        form = {"type": "integer", "minimum": self.least, "maximum": MOST_WHOLE}
        return _schema_or_unlimited(form, self.may_be_unlimited)

    def show(self, value: Any) -> str:
        """Write the digits."""
        return self.without if value is None else str(value)


class Factor(msgspec.Struct, frozen=True):
    """A factor, kept in whole percent."""

    most: int = 100
    form: str = "number, from 0 to 100"

    def read(self, value: Scalar) -> int:
        """Return whole percent. Raises UnfitValue."""
        percent = _scaled(value, 100, 0, self.most)
        if percent is None:
            raise UnfitValue(f"Write a number from 0 to {self.most} with at most two decimals, as in 0.5.")
        return percent

    def schema(self) -> dict[str, Any]:
        """Allow a number."""
        return {"type": "number", "minimum": 0, "maximum": self.most}

    def show(self, value: Any) -> str:
        """Write percent as the file does, as a factor."""
        return _plain(Decimal(value) / 100)


class Duration(msgspec.Struct, frozen=True):
    """A duration with its unit. A bare number is refused: seconds and minutes would be taken for each other."""

    least_ms: int
    most_ms: int
    without: str = ""  #: shown where nothing is set

    @property
    def form(self) -> str:
        """Say what to write, for the reference page."""
        return f'number and unit (ms, s, min, h, d), from "{self.show(self.least_ms)}" to "{self.show(self.most_ms)}"'

    def read(self, value: Scalar) -> int:
        """Return milliseconds. Raises UnfitValue."""
        if isinstance(value, str) and _DURATION.fullmatch(value):
            duration_ms = parse_duration_ms(value)
            if self.least_ms <= duration_ms <= self.most_ms:
                return duration_ms
        raise UnfitValue(
            'Write a number and a unit in quotes, as in "30 min"; '
            f"units are ms, s, min, h, d, and it goes from {self.show(self.least_ms)} to {self.show(self.most_ms)}."
        )

    def schema(self) -> dict[str, Any]:
        """Allow a text of this form; its size is checked by the reader."""
        return {"type": "string", "pattern": r"^\s*[0-9]{1,12}(\.[0-9]{1,6})?\s*([mM]?[sS]|[mM][iI][nN]|[hH]|[dD])\s*$"}

    def show(self, value: Any) -> str:
        """Write milliseconds exactly, in the largest unit that divides them; 0 is "0 s"."""
        if value is None:
            return self.without
        if value == 0:
            return "0 s"
        unit, size = next((unit, size) for unit, size in _UNITS if value % size == 0)
        return f"{value // size} {unit}"


class YesNo(msgspec.Struct, frozen=True):
    """true or false, without quotes."""

    form: str = "true or false"

    def read(self, value: Scalar) -> bool:
        """Return the truth value. Raises UnfitValue."""
        if not isinstance(value, bool):
            raise UnfitValue("Write true or false, without quotes.")
        return value

    def schema(self) -> dict[str, Any]:
        """Allow true and false."""
        return {"type": "boolean"}

    def show(self, value: Any) -> str:
        """Write it as the file does."""
        return str(value).lower()


class PreemptionMode(msgspec.Struct, frozen=True):
    """What happens to a borrowed cell whose GPU is wanted back."""

    @property
    def form(self) -> str:
        """Say what to write, for the reference page."""
        return ", ".join(f'"{one.value}"' for one in Preemption)

    def read(self, value: Scalar) -> Preemption:
        """Return the scheduler's mode. Raises UnfitValue."""
        for one in Preemption:
            if one.value == value:
                return one
        raise UnfitValue(f"Write one of {self.form}.")

    def schema(self) -> dict[str, Any]:
        """Allow the modes."""
        return {"enum": [one.value for one in Preemption]}

    def show(self, value: Any) -> str:
        """Write it as the file does."""
        return str(cast("Preemption", value).value)


class GpuHours(msgspec.Struct, frozen=True):
    """A budget: how much GPU time a period has."""

    form: str = f'"N GPU-hours per day" (week, month), or "{UNLIMITED}"'

    def read(self, value: Scalar) -> Budget | None:
        """Return the scheduler's budget; None is no budget. Raises UnfitValue."""
        if value == UNLIMITED:
            return None
        match = _BUDGET.fullmatch(value) if isinstance(value, str) else None
        if match is None or Decimal(match[1]) > _MOST_HOURS:
            raise UnfitValue(
                'Write it as in "200 GPU-hours per week"; the period is day, week or month, and the hours go '
                f'from 0 to {_MOST_HOURS} with at most three decimals. "{UNLIMITED}" is no budget.'
            )
        return Budget(int(Decimal(match[1]) * HOUR_MS), cast("Any", match[2].lower()))

    def schema(self) -> dict[str, Any]:
        """Allow a text of this form, or the word for no budget."""
        hours = r"^\s*[0-9]{1,10}(\.[0-9]{1,3})? [gG][pP][uU][- ][hH][oO][uU][rR][sS]? [pP][eE][rR] "
        period = "(" + "|".join("".join(f"[{c}{c.upper()}]" for c in word) for word in ("day", "week", "month")) + ")"
        return _schema_or_unlimited({"type": "string", "pattern": hours + period + r"\s*$"}, may_be=True)

    def show(self, value: Any) -> str:
        """Write it as the file does."""
        if value is None:
            return UNLIMITED
        budget = cast("Budget", value)
        return f"{_plain(Decimal(budget.gpu_ms) / HOUR_MS)} GPU-hours per {budget.period}"


class ProjectName(msgspec.Struct, frozen=True):
    """The name of another project."""

    form: str = "name of a project in this file"

    def read(self, value: Scalar) -> ProjectId:
        """Return the name. Whether there is such a project is checked of all projects together. Raises UnfitValue."""
        if not isinstance(value, str) or name_problem(value, PROJECT_NAME_LENGTH):
            raise UnfitValue("Write the name of another project of this file, in quotes.")
        return ProjectId(value)

    def schema(self) -> dict[str, Any]:
        """Allow a text that can be a name."""
        return {"type": "string", "minLength": 1, "maxLength": PROJECT_NAME_LENGTH}

    def show(self, value: Any) -> str:
        """Quote the name; "none" without quotes is no parent."""
        return "none" if value is None else repr(value)


class QosName(msgspec.Struct, frozen=True):
    """The name of a class of service."""

    form: str = "name of a class of service"

    def read(self, value: Scalar) -> str:
        """Return the name. Whether there is such a class is checked of the whole file. Raises UnfitValue."""
        if not isinstance(value, str) or name_problem(value, QOS_NAME_LENGTH):
            raise UnfitValue("Write the name of a class of service, in quotes.")
        return value

    def schema(self) -> dict[str, Any]:
        """Allow a text that can be a name."""
        return {"type": "string", "minLength": 1, "maxLength": QOS_NAME_LENGTH}

    def show(self, value: Any) -> str:
        """Quote the name."""
        return OF_PARENT if value is None else repr(value)


class QosNames(msgspec.Struct, frozen=True):
    """Names of classes of service, at least one."""

    form: str = "list of names of classes of service"

    def read(self, value: Scalar) -> tuple[str, ...]:
        """Return the names in their order. Raises UnfitValue."""
        is_list = isinstance(value, tuple) and value and len(set(value)) == len(value)
        if not is_list or any(name_problem(name, QOS_NAME_LENGTH) for name in cast("tuple[str, ...]", value)):
            raise UnfitValue('Write a list of classes of service, each once, as in ["interactive", "batch"].')
        return cast("tuple[str, ...]", value)

    def schema(self) -> dict[str, Any]:
        """Allow a list of texts, each once."""
        return {"type": "array", "items": QosName().schema(), "minItems": 1, "uniqueItems": True}

    def show(self, value: Any) -> str:
        """Write each in quotes."""
        return OF_PARENT if value is None else ", ".join(map(repr, value))


class QuotaSetting(msgspec.Struct, frozen=True):
    """One setting: its name in the file, the field of the scheduler's model, what it may be, and what it is for."""

    name: str
    field: str
    kind: ValueKind
    help: str
    example: str  #: as TOML writes it
    is_needed: bool = False  #: whether it must be written


def name_problem(name: str, longest: int) -> str:
    """Say why this cannot be a name, as words for a sentence; empty where it can."""
    if not name.strip():
        return "is empty"
    if len(name) > longest:
        return f"has {len(name)} characters"
    if name != name.strip():
        return "begins or ends with a space"
    return "" if name.isprintable() else "has characters that cannot be seen"


def _scaled(value: Scalar, scale: int, least: int, most: int) -> int | None:
    """Return `value` times `scale` if that is whole and `value` from `least` to `most`, else None."""
    if not isinstance(value, Decimal) or not value.is_finite() or not least <= value <= most:
        return None
    step = Decimal(1) / scale
    rounded = value.quantize(step)  # the range is checked: it fits the precision
    return int(rounded * scale) if rounded == value else None


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _or_unlimited(may_be: bool) -> str:  # noqa: FBT001  # a word of the sentence
    return f', or "{UNLIMITED}"' if may_be else ""


def _schema_or_unlimited(form: dict[str, Any], may_be: bool) -> dict[str, Any]:  # noqa: FBT001  # see above
    return {"anyOf": [form, {"const": UNLIMITED}]} if may_be else form
