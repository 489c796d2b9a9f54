"""Bugs that a scheduler might have, each as one edit of its code, with the promise that it breaks."""

from typing import NamedTuple

from tests.mutants.catalogue.accounts import ACCOUNTS
from tests.mutants.catalogue.budgets import BUDGETS
from tests.mutants.catalogue.by_hand import BY_HAND
from tests.mutants.catalogue.cell_rules import CELL_RULES
from tests.mutants.catalogue.covered import COVERED
from tests.mutants.catalogue.guarantees import GUARANTEES
from tests.mutants.catalogue.hours import HOURS
from tests.mutants.catalogue.keep_times import KEEP_TIMES
from tests.mutants.catalogue.node_pools import NODE_POOLS
from tests.mutants.catalogue.others import OTHERS
from tests.mutants.catalogue.own_nodes import OWN_NODES
from tests.mutants.catalogue.patience import PATIENCE
from tests.mutants.catalogue.remembered import REMEMBERED
from tests.mutants.catalogue.room import ROOM
from tests.mutants.catalogue.sharing import SHARING
from tests.mutants.catalogue.taken_in_vain import TAKEN_IN_VAIN
from tests.mutants.catalogue.trade import TRADE
from tests.mutants.catalogue.types import TYPES


class Mutant(NamedTuple):
    """One edit of a function or a class, as two pieces of Python: expressions, or statements that follow one another.

    They are compared as syntax: comments, line breaks, quotation marks and needless brackets do not count.
    """

    name: str
    file: str  #: of gpu_worker/scheduler
    within: str  #: the function or class, with those that it is in: `Account.covers`; empty for the whole file
    old: str  #: is there exactly once
    new: str  #: empty for nothing
    promise: str  #: what no longer holds
    unseen: str = ""  #: why nobody who reads the page of promises can see it, if so


_ALL = (
    *ACCOUNTS,
    *BUDGETS,
    *BY_HAND,
    *CELL_RULES,
    *COVERED,
    *GUARANTEES,
    *HOURS,
    *KEEP_TIMES,
    *NODE_POOLS,
    *OTHERS,
    *OWN_NODES,
    *PATIENCE,
    *REMEMBERED,
    *ROOM,
    *SHARING,
    *TAKEN_IN_VAIN,
    *TRADE,
    *TYPES,
)
MUTANTS = tuple(Mutant(*one) for one in _ALL)
