"""Settings that nothing obeys: a word that is none, or one of a section that is none. Traitlets only logs them."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import NamedTuple

from traitlets.config import Config, Configurable

from bulletin.errors import BadConfig

#: Every command may have a section of its own, and files are read by several.
_OF_COMMANDS = "Command"


class UnknownSetting(NamedTuple):
    """A setting, and the one that may have been meant. Without a name it is the whole section, or what was typed."""

    section: str
    name: str
    near: str

    def describe(self) -> str:
        """Write it as a file has it."""
        return f"c.{self.section}.{self.name}" if self.name else f"c.{self.section}"

    def meant(self) -> str:
        """Write the one that may have been meant; empty where none is near."""
        if not self.near:
            return ""
        return f"c.{self.section}.{self.near}" if self.name else f"c.{self.near}"


def find_unknown(config: Config, classes: Iterable[type[Configurable]]) -> Iterator[UnknownSetting]:
    """List what a configuration sets that none of the classes has.

    A section may stand inside that of a class, for the objects that are made for it, as in c.AgentCommand.Pool.
    """
    classes = list(classes)
    names: dict[str, list[str]] = {}
    for kind in classes:
        for base in kind.__mro__:
            if issubclass(base, Configurable):
                names.setdefault(base.__name__, []).extend(kind.class_trait_names(config=True))
    for section, values in sorted(config.items()):
        known = names.get(section)
        if known is None:
            if not (isinstance(values, Config) and section.endswith(_OF_COMMANDS)):
                yield UnknownSetting(section, "", _nearest(section, names))
            continue
        for name in sorted(set(values) - set(known)):
            if name in names and isinstance(values[name], Config):
                yield from find_unknown(Config({name: values[name]}), classes)
            else:
                yield UnknownSetting(section, name, _nearest(name, known))


def require_known(config: Config, classes: Iterable[type[Configurable]], file: str) -> None:
    """Check that a configuration file sets nothing that nothing obeys.

    Raises
    ------
    BadConfig
        With the first such setting, and what may have been meant.
    """
    for unknown in find_unknown(config, classes):
        meant = f" Did you mean {unknown.meant()}?" if unknown.near else ""
        raise BadConfig(
            f"{file} sets {unknown.describe()}, which is no setting.{meant} "
            "Correct it, or take it out: what it was to do would not be done."
        )


def require_typed(config: Config, classes: Iterable[type[Configurable]], options: Iterable[str]) -> None:
    """Check that nothing was typed that is no option. Raises BadConfig, as `require_known`."""
    for unknown in find_unknown(config, classes):
        if isinstance(config[unknown.section], Config):
            typed, near = unknown.describe().removeprefix("c."), unknown.meant().removeprefix("c.")
        else:
            typed, near = unknown.section, _nearest(unknown.section, options)
        meant = f" Did you mean --{near}?" if near else ""
        raise BadConfig(f"There is no option --{typed}.{meant} --help lists the options.")


def _nearest(word: str, words: Iterable[str]) -> str:
    return next(iter(get_close_matches(word, list(words), n=1)), "")
