"""Notes that wait for the ledger in a file: each of which it was said that it is kept is there."""

import resource
import signal
from pathlib import Path

from gpu_worker.broker.late_notes import LateNotes
from gpu_worker.broker.records import LedgerEvent


def note(name: str) -> LedgerEvent:
    return LedgerEvent(id=name, kind="announced", payload={"sentence": "down from six on"}, at_ms=1)


def test_a_note_for_which_the_disk_has_no_room_takes_no_later_one_with_it(tmp_path: Path) -> None:
    path = tmp_path / "late.jsonl"
    notes = LateNotes(path)
    assert notes.add(note("first"))
    limits, size_bytes = resource.getrlimit(resource.RLIMIT_FSIZE), path.stat().st_size
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes + 10, limits[1]))
        assert not notes.add(note("second"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.stat().st_size == size_bytes
    assert notes.add(note("third"))
    assert [one.id for one in notes.read()] == ["first", "third"]


def test_a_note_whose_writer_was_killed_takes_no_later_one_with_it(tmp_path: Path) -> None:
    path = tmp_path / "late.jsonl"
    path.write_bytes(b'{"id": "torn')
    path.chmod(0o600)
    assert LateNotes(path).add(note("next"))
    assert [one.id for one in LateNotes(path).read()] == ["next"]
