"""Databases of both kinds for the ledger's tests."""

import itertools
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from gpu_worker.broker.ledger import Ledger
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub
from tests.unit.gpu_worker.broker.metered_pool import World
from tests.unit.gpu_worker.broker.postgres import Server, programs_or_skip
from tests.unit.gpu_worker.broker.two_notebooks import KERNELS, restart

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server that all tests share; each has its own database on it."""
    with Server(programs_or_skip()) as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[Server]:
    """A server that a test may kill. It keeps what it said it keeps."""
    with Server(programs_or_skip(), is_durable=True) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    server: Server = request.getfixturevalue("postgres")
    return server.make_database(f"ledger_{next(_numbers)}")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger without rows, to be copied: tables are made once."""
    path = tmp_path_factory.mktemp("template") / "ledger.db"
    Ledger.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres: Server) -> str:
    """The same on the server."""
    Ledger.open(postgres.make_database("template_ledger")).close()
    return "template_ledger"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger of each kind, without rows."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "ledger.db")
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    template = request.getfixturevalue("postgres_template")
    server: Server = request.getfixturevalue("postgres")
    return server.make_database(f"ledger_{next(_numbers)}", template)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    """A ledger in it."""
    with Ledger.open(url) as ledger:
        yield ledger


@pytest.fixture
def broker(sqlite_template: Path, tmp_path: Path) -> Iterator[BrokerParts]:
    """A broker's parts with a ledger in SQLite."""
    shutil.copy(sqlite_template, tmp_path / "ledger.db")
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        yield BrokerParts(ledger)


@pytest.fixture
def fill_disk() -> Callable[[Path], AbstractContextManager[None]]:
    """Leave a ledger in SQLite, which has been written, no room to be written on, for as long as a block takes."""

    @contextmanager
    def fill(ledger: Path) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        used_bytes = ledger.with_name(ledger.name + "-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (used_bytes, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return fill


@pytest.fixture
def world(tmp_path: Path, sqlite_template: Path) -> Iterator[World]:
    """An agent, a broker, and their ledger."""
    shutil.copy(sqlite_template, tmp_path / "ledger.db")
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger.open(url) as ledger:
        yield World(ledger, url)


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    """A hub with the two users of `two_notebooks`."""
    hub = FakeHub()
    for user in KERNELS:
        hub.users[f"{user}-token"] = {"name": user, "kind": "user", "scopes": [SCOPE], "groups": ["maths"]}
    with hub.serving():
        yield hub


@pytest.fixture
def pool(broker: BrokerParts, hub: FakeHub) -> BrokerParts:
    """A broker of a hub with two nodes, of which one lies, and notebooks that hear what is said to their sessions."""
    restart(broker, hub)
    for node in ("honest", "lying"):
        broker.join(node)
    return broker
