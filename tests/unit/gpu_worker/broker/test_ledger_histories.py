"""Random histories, told in any order and more than once: the ledger says the same of all of them."""

import itertools
import random
from collections import Counter
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings, strategies as st

from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import CellRecord, ConfigChange, CreditRecord, HotRecord, LeaseRecord, Record
from gpu_worker.broker.tables import metadata
from gpu_worker.broker.usage import Usage
from tests.unit.gpu_worker.broker.ledger_records import rows
from tests.unit.gpu_worker.broker.meter_histories import histories

_numbers = itertools.count()
DAY_MS = 86_400_000


@st.composite
def facts(draw: st.DrawFn) -> list[Record]:
    """All kinds of records, each once."""
    projects = st.sampled_from(["ml", "bio"])
    entries = [
        CreditRecord(
            credit=f"k{number}",
            project=draw(projects),  # type: ignore[arg-type]
            gpu_ms=draw(st.integers(-(10**12), 10**12)),
            at_ms=draw(st.integers(0, 10**9)),
            cause="lent",
        )
        for number in range(draw(st.integers(0, 4)))
    ]
    changes = [
        ConfigChange(change=f"f{n}", at_ms=n, who="root", what="pool", field="slots", before=n, after=draw(st.text()))  # type: ignore[arg-type]
        for n in range(draw(st.integers(0, 2)))
    ]
    return [*draw(histories()), *entries, *changes]


def expected(told: list[Record]) -> tuple[dict[tuple[str, str, int], Counter[str]], dict[str, int]]:
    """Sums by user, kind and day, slot time in thousandths, and credits by project, counted by hand."""
    days: dict[tuple[str, str, int], Counter[str]] = {}
    balances: dict[str, int] = {}

    def add(one: CellRecord | HotRecord, name: str, start_ms: int, end_ms: int) -> None:
        while start_ms < end_ms:
            day = start_ms // DAY_MS
            until_ms = min(end_ms, (day + 1) * DAY_MS)
            sums = days.setdefault((one.user, one.kind, day), Counter())
            sums[name] += (until_ms - start_ms) * milli(one)
            if isinstance(one, CellRecord):
                length_ms = until_ms - start_ms
                sums["charged_ms"] += (length_ms - length_ms * one.refunded_ms // one.held_ms) * one.charged
            start_ms = until_ms

    for one in told:
        match one:
            case CellRecord():
                for span in one.held:
                    add(one, "in_quota_ms" if span.is_in_quota else "borrowed_ms", span.started_at_ms, span.ended_at_ms)
                sums = days.setdefault((one.user, one.kind, one.ended_at_ms // DAY_MS), Counter())
                for name, value in (
                    ("cells", 1),
                    ("ran_ms", one.ran_ms),
                    ("refunded_ms", one.refunded_ms * milli(one)),
                ):
                    sums[name] += value
            case HotRecord():
                add(one, "hot_ms", one.started_at_ms, one.ended_at_ms)
            case CreditRecord():
                balances[one.project] = balances.get(one.project, 0) + one.gpu_ms
    return days, balances


def milli(one: CellRecord | HotRecord) -> int:
    return 1000 * len(one.slots) if one.milli is None else one.milli


def rounded(sums: Counter[str]) -> Counter[str]:
    """As the ledger says them, without what is nothing."""
    times = {name: value if name in ("cells", "ran_ms") else value // 1000 for name, value in sums.items()}
    return Counter({name: value for name, value in times.items() if value})


def tell(ledger: Ledger, told: list[Record], chance: random.Random) -> list[Record]:
    """Tell all of it doubled, out of order, in pieces of any size: what the ledger said was new."""
    doubled = [one for one in told for _ in range(chance.randint(1, 3))]
    chance.shuffle(doubled)
    new = []
    while doubled:
        size = chance.randint(1, 20)
        new += ledger.record(doubled[:size], at_ms=0)
        del doubled[:size]
    return new


def holds(ledger: Ledger, told: list[Record]) -> None:
    days, balances = expected(told)
    found = {
        (one.of, one.kind, one.from_ms // DAY_MS): Counter(
            {name: getattr(one, name) for name in Usage.__struct_fields__[4:] if getattr(one, name)}
        )
        for one in ledger.usage("user", period="day")
    }
    assert all(one.from_ms % DAY_MS == 0 for one in ledger.usage("user", period="day"))
    assert found == {key: rounded(sums) for key, sums in days.items()}
    assert ledger.balances() == balances
    assert list(ledger.audit()) == []
    for one in ledger.usage("qos"):  # all are of the same
        whole = sum((sums for (_, kind, _), sums in days.items() if kind == one.kind), Counter[str]())
        assert Counter({n: getattr(one, n) for n in Usage.__struct_fields__[4:] if getattr(one, n)}) == rounded(whole)
    cells = [one for one in told if isinstance(one, CellRecord)]
    assert len(ledger.cells(limit=1000)) == len(cells)
    open_leases = {one.lease.lease for one in ledger.open_leases()}
    ended = {one.lease for one in told if isinstance(one, LeaseRecord) and one.ended_at_ms is not None}
    assert open_leases == {one.lease for one in told if isinstance(one, LeaseRecord)} - ended


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(facts(), st.randoms(use_true_random=False))
def test_sums_are_the_same_whatever_is_said_twice_or_late(
    sqlite_template: Path, tmp_path_factory, told: list[Record], chance: random.Random
) -> None:
    path = tmp_path_factory.getbasetemp() / f"history-{next(_numbers)}.db"
    path.write_bytes(sqlite_template.read_bytes())
    with Ledger.open(f"sqlite:///{path}") as ledger:
        new = tell(ledger, told, chance)
        rest = [one for one in told if one not in new]
        assert len(new) + len(rest) == len(told)
        assert all(isinstance(one, LeaseRecord) and one.ended_at_ms is None for one in rest), "an end came first"
        holds(ledger, told)
        assert tell(ledger, told, chance) == []
        holds(ledger, told)
        assert rows(f"sqlite:///{path}", "SELECT COUNT(*) FROM events") == [(len(new),)]


KINDS = {
    "cell-recorded": CellRecord,
    "hot-recorded": HotRecord,
    "lease-granted": LeaseRecord,
    "lease-ended": LeaseRecord,
    "credit-recorded": CreditRecord,
    "config-changed": ConfigChange,
}


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(facts(), st.randoms(use_true_random=False))
def test_all_tables_can_be_made_again_from_the_events(
    sqlite_template: Path, tmp_path_factory, told: list[Record], chance: random.Random
) -> None:
    urls = []
    for _ in range(2):
        path = tmp_path_factory.getbasetemp() / f"history-{next(_numbers)}.db"
        path.write_bytes(sqlite_template.read_bytes())
        urls.append(f"sqlite:///{path}")
    with Ledger.open(urls[0]) as ledger:
        tell(ledger, told, chance)
    events = rows(urls[0], "SELECT kind, payload FROM events ORDER BY seq")
    with Ledger.open(urls[1]) as ledger:
        ledger.record([msgspec.json.decode(payload, type=KINDS[kind]) for kind, payload in events], at_ms=0)
    for table in metadata.tables:
        order = ", ".join(column.name for column in metadata.tables[table].primary_key)
        if table != "events":
            query = f"SELECT * FROM {table} ORDER BY {order}"
            assert rows(urls[0], query) == rows(urls[1], query)


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(facts(), st.randoms(use_true_random=False))
def test_they_are_on_postgresql_too(postgres, postgres_template: str, told: list[Record], chance) -> None:  # type: ignore[no-untyped-def]
    with Ledger.open(postgres.make_database(f"history_{next(_numbers)}", postgres_template)) as ledger:
        tell(ledger, told, chance)
        holds(ledger, told)
