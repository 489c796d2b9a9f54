"""One pool for all notebooks, and what each shows in a kernel without it."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from jupyter_core.utils import ensure_event_loop

from tests.integration.conftest import PoolProcess
from tests.notebooks.percent import Material
from tests.notebooks.playing import Played, Player

#: One thread, and sets in one order: then a notebook shows the same each time it runs.
_SETTLED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
#: Hugging Face asks no network, and does not warn of forks.
_SETTLED |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@pytest.fixture(scope="package")
def settled() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _SETTLED.items():
            patch.setenv(name, value)
        patch.delenv("MPLBACKEND", raising=False)
        yield


@pytest.fixture(scope="package")
def slot(settled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolProcess]:
    """A pool of one CPU slot."""
    process = PoolProcess(tmp_path_factory.mktemp("pool") / "p", "--slots", "1")
    yield process
    process.stop()


@pytest.fixture(scope="package")
def play_here(
    settled: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Material], Future[Played]]]:
    """Begin to play a notebook, once, in a kernel that knows nothing of Bulletin, beside whatever else goes on."""
    begun: dict[str, Future[Played]] = {}

    def play(material: Material) -> Played:
        player = Player(tmp_path_factory.mktemp(material.name) / "nb", {}, has_magic=False)
        try:
            return player.play(material, "local")
        finally:
            player.close()

    def begin(material: Material) -> Future[Played]:
        if material.name not in begun:
            begun[material.name] = thread.submit(play, material)
        return begun[material.name]

    with ThreadPoolExecutor(1) as thread:
        yield begin
        thread.submit(lambda: ensure_event_loop().close()).result()  # jupyter_client makes one for each thread


@pytest.fixture
def here(material: Material, play_here: Callable[[Material], Future[Played]]) -> Future[Played]:
    """What the notebook shows without Bulletin, later."""
    return play_here(material)


@pytest.fixture
def there(slot: PoolProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    """A kernel whose %%gpu cells run on the pool."""
    environ = {"BULLETIN_CONNECTION_FILE": str(slot.folder / "connection.json")}
    player = Player(tmp_path_factory.mktemp("there") / "nb", environ, has_magic=True)
    yield player
    player.close()
