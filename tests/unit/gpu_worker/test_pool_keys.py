"""What `bulletin keys rotate` has written stays, whatever a broker that runs has to write."""

import threading
from pathlib import Path

import pytest
from msgspec import structs

from bulletin.errors import BadConfig
from bulletin.wire import keys
from gpu_worker import pool_keys

FILES = keys.PoolFile(
    keys=keys.make_keys(), agent_secret="a", token="t", kernel_address="tcp://h:1", agent_address="tcp://h:2"
)
NEW = keys.NextKeys(keys=keys.make_keys(), accepts_old_until_ms=0)


def read(path: Path) -> keys.PoolFile:
    return keys.read_private(path, keys.PoolFile)


def test_a_broker_that_ends_the_time_of_old_keys_keeps_those_that_were_made_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "pool.json"
    earlier = keys.EarlierBroker(keys=keys.make_keys(), kernel_address="", agent_address="", until_ms=1)
    keys.write_private(path, structs.replace(FILES, earlier=earlier))
    pool_keys.plan(path, lambda _: NEW)
    assert (read(path).next, read(path).earlier) == (NEW, earlier)
    pool_keys.keep(path, FILES)
    assert (read(path).next, read(path).earlier) == (NEW, None)


def test_a_broker_takes_keys_up_once_and_leaves_those_that_were_made_after_them(tmp_path: Path) -> None:
    path, later = tmp_path / "pool.json", structs.replace(NEW, keys=keys.make_keys())
    keys.write_private(path, structs.replace(FILES, next=NEW))
    taken_up = structs.replace(FILES, keys=NEW.keys)
    pool_keys.keep(path, taken_up)
    assert read(path) == taken_up
    pool_keys.plan(path, lambda _: later)
    pool_keys.keep(path, taken_up)
    assert read(path) == structs.replace(taken_up, next=later)


def test_a_file_that_was_removed_is_written_again(tmp_path: Path) -> None:
    pool_keys.keep(tmp_path / "pool.json", FILES)
    assert read(tmp_path / "pool.json") == FILES


def test_what_is_refused_by_what_is_written_is_judged_by_what_nobody_changes_any_more(tmp_path: Path) -> None:
    path = tmp_path / "pool.json"
    keys.write_private(path, FILES)
    earlier = keys.EarlierBroker(keys=keys.make_keys(), kernel_address="", agent_address="", until_ms=1)
    is_begun = threading.Event()

    def keep() -> None:
        is_begun.set()
        pool_keys.keep(path, structs.replace(FILES, earlier=earlier))

    writer = threading.Thread(target=keep)

    def make(files: keys.PoolFile) -> keys.NextKeys:
        writer.start()
        is_begun.wait()
        assert read(path) == files, "a broker that has something to write waits"
        return NEW

    pool_keys.plan(path, make)
    writer.join()
    assert (read(path).next, read(path).earlier) == (NEW, earlier)


def test_keys_that_are_refused_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pool.json"
    keys.write_private(path, FILES)

    def refuse(_: keys.PoolFile) -> keys.NextKeys:
        raise BadConfig("not yet")

    with pytest.raises(BadConfig):
        pool_keys.plan(path, refuse)
    assert read(path) == FILES
