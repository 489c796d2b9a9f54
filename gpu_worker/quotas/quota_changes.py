"""What differs between two sets of quotas: as data for the ledger, and as sentences for the log."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from bulletin.ids import ProjectId
from gpu_worker.quotas.group_rule_settings import EMPTY_RULE, GROUP_RULE_SETTINGS
from gpu_worker.quotas.node_pool_settings import NODE_POOL_SETTINGS
from gpu_worker.quotas.quota_settings import (
    NEW_QOS,
    PRICE_SETTINGS,
    PROJECT_SETTINGS,
    QOS_SETTINGS,
    SCHEDULER_SETTINGS,
)
from gpu_worker.quotas.reservation_settings import RESERVATION_SETTINGS
from gpu_worker.quotas.value_kinds import QuotaSetting
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.group_rules import GroupRule
from gpu_worker.scheduler.policy.prices import USUAL_PERCENT, Price
from gpu_worker.scheduler.policy.projects import NodePool, Project, QoS

_Named = TypeVar("_Named", QoS, NodePool, Reservation)
#: Whose setting changed: of the scheduler, of all prices and of all rules there is one.
What = Literal[
    "project", "node pool", "qos", "scheduler", "price", "prices", "reservation", "group rule", "group rules"
]


class Comparable(Protocol):
    """All that a file says, or another one did. The settings of the scheduler are fields of it, too."""

    @property
    def projects(self) -> Sequence[Project]:
        """What projects there are."""

    @property
    def group_rules(self) -> Sequence[GroupRule]:
        """What groups are that are no projects, in the order in which that is looked for."""

    @property
    def node_pools(self) -> Sequence[NodePool]:
        """What node pools there are."""

    @property
    def qos(self) -> Sequence[QoS]:
        """What classes of service there are."""

    @property
    def prices(self) -> Sequence[Price]:
        """What GPUs cost, in the order in which they are looked at."""

    @property
    def reservations(self) -> Sequence[Reservation]:
        """What is reserved."""


class QuotaChange(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that is not as it was.

    A project or class of service that came or went is one change with the field "": `before` or `after` is None, and
    the other side has all that is set in it, in one text.
    """

    what: What
    name: str  #: empty for the scheduler, and for the order of prices or rules
    field: str  #: the setting, as the quota file calls it
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """Describe the change in a sentence for the log, without a full stop."""
        thing = f"{self.what} {self.name!r}" if self.name else f"the {self.what}"
        if self.field:
            return f"{self.field} of {thing}: {self.before} -> {self.after}"
        return f"{thing} removed, had {self.before}" if self.after is None else f"{thing} added, with {self.after}"


def compare_quotas(before: Comparable, after: Comparable) -> Iterator[QuotaChange]:
    """Yield each difference once: projects, classes of service, the scheduler; what was there first, in its order."""
    projects = _by_id(before.projects), _by_id(after.projects)
    yield from _compare("project", *projects, PROJECT_SETTINGS, Project(id=ProjectId("")))
    yield from _compare_rules(before.group_rules, after.group_rules)
    pools = _by_name(before.node_pools), _by_name(after.node_pools)
    yield from _compare("node pool", *pools, NODE_POOL_SETTINGS, NodePool(name=""))
    yield from _compare("qos", _by_name(before.qos), _by_name(after.qos), QOS_SETTINGS, NEW_QOS)
    yield from _compare_one("scheduler", "", before, after, SCHEDULER_SETTINGS)
    yield from _compare_prices(before.prices, after.prices)
    reservations = _by_name(before.reservations), _by_name(after.reservations)
    yield from _compare("reservation", *reservations, RESERVATION_SETTINGS, None)


def _compare_prices(before: Sequence[Price], after: Sequence[Price]) -> Iterator[QuotaChange]:
    """Yield prices that are not as they were, and their order where only that is another."""
    known = {one.gpu: one for one in before}, {one.gpu: one for one in after}
    usual = Price("", USUAL_PERCENT)
    yield from _compare("price", *known, PRICE_SETTINGS, usual)
    if known[0] == known[1] and before != after:
        was, now = (", ".join(one.gpu for one in prices) for prices in (before, after))
        yield QuotaChange(what="prices", name="", field="order", before=was, after=now)


def _compare_rules(before: Sequence[GroupRule], after: Sequence[GroupRule]) -> Iterator[QuotaChange]:
    """Yield rules that are not as they were, and their order where that is another."""
    yield from _compare("group rule", _by_id(before), _by_id(after), GROUP_RULE_SETTINGS, EMPTY_RULE)
    was, now = ([one.id for one in rules] for rules in (before, after))
    if set(was) == set(now) and was != now:
        yield QuotaChange(what="group rules", name="", field="order", before=", ".join(was), after=", ".join(now))


def _by_id(projects: Sequence[Project]) -> dict[str, Project]:
    return {one.id: one for one in projects}


def _by_name(some: Sequence[_Named]) -> dict[str, _Named]:
    return {one.name: one for one in some}


def _compare(
    what: What,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    settings: Sequence[QuotaSetting],
    default: Any,
) -> Iterator[QuotaChange]:
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after:
            yield QuotaChange(
                what=what, name=name, field="", before=_describe(before[name], settings, default), after=None
            )
        elif name not in before:
            yield QuotaChange(
                what=what, name=name, field="", before=None, after=_describe(after[name], settings, default)
            )
        else:
            yield from _compare_one(what, name, before[name], after[name], settings)


def _compare_one(
    what: What, name: str, before: Any, after: Any, settings: Iterable[QuotaSetting]
) -> Iterator[QuotaChange]:
    for setting in settings:
        was, now = getattr(before, setting.field), getattr(after, setting.field)
        if was != now:
            show = setting.kind.show
            yield QuotaChange(what=what, name=name, field=setting.name, before=show(was), after=show(now))


def _describe(one: Any, settings: Sequence[QuotaSetting], default: Any) -> str:
    """Name all settings of a project or class of service that are not at their default."""
    said = []
    for setting in settings:
        value = getattr(one, setting.field)
        if default is None or value != getattr(default, setting.field):
            said.append(f"{setting.name} {setting.kind.show(value)}")
    return ", ".join(said) or "nothing set"
