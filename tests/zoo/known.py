"""What differs today in the notebooks of the zoo, in which cells, and why; whoever mends it takes the cells away."""

from dataclasses import dataclass

from tests.zoo.playing import Way


@dataclass(frozen=True)
class Known:
    """A cause, in a notebook, and the cells that differ for it, counted from 0, each way."""

    name: str
    why: str
    pool: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()

    @property
    def cells(self) -> set[tuple[Way, int]]:
        """All of them, each with its way."""
        return {("pool", cell) for cell in self.pool} | {("turns", cell) for cell in self.turns}


KNOWN: tuple[Known, ...] = (
    Known(
        "msgpack_codecs",
        "packers and unpackers are in C and do not pickle",
        turns=(1, 3),
    ),
    Known(
        "numba_jitclass",
        "typed containers hold memory of numba's own, and with it ends the process that they are filled in; "
        "instances of jitclasses do not pickle",
        turns=(1, 3, 4),
    ),
    Known(
        "pillow_drawing",
        "the access to single pixels (`image.load()`) is in C and does not pickle",
        turns=(5,),
    ),
    Known(
        "plotnine_plots",
        "the theme for all plots is an instance of the library's, and those stay on the side where they were set: "
        "what a library holds so may be a session, with its secrets, or what it found out of its process",
        turns=(2, 4),
    ),
    Known(
        "pyrsistent_maps",
        "an evolver of vectors is in C and does not pickle",
        turns=(4,),
    ),
    Known(
        "sqlalchemy_orm",
        "relationships are set up by mappers that know what the library keeps in weak references and events, "
        "which does not travel whole",
        pool=(3, 4, 5),
        turns=(1, 2, 3, 4, 5),
    ),
)
