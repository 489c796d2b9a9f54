"""What a notebook server is told about the pool: its address, and that the node's own GPUs are not for it."""

import logging
import os
import shutil
import types
from pathlib import Path
from typing import Any

import msgspec
from jupyterhub.spawner import SimpleLocalProcessSpawner
from jupyterhub.utils import maybe_future
from traitlets import Float, List, Unicode
from traitlets.config import Configurable

from bulletin.errors import BadConfig
from bulletin.hub_scopes import ACCESS_SCOPE
from bulletin.wire.keys import read_public
from bulletin_spawner.notebook_kinds import FIELD, ON_CPU, NotebookKind, draw_form, read_kinds
from bulletin_spawner.reserved_place import PlaceRefused, ReservedPlace, release_place, reserve

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


#: What the hub's database calls the place of a server.
_PLACE = "bulletin_place"
#: How long a token lasts by which a place is given back.
_RELEASE_S = 60


class BulletinMixin(Configurable):
    """Before any spawner class: its servers run on CPUs, and their kernels find the pool.

    Kernels load the magics by a file that comes with the package (`etc/ipython/startup` of its environment).
    """

    log: logging.Logger
    user: Any
    api_token: str
    user_options: dict[str, Any]

    pool_folder = Unicode(help="The folder of the pool, as given to `configure()`.").tag(config=True)
    notebook_kinds: Any = List(
        help="The kinds of notebook that people choose from when they start a server, as given to `configure()`."
    ).tag(config=True)
    notebook_wait = Float(
        15.0,
        min=1.0,
        help="How long the start of a server waits for the GPUs of the notebook that was chosen, in seconds. Then it "
        "ends, and says why they are not free and when they may be. Well below `Spawner.start_timeout`.",
    ).tag(config=True)
    #: What the server that runs has reserved; None where it has nothing.
    _place: ReservedPlace | None = None

    async def get_options_form(self) -> str:
        """Return the form of the spawner class, with the choice of a notebook before it, where there is one."""
        own = await super().get_options_form()  # type: ignore[misc]  # the spawner class behind us has it
        kinds = self._kinds()
        return f"{draw_form(kinds)}{own or ''}" if kinds else own

    def run_options_from_form(self, form_data: dict[str, list[str]]) -> Any:
        """Return the options that a form says: the notebook that was chosen, and what the spawner class knows."""
        chosen = form_data.get(FIELD, [""])[0]
        rest = {name: values for name, values in form_data.items() if name != FIELD}
        own = super().run_options_from_form(rest)  # type: ignore[misc]  # as above
        return {**own, FIELD: chosen} if chosen and isinstance(own, dict) else own

    async def start(self) -> Any:
        """Start the server; first get what the chosen kind of notebook is to have, or do not start.

        Raises PlaceRefused.
        """
        await self._reserve()
        try:
            return await maybe_future(super().start())  # type: ignore[misc]  # as above
        except BaseException:
            await self._release_place()
            raise

    async def stop(self, *how: Any, **more: Any) -> Any:
        """Give back what the server had reserved, and stop it. Afterwards the hub knows its token no more."""
        await self._release_place()
        return await maybe_future(super().stop(*how, **more))  # type: ignore[misc]  # as above

    def get_state(self) -> dict[str, Any]:
        """Return what the hub's database keeps of the server, so that a hub that is started again knows its place."""
        state: dict[str, Any] = super().get_state()  # type: ignore[misc]  # as above
        return state if self._place is None else {**state, _PLACE: msgspec.to_builtins(self._place)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up what the last hub kept of a server that still runs."""
        super().load_state(state)  # type: ignore[misc]  # as above
        self._place = msgspec.convert(state[_PLACE], ReservedPlace) if _PLACE in state else None

    def clear_state(self) -> None:
        """Forget the place with the server that had it."""
        super().clear_state()  # type: ignore[misc]  # as above
        self._place = None

    def _kinds(self) -> list[NotebookKind]:
        """List the kinds that this user may choose."""
        groups = [one.name for one in self.user.groups]
        return [kind for kind in read_kinds(self.notebook_kinds) if kind.is_for(groups)]

    async def _reserve(self) -> None:
        self._place = None
        chosen = self.user_options.get(FIELD, ON_CPU)
        if chosen == ON_CPU:
            return
        kind = next((one for one in self._kinds() if one.name == chosen), None)
        if kind is None:
            known = ", ".join([ON_CPU, *(one.name for one in self._kinds())])
            raise PlaceRefused(f"There is no notebook {str(chosen)[:50]!r} for you to choose. There are: {known}.")
        try:
            pool = read_public(Path(self.pool_folder) / "public.json")
        except (OSError, BadConfig):
            raise PlaceRefused("The GPU pool is not running. Start a notebook on CPUs meanwhile.") from None
        place = ReservedPlace.draw(kind.cell_options)
        await reserve(pool, self.api_token, place, kind, self.notebook_wait)
        self._place = place

    async def _release_place(self) -> None:
        if self._place is None:
            return
        place, self._place = self._place, None
        try:
            pool, token = read_public(Path(self.pool_folder) / "public.json"), self.api_token or self._draw_token()
            await release_place(pool, token, place)
        except (OSError, BadConfig, PlaceRefused, ValueError) as error:  # a timeout is an OSError, too
            self.log.warning("Bulletin: what a server had reserved ends later, by itself: %r", error)

    def _draw_token(self) -> str:
        """Make a token for a moment, that may use the pool and nothing else: a hub keeps no server's over its restart.

        Raises ValueError where the user may use the pool no more.
        """
        token: str = self.user.new_api_token(
            note="Bulletin: to give back what a server had reserved", expires_in=_RELEASE_S, scopes=[ACCESS_SCOPE]
        )
        return token

    def get_env(self) -> dict[str, str]:
        """Return the server's environment. Nothing goes into its arguments: those are for everybody to see."""
        environment: dict[str, str] = super().get_env()  # type: ignore[misc]  # the spawner class behind us has it
        place: dict[str, str] = {}
        if self._place is not None:
            place = {"BULLETIN_PLACE": self._place.name, "BULLETIN_PLACE_OPTIONS": self._place.options}
        return {**environment, **NO_GPUS, **self.kernel_environment(), **place}

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
