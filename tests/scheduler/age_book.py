"""What the referee knows of cells that were reclaimed: where they stood, for when the same is asked for again."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bulletin.ids import CellId
    from gpu_worker.scheduler import events as ev
    from tests.scheduler.tenancy import Tenancy

HOUR = 3_600_000


@dataclass
class AgeBook:
    lost: dict[str, tuple[tuple[object, ...], tuple[int, int] | None, int]] = field(default_factory=dict)  # by session

    def started(self, lease: "Tenancy", now_ms: int, number: int) -> None:
        """A cell began: that of the request, or another of a hot session, which is due when it begins."""
        if lease.state == "busy" or lease.age is None:
            lease.age = now_ms // 10_000, number

    def ended(self, lease: "Tenancy", cell: "CellId") -> None:
        if lease.state == "granted" or lease.cell == cell:
            lease.age = None
            self.lost.pop(lease.session, None)

    def reclaimed(self, lease: "Tenancy", now_ms: int) -> None:
        rest = (lease.gpu_type, lease.gpu_memory_bytes, lease.cpus, lease.memory_bytes)
        wanted = (lease.user, lease.home, lease.qos, len(lease.slots), *rest)
        self.lost[lease.session] = wanted, lease.age, now_ms + HOUR

    def is_expected(self, session: str, now_ms: int) -> bool:
        """Whether it asks for a cell that was reclaimed within the hour: however many may wait, it may."""
        return session in self.lost and now_ms < self.lost[session][2]

    def asked(self, asked: "ev.RequestSubmitted", now_ms: int) -> tuple[int, int] | None:
        """When the request is due, and its number, if it is for a cell that was reclaimed within the hour."""
        wanted, age, until_ms = self.lost.pop(asked.session, ((), (0, 0), 0))
        rest = (asked.gpu_type, asked.gpu_memory_bytes, asked.cpus, asked.memory_bytes)
        is_same = wanted == (asked.user, asked.project, asked.qos, max(1, asked.gpus), *rest)
        return age if is_same and now_ms < until_ms else None
