"""Reservations: once, from one time to another, GPUs are guaranteed to a project, or to some of its users."""

import msgspec

from bulletin.ids import ProjectId, UserName
from bulletin.units import DAY_MS, MINUTE_MS
from gpu_worker.scheduler.policy.class_hours import Zone


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """A window of one date, by the clock on the wall of its place, in which so much is guaranteed.

    Where clocks show its beginning or its end twice, it is as long as it can be.
    """

    name: str
    project: ProjectId
    guaranteed_milli: int  #: thousandths of a GPU
    from_minute: int  #: since 1970, as clocks there show it
    until_minute: int  #: not in it any more
    zone: Zone
    users: tuple[UserName, ...] = ()  #: for whom it is, in the project; empty is for all of them

    @property
    def begin_ms(self) -> int:
        """When it begins."""
        return self.zone.find_moment(self.from_minute * MINUTE_MS)

    @property
    def end_ms(self) -> int:
        """When it ends."""
        return self.zone.find_moment(self.until_minute * MINUTE_MS, is_last=True)

    @property
    def setting(self) -> str:
        """Name the table of the file that it is in."""
        return "reservations"

    @property
    def first_day(self) -> int:
        """On which day it begins, as the place counts them since 1970."""
        return self.from_minute * MINUTE_MS // DAY_MS

    @property
    def account_id(self) -> ProjectId:
        """What the account of its users is called, which is inside the project."""
        return ProjectId(f"{self.name} in {self.project}")

    def is_on(self, now_ms: int) -> bool:
        """Whether it is on."""
        return self.begin_ms <= now_ms < self.end_ms

    def next_edge_ms(self, now_ms: int) -> int | None:
        """When it begins or ends next, after this time; None is never."""
        return next((at_ms for at_ms in (self.begin_ms, self.end_ms) if now_ms < at_ms), None)

    def is_over(self, now_ms: int) -> bool:
        """Whether it never is on again."""
        return self.end_ms <= now_ms

    def begins(self, at_ms: int) -> bool:
        """Whether it begins at this time."""
        return at_ms == self.begin_ms

    def show_edge(self, project: str, *, is_end: bool) -> str:  # noqa: ARG002  # as class hours are asked
        """Say that it begins or ends: "the reservation 'exam' begins"."""
        return f"the reservation {self.name!r} {'ends' if is_end else 'begins'}"
