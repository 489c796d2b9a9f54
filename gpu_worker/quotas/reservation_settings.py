"""What may be written of reservations: the settings of one, and who may be named in it."""

from typing import Any

import msgspec

from bulletin.ids import UserName
from gpu_worker.quotas.class_hours_settings import LocalTime, TimeZoneName
from gpu_worker.quotas.tree import Scalar
from gpu_worker.quotas.value_kinds import GpuAmount, ProjectName, QuotaSetting, UnfitValue, name_problem

RESERVATION_NAME_LENGTH = 64
#: Each has an account in the scheduler until it is taken out of the file.
MOST_RESERVATIONS = 200
_MOST_USERS = 100
_USER_NAME_LENGTH = 255


class UserNames(msgspec.Struct, frozen=True):
    """Names of users, each once; at least one."""

    form: str = "list of names of users"
    without: str = "all of the project"  #: shown where nothing is set

    def read(self, value: Scalar) -> tuple[UserName, ...]:
        """Return the names in their order. Raises UnfitValue."""
        is_list = isinstance(value, tuple) and 0 < len(value) <= _MOST_USERS and len(set(value)) == len(value)
        if isinstance(value, tuple) and is_list and not any(name_problem(one, _USER_NAME_LENGTH) for one in value):
            return tuple(map(UserName, value))
        raise UnfitValue(f'Write a list of 1 to {_MOST_USERS} names, each once, as in ["ann", "bob"].')

    def schema(self) -> dict[str, Any]:
        """Allow a list of texts, each once."""
        name = {"type": "string", "minLength": 1, "maxLength": _USER_NAME_LENGTH}
        return {"type": "array", "items": name, "minItems": 1, "maxItems": _MOST_USERS, "uniqueItems": True}

    def show(self, value: Any) -> str:
        """Write each in quotes; none as `without` says."""
        return ", ".join(map(repr, value or ())) or self.without


#: The settings of a reservation.
RESERVATION_SETTINGS = (
    QuotaSetting("project", "project", ProjectName(), "For whom it is.", '"cs101"', is_needed=True),
    QuotaSetting(
        "users",
        "users",
        UserNames(),
        "For whom in the project: while it is on, their cells count in the reservation. Without it, for all of them.",
        '["ann"]',
    ),
    QuotaSetting("gpus", "guaranteed_milli", GpuAmount(), "How much is guaranteed in it.", "4", is_needed=True),
    QuotaSetting("from", "from_minute", LocalTime(), "When it begins.", '"2026-12-01T10:00"', is_needed=True),
    QuotaSetting("until", "until_minute", LocalTime(), "When it ends.", '"2026-12-01T12:00"', is_needed=True),
    QuotaSetting(
        "time_zone", "zone", TimeZoneName(), "Where the clock is that shows it.", '"Europe/Berlin"', is_needed=True
    ),
)
