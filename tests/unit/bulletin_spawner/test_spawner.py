"""What servers are told, and in which homes they start."""

from pathlib import Path

import pytest
from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner

from bulletin.wire.keys import Connection, PoolFile, make_keys, write_private
from bulletin_spawner.spawner import BulletinMixin, BulletinSpawner, pool_environment, with_bulletin


class FakeSpawner(LocalProcessSpawner):
    """A spawner whose own environment is known."""

    def get_env(self) -> dict[str, str]:
        return {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0,1"}


def connect(folder: Path, token: str = "the pool's token") -> Connection:
    connection = Connection(address="tcp://127.0.0.1:4321", public_key=make_keys().public, token=token)
    write_private(folder / "connection.json", connection)
    return connection


def environment_of(folder: Path) -> dict[str, str]:
    spawner = with_bulletin(FakeSpawner)(pool_folder=str(folder))
    environment: dict[str, str] = spawner.get_env()
    return environment


def test_a_server_knows_the_pools_address_and_key_and_not_its_token(tmp_path: Path) -> None:
    connection = connect(tmp_path)
    environment = environment_of(tmp_path)
    assert environment["BULLETIN_ADDRESS"] == connection.address
    assert environment["BULLETIN_PUBLIC_KEY"] == connection.public_key
    assert environment["PATH"] == "/bin"
    assert connection.token not in environment.values()


def test_a_server_sees_no_gpu_whatever_the_hub_sees(tmp_path: Path) -> None:
    environment = environment_of(tmp_path)
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_a_server_that_starts_while_the_pool_restarts_is_told_the_address_that_stays(tmp_path: Path) -> None:
    keys = make_keys()
    address = "tcp://127.0.0.1:4321"
    pool = PoolFile(
        keys=keys, agent_secret="a", token="b", kernel_address=address, agent_address="tcp://127.0.0.1:4322"
    )
    write_private(tmp_path / "pool.json", pool)
    assert pool_environment(tmp_path) == {"BULLETIN_ADDRESS": address, "BULLETIN_PUBLIC_KEY": keys.public}


@pytest.mark.parametrize("content", [None, b"not json"])
def test_a_server_starts_without_a_pool(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "connection.json").write_bytes(content)
        (tmp_path / "connection.json").chmod(0o600)
    environment = environment_of(tmp_path)
    assert (environment["BULLETIN_ADDRESS"], environment["BULLETIN_PUBLIC_KEY"]) == ("", "")


def test_no_argument_of_a_server_says_anything_about_the_pool(tmp_path: Path) -> None:
    connection = connect(tmp_path)
    words = " ".join(BulletinSpawner(pool_folder=str(tmp_path)).get_args())
    assert connection.address not in words
    assert connection.public_key not in words
    assert connection.token not in words


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
