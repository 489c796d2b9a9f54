"""Bugs that a scheduler might have, each as one edit of its code, with the promise that it breaks."""

from typing import NamedTuple

from tests.mutants.catalogue.accounts import ACCOUNTS
from tests.mutants.catalogue.hours import HOURS
from tests.mutants.catalogue.others import OTHERS
from tests.mutants.catalogue.room import ROOM
from tests.mutants.catalogue.sharing import SHARING
from tests.mutants.catalogue.trade import TRADE


class Mutant(NamedTuple):
    """One edit; `old` is in the file exactly once."""

    name: str
    file: str  #: of gpu_worker/scheduler
    old: str
    new: str
    promise: str  #: what no longer holds


MUTANTS = tuple(Mutant(*one) for one in (*ACCOUNTS, *OTHERS, *ROOM, *TRADE, *HOURS, *SHARING))
