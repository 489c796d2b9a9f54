"""What servers are told, and in which homes they start."""

import json
import os
from pathlib import Path

import pytest
from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner

from bulletin.errors import BadConfig
from bulletin.wire.keys import PublicFile, make_keys, write_public
from bulletin_spawner.reserved_place import ReservedPlace
from bulletin_spawner.spawner import BulletinMixin, BulletinSpawner, pool_environment, with_bulletin

#: Neither root nor who runs these tests.
POOLS_USER = 4711


class FakeSpawner(LocalProcessSpawner):
    """A spawner whose own environment is known."""

    def get_env(self) -> dict[str, str]:
        return {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0,1"}


def connect(folder: Path) -> PublicFile:
    public = PublicFile(address="tcp://127.0.0.1:4321", public_key=make_keys().public)
    write_public(folder / "public.json", public)
    return public


def environment_of(folder: Path) -> dict[str, str]:
    spawner = with_bulletin(FakeSpawner)(pool_folder=str(folder))
    environment: dict[str, str] = spawner.get_env()
    return environment


def test_a_server_knows_the_pools_address_and_key(tmp_path: Path) -> None:
    connection = connect(tmp_path)
    environment = environment_of(tmp_path)
    assert environment["BULLETIN_ADDRESS"] == connection.address
    assert environment["BULLETIN_PUBLIC_KEY"] == connection.public_key
    assert environment["PATH"] == "/bin"


def test_a_server_sees_no_gpu_whatever_the_hub_sees(tmp_path: Path) -> None:
    environment = environment_of(tmp_path)
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_a_hub_that_is_started_again_knows_what_a_server_has_reserved_until_that_is_gone(tmp_path: Path) -> None:
    connect(tmp_path)
    spawner = with_bulletin(FakeSpawner)
    first, again = spawner(pool_folder=str(tmp_path)), spawner(pool_folder=str(tmp_path))
    first._place = ReservedPlace("server-1", "--gpus 2")
    kept = json.loads(json.dumps(first.get_state()))  # as the hub's database has it
    again.load_state(kept)
    environment = again.get_env()
    assert (environment["BULLETIN_PLACE"], environment["BULLETIN_PLACE_OPTIONS"]) == ("server-1", "--gpus 2")
    again.clear_state()
    assert "BULLETIN_PLACE" not in again.get_env()
    again.load_state(again.get_state())
    assert "BULLETIN_PLACE" not in again.get_env()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_a_hub_that_is_not_the_pools_user_believes_a_file_that_only_the_pool_can_have_written(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    folder.mkdir()
    public = connect(folder)
    for path in (folder, folder / "public.json"):
        os.chown(path, POOLS_USER, POOLS_USER)
    assert pool_environment(folder)["BULLETIN_PUBLIC_KEY"] == public.public_key
    for changed, mode in ((folder / "public.json", 0o666), (folder, 0o775), (tmp_path, 0o1777)):
        before = changed.stat().st_mode
        changed.chmod(mode)
        with pytest.raises(BadConfig, match=f"others can change {changed}\\."):
            pool_environment(folder)
        changed.chmod(before)


@pytest.mark.parametrize("content", [None, b"not json"])
def test_a_server_starts_without_a_pool(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "public.json").write_bytes(content)
    environment = environment_of(tmp_path)
    assert (environment["BULLETIN_ADDRESS"], environment["BULLETIN_PUBLIC_KEY"]) == ("", "")


def test_no_argument_of_a_server_says_anything_about_the_pool(tmp_path: Path) -> None:
    connection = connect(tmp_path)
    words = " ".join(BulletinSpawner(pool_folder=str(tmp_path)).get_args())
    assert connection.address not in words
    assert connection.public_key not in words


def test_the_mixin_comes_before_any_class_and_only_once() -> None:
    made = with_bulletin(SimpleLocalProcessSpawner)
    assert issubclass(made, BulletinMixin)
    assert with_bulletin(made) is made


def test_a_new_home_is_private_and_has_the_examples_and_an_old_one_is_left_alone(tmp_path: Path) -> None:
    examples = tmp_path / "examples"
    examples.mkdir()
    (examples / "first.ipynb").write_text("new")
    (examples / "torch").mkdir()
    (examples / "torch" / "large.ipynb").write_text("needs more")
    spawner = BulletinSpawner(examples_folder=str(examples))
    home = tmp_path / "homes" / "ada"
    spawner._make_home(home)
    assert home.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in home.iterdir()] == ["first.ipynb"]
    assert (home / "first.ipynb").read_text() == "new"
    (home / "first.ipynb").write_text("hers")
    spawner._make_home(home)
    assert (home / "first.ipynb").read_text() == "hers"
