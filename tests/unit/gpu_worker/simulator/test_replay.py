"""A pool's journal: written, torn, read again, and played again."""

import stat
from pathlib import Path

import msgspec
import pytest
import structlog

from bulletin.errors import BadConfig
from gpu_worker.broker.journal_file import JournalFile
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.journal import AnswersDigest, Digest, LifeBegan, Line, Told, decode, encode
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import Budget, Project, SchedulerSettings
from gpu_worker.simulator.simulate_command import SimulateCommand

MINUTE = 60_000
SETTINGS = SchedulerSettings(projects=(Project(id="lab", budget=Budget(31 * MINUTE, "week"), guaranteed_milli=500),))  # type: ignore[arg-type]
SLOT = ev.Slot("gpu-0", "gpu", "model", 1)  # type: ignore[arg-type]
NODE = ev.AgentJoined("a", "node-a", (SLOT,))  # type: ignore[arg-type]


def asks(session: str, qos: str = "interactive") -> ev.RequestSubmitted:
    return ev.RequestSubmitted(f"r-{session}", f"l-{session}", session, session, "lab", qos, 1)  # type: ignore[arg-type]


STORY = [
    Told(1_000, NODE),
    Told(2_000, asks("ann")),
    Told(2_500, ev.CellStarted("l-ann", "c1")),  # type: ignore[arg-type]
    Told(3_000, asks("bob")),
    Told(3_000, asks("cem", "nonsense")),
    Told(9_000, ev.CellEnded("l-ann", "c1")),  # type: ignore[arg-type]
    Told(9_400, ev.LeaseEnded("l-ann")),  # type: ignore[arg-type]
    Told(9_500, asks("dan")),
    Told(69_400, ev.SettingsChanged(SchedulerSettings())),
    Told(69_500, ev.Tick()),
]


def written(path: Path, story: list[Told], settings: SchedulerSettings = SETTINGS) -> bytes:
    journal = JournalFile(path, settings)
    for told in story:
        journal.note(told.event, told.at_ms, decides=told.decides)
    journal.close()
    return path.read_bytes()


def read(content: bytes) -> list[Line]:
    return [line for _, line in decode(content.splitlines(keepends=True), "j")]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    assert read(written(tmp_path / "j", STORY)) == [LifeBegan(settings=SETTINGS), *STORY]


def test_a_fact_that_was_only_noted_is_played_again_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = [Told(1_000, NODE), Told(2_000, asks("ann"), decides=False), Told(2_100, ev.Tick())]
    written(tmp_path / "j", story)
    assert read((tmp_path / "j").read_bytes())[1:] == story
    assert "after 100 ms" in played(tmp_path / "j", capsys)[1]


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    (tmp_path / "j").touch(mode=0o644)
    written(tmp_path / "j", STORY)
    assert stat.S_IMODE((tmp_path / "j").stat().st_mode) == 0o600


def test_the_second_life_comes_after_the_first(tmp_path: Path) -> None:
    written(tmp_path / "j", STORY[:2])
    assert read(written(tmp_path / "j", STORY[:1], SchedulerSettings())) == [
        LifeBegan(settings=SETTINGS), *STORY[:2], LifeBegan(settings=SchedulerSettings()), STORY[0],
    ]  # fmt: skip


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_line_that_was_torn_is_left_out_at_the_end_and_before_the_next_life(tmp_path: Path, cut: int) -> None:
    whole = written(tmp_path / "j", STORY[:2])
    (tmp_path / "j").write_bytes(whole[:-cut])
    kept: list[Line] = [LifeBegan(settings=SETTINGS), *STORY[: 2 if cut == 1 else 1]]
    assert read(whole[:-cut]) == kept
    assert read(written(tmp_path / "j", [])) == [*kept, LifeBegan(settings=SETTINGS)]


@pytest.mark.parametrize("bad", [b"{}", b"\xff", b'{"type":"Told","at_ms":1}', b'{"type":"Other"}', b"no"])
def test_another_bad_line_is_an_error_with_its_number(bad: bytes) -> None:
    lines = [encode(LifeBegan(settings=SETTINGS)), encode(STORY[0]), bad + b"\n"]
    for rest in ([], [encode(STORY[1])], [bad]):
        with pytest.raises(BadConfig, match="journal j cannot be read at line 3: "):
            read(b"".join([*lines, *rest]))


def test_another_format_is_refused() -> None:
    with pytest.raises(BadConfig, match="journal j has format 2 from line 1 on, and this Bulletin reads 1"):
        read(encode(LifeBegan(format=2, settings=SETTINGS)))


def test_a_journal_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"journal .* cannot be written: No such file or directory. Correct Pool"):
        JournalFile(tmp_path / "nowhere" / "j", SETTINGS)


def test_a_pool_goes_on_when_its_journal_can_no_longer_be_written() -> None:
    before = Path("/dev/full").stat().st_mode
    with structlog.testing.capture_logs() as said:
        journal = JournalFile(Path("/dev/full"), SETTINGS)
        journal.note(STORY[0].event, 0)
        journal.close()
    assert [(line["log_level"], line["why"]) for line in said] == [("error", "No space left on device")]
    assert Path("/dev/full").stat().st_mode == before


def answers(story: list[Told]) -> AnswersDigest:
    scheduler, digest = Scheduler(SETTINGS), Digest()
    for told in story:
        digest.add(scheduler.step(told.event, told.at_ms))
    return AnswersDigest(str(digest))


def played(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    command = SimulateCommand()
    command.initialize(["--journal", str(path), *words])
    command.start()
    said = capsys.readouterr()
    return command.status, said.out, said.err


def test_a_journal_is_played_again_and_each_decision_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "j", STORY)
    with (tmp_path / "j").open("ab") as file:
        file.write(encode(answers(STORY)))
    status, said, _ = played(tmp_path / "j", capsys, "--check")
    assert status == 0
    assert said.splitlines() == [
        "1970-01-01 00:00:02.000  grant     l-ann to ann in lab: gpu-0 of a, after 0 ms",
        (
            "1970-01-01 00:00:03.000  refusal   r-cem: there is no QoS 'nonsense' in this pool. "
            "Choose one of interactive, batch, long, reserved with --qos."
        ),
        "1970-01-01 00:00:09.000  eviction  l-ann of ann in lab",
        "1970-01-01 00:00:09.400  grant     l-bob to bob in lab: gpu-0 of a, after 6.4 s",
        "1970-01-01 00:01:09.400  eviction  l-bob of bob in lab",
        "",
        "10 events, 1 life of the scheduler",
        "eviction             2",
        "grant                2",
        "refusal              1",
        "  UnknownQoS         1",
        "wait                 median 6.4 s, 99% 6.4 s, longest 6.4 s",
        "still waiting        1",
        "all was decided as it was when this was written",
        "every promise and every index held after each event",
    ]


def test_what_was_decided_otherwise_is_said_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "j", STORY)
    with (tmp_path / "j").open("ab") as file:
        file.write(encode(answers(STORY[:-3])))
    status, _, said = played(tmp_path / "j", capsys)
    assert (status, "line 12: the scheduler does not decide as it did" in said) == (1, True)


def test_what_stands_before_the_first_beginning_is_counted_and_a_journal_without_one_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = written(tmp_path / "j", STORY).splitlines(keepends=True)
    (tmp_path / "j").write_bytes(b"".join(whole[1:3] + whole))
    assert "\n2 lines before the first beginning were left out\n" in played(tmp_path / "j", capsys)[1]
    (tmp_path / "j").write_bytes(b"".join(whole[1:]))
    with pytest.raises(BadConfig, match="no beginning in its 10 lines"):
        played(tmp_path / "j", capsys)
    with pytest.raises(BadConfig, match="cannot be read: No such file"):
        played(tmp_path / "none", capsys)


def test_every_event_survives_the_way() -> None:
    assert {type(told.event) for told in STORY} < set(ev.Event.__args__)
    slots = msgspec.structs.replace(NODE, held=(ev.ReportedLease("l", "s", "u", "p", "q", ("gpu-0",), None, 1, 0),))  # type: ignore[arg-type]
    for event in (slots, ev.AgentLost("a"), ev.RequestWithdrawn("r")):  # type: ignore[arg-type]
        assert read(encode(Told(1, event))) == [Told(1, event)]
