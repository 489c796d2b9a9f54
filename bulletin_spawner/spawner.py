"""What a notebook server is told about the pool: its address, and that the node's own GPUs are not for it."""

import logging
import os
import shutil
import types
from pathlib import Path
from typing import Any

from jupyterhub.spawner import SimpleLocalProcessSpawner
from traitlets import Unicode
from traitlets.config import Configurable

from bulletin.errors import BadConfig
from bulletin.wire.keys import read_public

#: No process of a notebook server sees a GPU: by CUDA's variable, and by that of NVIDIA's container runtime.
NO_GPUS = {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}


def pool_environment(folder: Path) -> dict[str, str]:
    """Return where kernels reach the pool of this folder. No secret: each kernel's own hub token says who it is.

    Address and key outlive a restart of the pool, so that a server which starts meanwhile finds it later.

    Raises
    ------
    FileNotFoundError
        If the pool has never been up.
    BadConfig
        If the file cannot be trusted or read.
    """
    public = read_public(folder / "public.json")
    return {"BULLETIN_ADDRESS": public.address, "BULLETIN_PUBLIC_KEY": public.public_key}


class BulletinMixin(Configurable):
    """Before any spawner class: its servers run on CPUs, and their kernels find the pool.

    Kernels load the magics by a file that comes with the package (`etc/ipython/startup` of its environment).
    """

    log: logging.Logger

    pool_folder = Unicode(help="The folder of the pool, as given to `configure()`.").tag(config=True)

    def get_env(self) -> dict[str, str]:
        """Return the server's environment. Nothing goes into its arguments: those are for everybody to see."""
        environment: dict[str, str] = super().get_env()  # type: ignore[misc]  # the spawner class behind us has it
        return {**environment, **NO_GPUS, **self.kernel_environment()}

    def kernel_environment(self) -> dict[str, str]:
        """Return what kernels need to find the pool. Extend it where kernels have environments of their own.

        A pool that is not up is no reason to refuse a server: its address is then empty, and `%%gpu` says so.
        """
        try:
            return pool_environment(Path(self.pool_folder))
        except (OSError, BadConfig) as error:
            self.log.warning("Bulletin: kernels of this server will not find the pool: %s", error)
            return {"BULLETIN_ADDRESS": "", "BULLETIN_PUBLIC_KEY": ""}


def with_bulletin(base: type) -> type:
    """Make a spawner class with `BulletinMixin` before it; return it as it is, if it has that already."""
    if issubclass(base, BulletinMixin):
        return base

    def describe(body: dict[str, Any]) -> None:
        body["__doc__"] = f"{base.__name__}, whose kernels find Bulletin's pool."
        body["__module__"] = __name__

    return types.new_class(f"Bulletin{base.__name__}", (BulletinMixin, base), exec_body=describe)


class BulletinSpawner(BulletinMixin, SimpleLocalProcessSpawner):  # type: ignore[misc]  # jupyterhub has no types
    """Servers on this host for people who have no account on it, each in a home of its own, examples included.

    All run as the hub's own Unix user, so this is for one's own computer and for trying Bulletin out. A hub for
    several people who must not read each other's files uses a spawner that changes users, with `BulletinMixin`.
    """

    examples_folder = Unicode(
        help="A folder whose notebooks each new home gets a copy of, without those in its subfolders; empty for none."
    ).tag(config=True)

    async def start(self) -> Any:
        """Start the server, in a home that is made first where it is not there."""
        self._make_home(Path(self.home_dir))
        return await super().start()

    def get_args(self) -> list[str]:
        """Return arguments of the server: it runs as root only where the hub does."""
        return [*super().get_args(), *(["--allow-root"] if os.getuid() == 0 else [])]

    def _make_home(self, home: Path) -> None:
        if home.exists():
            return
        home.mkdir(mode=0o700, parents=True)
        if self.examples_folder:
            for notebook in sorted(Path(self.examples_folder).glob("*.ipynb")):
                shutil.copyfile(notebook, home / notebook.name)
