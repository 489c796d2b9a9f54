"""What people ask of the ledger: who used how much and when, on the screen, as CSV and as JSON."""

import csv
import io
import json
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from bulletin.codes import CellOutcome
from bulletin.errors import BadConfig
from bulletin.ids import ProjectId, UserName
from bulletin.kept_time import make_kept_cell
from gpu_worker import cli
from gpu_worker.broker import export, recall
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.policy import NewPolicy, Policy, in_force, records
from gpu_worker.broker.records import CreditRecord, HotRecord, Span
from gpu_worker.broker.seen_groups import SEEN, SeenGroup, recalled
from gpu_worker.broker.usage import Usage
from gpu_worker.config import Pool
from gpu_worker.engines import BAD_CONFIG
from gpu_worker.quotas import Quotas, read_quotas
from gpu_worker.scheduler.machine import Scheduler
from tests.unit.gpu_worker.broker.ledger_records import HOLDER, record

HOUR_MS = 3_600_000


def ms(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp()) * 1000  # type: ignore[misc]


def test_usage_adds_up_with_gpus_and_cpu_slots_apart(ledger: Ledger) -> None:
    ledger.record_cell(record("c1"), at_ms=0)
    ledger.record_cell(record("c2", kind="cpu", slots=("cpu-0",), held_ms=10, ran_ms=10), at_ms=0)
    ledger.record_cell(record("c3", user="bob", project="bio", slots=("gpu-0",), held_ms=7, ran_ms=7), at_ms=0)
    span = {"from_ms": 1_010, "until_ms": 4_001}
    anns = [
        Usage(of="ann", kind="gpu", cells=1, ran_ms=2_900, in_quota_ms=5_980, charged_ms=5_980, **span),
        Usage(of="ann", kind="cpu", cells=1, ran_ms=10, in_quota_ms=10, charged_ms=10, **span),
    ]
    bobs = Usage(of="bob", kind="gpu", cells=1, ran_ms=7, in_quota_ms=7, charged_ms=7, **span)
    assert ledger.usage(by="user") == [anns[0], bobs, anns[1]]
    assert [(one.of, one.gpu_ms, one.slot_ms) for one in ledger.usage(by="project")] == [
        ("ml", 5_980, 5_980),
        ("bio", 7, 7),
        ("ml", 0, 10),
    ]
    assert [(one.of, one.kind, one.cells) for one in ledger.usage(by="qos")] == [
        ("interactive", "gpu", 2),
        ("interactive", "cpu", 1),
    ]
    assert ledger.usage(by="user", since_ms=4_001) == []


def test_usage_by_label_is_apart_from_that_of_cells_without_one(ledger: Ledger) -> None:
    spans = (Span(1_000, 1_600, is_in_quota=False), Span(1_600, 2_000))
    changes = {"ended_at_ms": 2_000, "held_ms": 1_000, "ran_ms": 900, "slots": ("gpu-0",)}
    ledger.record_cell(record("c1", label="run", spans=spans, **changes), at_ms=0)
    ledger.record_cell(record("c2", label="run", user="bob", **changes), at_ms=0)
    ledger.record_cell(record("c3", **changes), at_ms=0)
    hot = HotRecord(**HOLDER, started_at_ms=2_000, ended_at_ms=2_250)  # type: ignore[arg-type]
    ledger.record([hot], at_ms=0)
    told = [(one.of, one.cells, one.in_quota_ms, one.borrowed_ms) for one in ledger.usage("label")]
    assert told == [("run", 2, 1_400, 600), ("", 1, 1_000, 0)]
    assert sum(one.slot_ms for one in ledger.usage("user")) == sum(one.slot_ms for one in ledger.usage("label"))


def test_an_empty_ledger_has_no_usage(ledger: Ledger) -> None:
    assert ledger.usage("user") == []
    assert ledger.usage("user", period="day", since_ms=0) == []


def test_borrowed_time_refunds_and_hot_time_are_apart(ledger: Ledger) -> None:
    spans = (Span(1_000, 1_600, is_in_quota=False), Span(1_600, 2_000))
    lost = record("c1", ended_at_ms=2_000, held_ms=1_000, ran_ms=900, spans=spans, refunded_ms=1_000)
    hot = HotRecord(**HOLDER, started_at_ms=2_000, ended_at_ms=2_250)  # type: ignore[arg-type]
    ledger.record([lost, hot], at_ms=0)
    (used,) = ledger.usage("project")
    assert (used.in_quota_ms, used.borrowed_ms, used.refunded_ms, used.hot_ms) == (800, 1_200, 2_000, 500)


def test_a_slice_counts_as_its_part_of_a_gpu_and_what_an_older_version_wrote_as_whole(ledger: Ledger) -> None:
    changes = {"held_ms": 1_000, "ran_ms": 1_000, "ended_at_ms": HOUR_MS - 1}
    ledger.record_cell(record("c1", slots=("gpu-0", "gpu-1"), milli=375, **changes), at_ms=0)
    ledger.record_cell(record("c2", slots=("gpu-0",), milli=125, refunded_ms=1_000, **changes), at_ms=0)
    ledger.record_cell(record("c3", slots=("gpu-0",), user="bob", **changes), at_ms=0)
    ledger.record([HotRecord(**HOLDER, milli=250, started_at_ms=10, ended_at_ms=50)], at_ms=0)  # type: ignore[arg-type]
    bob, ann = ledger.usage("user")
    assert (ann.of, ann.slot_ms, ann.gpu_ms, ann.refunded_ms, ann.hot_ms) == ("ann", 500, 500, 125, 10)
    assert (bob.of, bob.slot_ms, bob.gpu_ms) == ("bob", 1_000, 1_000)
    assert [(use.user, use.amount) for use in ledger.past_use(since_ms=0)] == [("ann", 375_000), ("bob", 1_000_000)]
    assert ledger.charged(0, 2 * HOUR_MS) == {("ml", "gpu"): 1_375_000}
    by_name = {one.cell: one for one in ledger.cells()}
    assert [(by_name[name].milli, by_name[name].gpu_ms) for name in ("c1", "c2", "c3")] == [  # type: ignore[index]
        (375, 375),
        (125, 125),
        (None, 1_000),
    ]


def test_what_was_charged_is_at_the_price_of_the_gpus_and_without_refunds(ledger: Ledger) -> None:
    one = {"slots": ("gpu-0",), "milli": 1_000, "held_ms": 1_000, "ran_ms": 1_000, "ended_at_ms": HOUR_MS - 1}
    ledger.record([record("c1", charged_milli=4_000, **one), record("c2", **one)], at_ms=0)
    assert ledger.has_prices()
    lost = record("c3", charged_milli=4_000, refunded_ms=500, **{**one, "ended_at_ms": 2 * HOUR_MS - 1})
    hot = HotRecord(**HOLDER, started_at_ms=0, ended_at_ms=70)  # type: ignore[arg-type]
    ledger.record([lost, hot], at_ms=0)
    (used,) = ledger.usage("user")
    assert (used.slot_ms, used.refunded_ms, used.charged_ms, used.hot_ms) == (3_000, 500, 7_000, 140)
    assert ledger.charged(0, 3 * HOUR_MS) == {("ml", "gpu"): 7_000_000}
    assert [use.amount for use in ledger.past_use(since_ms=0)] == [5_000_000, 2_000_000]
    (first,) = ledger.usage("user", until_ms=HOUR_MS - 501)
    assert first.charged_ms == 2_500, "a cell that runs over the edge counts with its part"
    assert next(export.table([used], "user", None, has_prices=True)).endswith("charged, h")
    assert "charged" not in next(export.table([used], "user", None))


def test_a_cell_over_midnight_is_in_both_days_with_what_it_held_in_each(ledger: Ledger) -> None:
    midnight = ms(2026, 3, 1)
    spans = (Span(midnight - 300, midnight + 100), Span(midnight + 100, midnight + 700, is_in_quota=False))
    ledger.record_cell(record("c1", ended_at_ms=midnight + 700, held_ms=1_000, ran_ms=1_000, spans=spans), at_ms=0)
    for period, starts in (("day", (2026, 2, 28)), ("month", (2026, 2, 1))):
        before, after = ledger.usage("user", period=period)  # type: ignore[arg-type]
        assert (before.from_ms, before.until_ms) == (ms(*starts), midnight)
        assert (before.cells, before.in_quota_ms, before.borrowed_ms) == (0, 600, 0)
        assert (after.cells, after.in_quota_ms, after.borrowed_ms) == (1, 200, 1_200)
    (week,) = ledger.usage("user", period="week")  # 1 March 2026 is a Sunday
    assert (week.from_ms, week.slot_ms) == (ms(2026, 2, 23), 2_000)
    (cut,) = ledger.usage("user", period="day", since_ms=midnight - 100, until_ms=midnight + 50)[1:]
    assert (cut.from_ms, cut.until_ms, cut.slot_ms, cut.cells) == (midnight, midnight + 50, 100, 0)
    assert ledger.usage("user", since_ms=midnight + 700)[0].cells == 1
    assert ledger.usage("user", until_ms=midnight - 300) == []


def test_what_fills_a_day_exactly_is_in_no_other_day(ledger: Ledger) -> None:
    days = [ms(2026, 3, day) for day in (1, 2, 3, 4)]
    around = (ms(2026, 2, 28, 12), days[0] - 1), (days[3] + 1, ms(2026, 3, 4, 12))
    spans = [HotRecord(**HOLDER, started_at_ms=start, ended_at_ms=end) for start, end in (days[1:3], *around)]  # type: ignore[arg-type]
    ledger.record(spans, at_ms=0)
    found = [(one.from_ms, one.hot_ms) for one in ledger.usage("user", period="day")]
    assert found[1:-1] == [(days[1], 2 * 24 * HOUR_MS)]
    assert len(found) == 3


def test_what_sub_projects_use_counts_for_all_that_they_are_in(ledger: Ledger) -> None:
    for number, project in enumerate(["course", "group", "group", "other"]):
        ledger.record_cell(record(f"c{number}", project=project, held_ms=10, ran_ms=1, slots=("gpu-0",)), at_ms=0)
    tree = {"group": "course", "course": "school", "school": None}
    assert {one.of: one.gpu_ms for one in ledger.usage("project", parents=tree)} == {  # type: ignore[arg-type]
        "school": 30,
        "course": 30,
        "group": 20,
        "other": 10,
    }
    ring = {"group": "course", "course": "group"}
    assert {one.of: one.gpu_ms for one in ledger.usage("project", parents=ring)} == {  # type: ignore[arg-type]
        "course": 30,
        "group": 30,
        "other": 10,
    }
    assert {one.of: one.gpu_ms for one in ledger.usage("user", parents=tree)} == {"ann": 40}  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\tx", "\rx", "  =1", "\uff1d1"])
def test_a_spreadsheet_runs_nothing_of_an_export(sqlite_file: Ledger, text: str) -> None:
    sqlite_file.record_cell(record("c1", label=text, user=text), at_ms=0)
    out = io.StringIO(newline="")
    export.write_csv(sqlite_file.each_cell(), export.CELL_FIELDS, out)
    (row,) = csv.DictReader(io.StringIO(out.getvalue(), newline=""))
    assert row["label"] == row["user"]
    assert row["label"].startswith("'")
    assert row["label"].replace("'", "") == text
    assert row["cell"] == "c1"
    out = io.StringIO(newline="")
    export.write_json(sqlite_file.each_cell(), export.CELL_FIELDS, out)
    assert json.loads(out.getvalue())[0]["label"] == text


def test_an_export_has_all_that_the_ledger_has_of_a_cell(ledger: Ledger) -> None:
    ledger.record_cell(record("c1", label='a "b"\nc, é', ended_at_ms=5_000), at_ms=0)
    ledger.record_cell(record("c2", mean_utilization=0.25, ended_at_ms=6_000), at_ms=0)
    out = io.StringIO(newline="")
    export.write_json(ledger.each_cell(), export.CELL_FIELDS, out)
    first, _ = json.loads(out.getvalue())
    assert (first["label"], first["slots"], first["in_quota_ms"], first["mean_utilization"]) == (
        'a "b"\nc, é', ["gpu-0", "gpu-1"], 2_990, None,
    )  # fmt: skip
    out = io.StringIO(newline="")
    export.write_csv(ledger.each_cell(), export.CELL_FIELDS, out)
    one, two = csv.DictReader(io.StringIO(out.getvalue(), newline=""))
    assert (one["label"], one["slots"], one["gpu_ms"], one["mean_utilization"]) == (
        'a "b"\nc, é', '["gpu-0","gpu-1"]', "5980", "",
    )  # fmt: skip
    assert two["mean_utilization"] == "0.25"
    assert [row["cell"] for row in ledger.each_cell(since_ms=5_001)] == ["c2"]
    assert [row["cell"] for row in ledger.each_cell(until_ms=6_000)] == ["c1"]
    out = io.StringIO()
    export.write_json(iter(()), export.CELL_FIELDS, out)
    assert json.loads(out.getvalue()) == []


def test_a_long_export_is_not_in_memory_at_once(ledger: Ledger) -> None:
    ledger.record([record(f"c{number}", label="x" * 4_000) for number in range(2_000)], at_ms=0)

    class Sink(io.StringIO):
        total = 0

        def write(self, text: str) -> int:
            self.total += len(text)
            return len(text)

    out = Sink()
    tracemalloc.start()
    export.write_csv(ledger.each_cell(), export.CELL_FIELDS, out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert out.total > 8_000_000
    assert peak < out.total / 3, "200 rows at a time, of 2,000"


@pytest.fixture
def sqlite_file(tmp_path: Path, sqlite_template: Path):  # type: ignore[no-untyped-def]
    path = tmp_path / "pool" / "ledger.sqlite"
    path.parent.mkdir()
    path.write_bytes(sqlite_template.read_bytes())
    with Ledger.open(f"sqlite:///{path}") as ledger:
        yield ledger


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["usage", *words])
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err  # type: ignore[return-value]


@pytest.fixture
def pool(sqlite_file: Ledger, tmp_path: Path) -> str:
    hours = 3 * HOUR_MS
    end = ms(2026, 9, 15, 1)
    sqlite_file.record_cell(record("c1", ended_at_ms=end, held_ms=hours, ran_ms=1, slots=("gpu-0",)), at_ms=0)
    bobs = {"kind": "cpu", "user": "bob\x1b[2J", "label": "=1"}
    sqlite_file.record_cell(record("c2", ended_at_ms=end, held_ms=1, ran_ms=1, **bobs), at_ms=0)
    return str(tmp_path / "pool")


def test_the_command_shows_hours_by_user(capsys: pytest.CaptureFixture[str], pool: str) -> None:
    status, out, _ = run(capsys, f"--folder={pool}")
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[1] == ["ann", "GPU", "1", "3.00", "0.00", "0.00", "0.00"]
    assert "\x1b" not in out


def test_the_command_sums_days_between_two(capsys: pytest.CaptureFixture[str], pool: str) -> None:
    words = ["--folder", pool, "--by", "project", "--period", "day", "--csv"]
    status, out, _ = run(capsys, *words)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0
    assert [(row["of"], row["kind"], row["from_ms"], row["gpu_ms"], row["cells"]) for row in rows] == [
        ("ml", "gpu", str(ms(2026, 9, 14)), str(2 * HOUR_MS), "0"),
        ("ml", "gpu", str(ms(2026, 9, 15)), str(HOUR_MS), "1"),
        ("ml", "cpu", str(ms(2026, 9, 15)), "0", "1"),
    ]
    assert (rows[0]["from_utc"], rows[0]["until_utc"]) == ("2026-09-14 00:00:00", "2026-09-15 00:00:00")
    status, out, _ = run(capsys, *words[:-1], "--json", "--since=2026-09-14", "--until=2026-09-15")
    assert [row["gpu_ms"] for row in json.loads(out)] == [2 * HOUR_MS]


def test_the_command_writes_cells(capsys: pytest.CaptureFixture[str], pool: str) -> None:
    status, out, _ = run(capsys, f"--folder={pool}", "--cells", "--json")
    assert status == 0
    assert [row["cell"] for row in json.loads(out)] == ["c1", "c2"]
    status, out, _ = run(capsys, f"--folder={pool}", "--cells", "--csv", "--since=2026-09-16")
    assert out == ",".join(export.CELL_FIELDS) + "\r\n"


def test_the_command_shows_credits_and_where_they_come_from(
    capsys: pytest.CaptureFixture[str], sqlite_file: Ledger, pool: str
) -> None:
    entries = [
        CreditRecord(
            credit="k1", project="ml", gpu_ms=6 * HOUR_MS, at_ms=ms(2026, 9, 15), cause="lent", counterpart="=1"
        ),
        CreditRecord(credit="k2", project="ml", gpu_ms=-2 * HOUR_MS, at_ms=ms(2026, 9, 16), cause="forgotten"),
        CreditRecord(
            credit="k3", project="ml", gpu_ms=-HOUR_MS, at_ms=ms(2026, 9, 17), cause="borrowed", own_users=True
        ),
    ]  # type: ignore[list-item]
    sqlite_file.record(entries, at_ms=0)
    status, out, _ = run(capsys, f"--folder={pool}", "--credits")
    assert status == 0
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["ml", "6.00", "0.00", "2.00", "4.00"],
        ["ml", "(own", "users)", "0.00", "1.00", "0.00", "-1.00"],
    ]
    status, out, _ = run(capsys, f"--folder={pool}", "--credits", "--since=2026-09-16", "--until=2026-09-17")
    assert out.splitlines()[1].split() == ["ml", "0.00", "0.00", "2.00", "-2.00"]
    status, out, _ = run(capsys, f"--folder={pool}", "--credits", "--json")
    assert msgspec.convert(json.loads(out), list[CreditRecord]) == entries
    status, out, _ = run(capsys, f"--folder={pool}", "--credits", "--csv", "--until=2026-09-16")
    (row,) = csv.DictReader(io.StringIO(out))
    assert (row["gpu_ms"], row["cause"], row["counterpart"], row["lease"]) == (str(6 * HOUR_MS), "lent", "'=1", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cells", "--credits", "--json"], "--cells and --credits are two questions. Ask one."),
        (["--since=yesterday"], "--since is 'yesterday', which is not a day. Write it as in 2026-09-01."),
        (["--since=2026-09-02", "--until=2026-09-02"], "--until=2026-09-02 is not after --since=2026-09-02"),
        (["--cells"], "Add --csv or --json."),
        (["--database=sqlite:////nosuch/ledger.db"], "There is no ledger at sqlite:////nosuch/ledger.db"),
    ],
)
def test_the_command_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], pool: str, words: list[str], sentence: str
) -> None:
    status, out, err = run(capsys, f"--folder={pool}", *words)
    assert status == BAD_CONFIG
    assert sentence in err
    assert out == ""


def test_a_ledger_that_is_not_there_is_not_made_by_asking(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="no ledger"):
        Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", upgrade=False)
    assert list(tmp_path.iterdir()) == []


def test_what_a_course_uses_counts_for_its_department_by_the_quota_file_or_by_what_was_in_force_last(
    capsys: pytest.CaptureFixture[str], pool: str, sqlite_file: Ledger, tmp_path: Path
) -> None:
    course = record("c3", ended_at_ms=ms(2026, 9, 15, 1), held_ms=HOUR_MS, ran_ms=1, slots=("gpu-0",), project="course")
    sqlite_file.record_cell(course, at_ms=0)

    def hours(*words: str) -> dict[str, str]:
        status, out, _ = run(capsys, f"--folder={pool}", "--by=project", *words)
        assert status == 0
        return {line.split()[0]: line.split()[3] for line in out.splitlines()[1:] if " GPU " in line}

    assert hours() == {"ml": "3.00", "course": "1.00"}
    file = tmp_path / "quotas.toml"
    file.write_text('[projects.school]\n[projects.course]\nparent = "school"\n')
    named = f"--Pool.quota_file={file}"
    assert hours(named) == {"ml": "3.00", "course": "1.00", "school": "1.00"}
    quotas, _ = read_quotas(file)
    for number, projects in enumerate((quotas.projects, quotas.projects[:1]), 1):
        new = NewPolicy(Quotas(projects=projects), ())
        sqlite_file.record(records(new, UserName("root"), number, at_ms=0), at_ms=0)
        known, last = in_force(sqlite_file)
        assert (known, last) == (Quotas(projects=projects), number)
        assert ("school" in hours()) == (number == 1)
    assert "school" in hours(named)
    file.write_text("[projects.school]\nparent = 'nobody'\n")
    assert run(capsys, f"--folder={pool}", "--by=project", named)[0] == 78
    assert run(capsys, f"--folder={pool}", "--by=user", named)[0] == 0


def test_what_a_group_used_that_is_forgotten_counts_for_what_it_was_in(
    capsys: pytest.CaptureFixture[str], pool: str, sqlite_file: Ledger, tmp_path: Path
) -> None:
    """As for a course of the last term."""
    at_ms = ms(2026, 9, 15, 1)
    course = record("c3", ended_at_ms=at_ms, held_ms=HOUR_MS, ran_ms=1, slots=("gpu-0",), project="course-ml")
    sqlite_file.record_cell(course, at_ms=0)
    seen = SeenGroup(name="course-ml", user=UserName("ann"))
    for one in (seen, msgspec.structs.replace(seen, is_forgotten=True)):
        sqlite_file.append(SEEN, msgspec.to_builtins(one), at_ms=0)
    file = tmp_path / "quotas.toml"
    file.write_text('[projects.teaching]\nlimit = 3\n[group_rules.x]\ngroups = ["course-*"]\nparent = "teaching"\n')
    status, out, _ = run(capsys, f"--folder={pool}", "--by=project", f"--Pool.quota_file={file}")
    assert status == 0
    assert {line.split()[0]: line.split()[3] for line in out.splitlines()[1:] if " GPU " in line} == {
        "ml": "3.00",
        "course-ml": "1.00",
        "teaching": "1.00",
    }
    policy = Policy(Pool(quota_file=str(file)).settings(), None, recalled(sqlite_file.timed_payloads(SEEN), {}))
    policy.load(policy.groups.groups)
    scheduler = Scheduler(policy.settings)
    for event, when_ms in recall.past(sqlite_file, policy.settings, (), at_ms + HOUR_MS, policy.outer):
        scheduler.step(event, when_ms)
    accounts = scheduler.state.accounts
    assert accounts.of(ProjectId("teaching")).history.amount > 0
    assert "course-ml" not in accounts.by_id, "it is not listed as a project of its own"


def test_the_time_between_two_cells_is_charged_and_is_no_cell(ledger: Ledger) -> None:
    """Of a place that a notebook keeps: it pays for it, and ran nothing."""
    ledger.record_cell(record("c1", held_ms=10, ran_ms=10, slots=("gpu-0",)), at_ms=0)
    kept = record(make_kept_cell(), outcome=CellOutcome.KEPT, held_ms=5_000, ran_ms=0, slots=("gpu-0",))
    ledger.record_cell(kept, at_ms=0)
    lost = record(make_kept_cell(), outcome=CellOutcome.NOT_HELD, held_ms=300, ran_ms=0, slots=("gpu-0",))
    ledger.record_cell(lost, at_ms=0)
    (found,) = ledger.usage("user")
    assert (found.cells, found.ran_ms, found.in_quota_ms) == (1, 10, 5_310)
