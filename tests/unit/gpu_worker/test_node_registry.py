"""Which node a key is of, at each moment."""

from pathlib import Path

import pytest

from bulletin.errors import BadConfig
from gpu_worker.node_registry import NodeRegistry, check_owner


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        return self.ms


def test_old_keys_are_a_nodes_until_their_own_time_is_over_however_often_it_gets_others(tmp_path: Path) -> None:
    clock = Clock()
    registry = NodeRegistry(tmp_path, clock)
    registry.add("node1", "a", clock.ms, replaces=False)
    assert registry.rotate("node1", "b", 10_000) == 11_000
    clock.ms = 6_000
    assert registry.rotate("node1", "c", 10_000) == 16_000
    assert [registry.name_of(key) for key in "abc"] == ["node1"] * 3
    assert registry.names == ("node1",)
    clock.ms = 11_000
    assert [registry.name_of(key) for key in "abc"] == [None, "node1", "node1"]
    assert [registry.has_expired(key) for key in "abc"] == [True, False, False]
    registry.rotate("node1", "d", 0)
    assert [registry.name_of(key) for key in "abcd"] == [None, "node1", None, "node1"]
    assert registry.has_expired("a"), "an agent that has not got its file is not revoked by another one"
    for number in range(20):
        clock.ms += 10_000
        registry.rotate("node1", f"e{number}", 10_000)
    assert not registry.has_expired("a"), "not for ever"
    assert registry.name_of("e19") == "node1"


def test_no_key_loses_the_time_that_it_was_promised_to_new_ones(tmp_path: Path) -> None:
    clock = Clock()
    registry = NodeRegistry(tmp_path, clock)
    registry.add("node1", "k0", clock.ms, replaces=False)
    for number in range(1, 9):
        registry.rotate("node1", f"k{number}", 10_000)
    with pytest.raises(BadConfig, match="8 earlier keys whose time is not over"):
        registry.rotate("node1", "k9", 10_000)
    assert [registry.name_of(f"k{number}") for number in range(10)] == ["node1"] * 9 + [None]
    registry.rotate("node1", "seen by nobody", 0)
    assert [registry.name_of(f"k{number}") for number in range(9)] == ["node1"] * 8 + [None]
    assert registry.has_expired("k8"), "what runs at its agent goes on"
    clock.ms += 10_000
    registry.rotate("node1", "later", 10_000)
    assert registry.name_of("later") == "node1"


def test_a_node_is_as_old_with_new_keys_and_loses_all_of_them_where_it_is_replaced_or_removed(tmp_path: Path) -> None:
    clock = Clock()
    registry = NodeRegistry(tmp_path, clock)
    registry.add("node1", "a", 500, replaces=False)
    registry.rotate("node1", "b", 10_000)
    assert [registry.added_ms(key) for key in "ab"] == [500, 500], "what its cells say that they have run is believed"
    registry.add("node1", "c", 2_000, replaces=True)
    assert [registry.name_of(key) for key in "abc"] == [None, None, "node1"]
    registry.rotate("node1", "d", 10_000)
    registry.remove("node1")
    assert [registry.name_of(key) for key in "cd"] == [None, None]
    assert not registry.has_expired("c")


def test_what_has_no_keys_to_change_is_refused_with_words(tmp_path: Path) -> None:
    registry = NodeRegistry(tmp_path)
    registry.add("slurm-1", "a", 0, replaces=False, is_of_engine=True)
    with pytest.raises(BadConfig, match="is a job of the pool's engine"):
        registry.rotate("slurm-1", "b", 0)
    with pytest.raises(BadConfig, match="Registered are: slurm-1"):
        registry.rotate("node1", "b", 0)


def test_a_node_that_a_user_has_brought_is_theirs_whatever_key_it_has_and_is_not_missed(tmp_path: Path) -> None:
    clock = Clock()
    registry = NodeRegistry(tmp_path, clock)
    registry.add("box", "a", clock.ms, replaces=False, owner="ada")
    registry.add("node1", "n", clock.ms, replaces=False)
    registry.rotate("box", "b", 10_000)
    assert [registry.owner_of(key) for key in ("a", "b", "n", "nobody's")] == ["ada", "ada", "", None]
    assert registry.expected == ("node1",)
    clock.ms = 11_000
    assert registry.owner_of("a") is None
    registry.remove("box")
    assert registry.owner_of("b") is None


@pytest.mark.parametrize(("before", "after"), [("ada", ""), ("", "ada"), ("ada", "eve")])
def test_new_keys_give_a_node_to_nobody_else(tmp_path: Path, before: str, after: str) -> None:
    registry = NodeRegistry(tmp_path, Clock())
    registry.add("box", "a", 0, replaces=False, owner=before)
    with pytest.raises(BadConfig, match="bulletin node remove box"):
        registry.add("box", "b", 0, replaces=True, owner=after)
    assert registry.owner_of("a") == before
    registry.add("box", "b", 0, replaces=True, owner=before)
    assert registry.owner_of("b") == before


def test_a_list_of_nodes_that_cannot_be_read_gives_no_node_to_all(tmp_path: Path) -> None:
    registry = NodeRegistry(tmp_path, Clock())
    registry.add("box", "a", 0, replaces=False, owner="ada")
    assert registry.owner_of("a") == "ada"
    registry.path.chmod(0o644)
    assert registry.owner_of("a") is None
    assert registry.name_of("a") is None


@pytest.mark.parametrize("name", ["a\nb", " ada", "x" * 300])
def test_an_owner_is_a_name_that_a_hub_may_have(name: str) -> None:
    with pytest.raises(BadConfig, match="no user of a pool"):
        check_owner(name)
