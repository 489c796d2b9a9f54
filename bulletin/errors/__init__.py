"""Every error that Bulletin raises on purpose, by who must act.

BulletinError                 code, retryable; the fields first, the sentence in __str__
├── the user
│   ├── CannotSend            a variable that the cell needs cannot leave the notebook
│   ├── CannotReturn          what the cell made cannot be loaded in the notebook
│   ├── ModulesTooLarge       the notebook's own modules are more source than may travel
│   ├── StayedBehind          a value was touched that is on the other side and cannot travel
│   ├── BadOption             an option of %%gpu is not understood
│   ├── CannotOffload         a block or a function cannot run anywhere but where it stands
│   ├── SomeFailed            of the elements of gpu.map, some failed
│   ├── NotAllowed            the hub does not let this user into the pool, or does not know the token
│   ├── Refused               the pool says that this request can never run
│   │   └── CannotStart       no slot that the pool gave the cell could run it
│   ├── NoPool                there is no pool to send the cell to
│   ├── NotDone               what was asked for at the command line was not done
│   ├── WaitedTooLong         no GPU came free for as long as the cell would wait
│   └── WalltimeReached       the cell ran for as long as it may
├── nobody: it happens
│   ├── CellLost              the executor, its node or the link went away while the cell ran
│   └── CellStopped           the user stopped the cell, and it had to be ended
├── the operator
│   ├── BadConfig             a setting, a file or a database that cannot be used
│   └── LedgerAway            the ledger's database does not answer
└── the peer
    ├── MalformedMessage      frames that are not a message of this link
    └── VersionMismatch       two versions of the protocol that do not understand each other

IllegalMove, InvariantBroken  bugs of ours; deliberately not BulletinErrors
"""

from .base_error import BulletinError
from .mishaps import CellLost, CellStopped
from .operator_errors import BadConfig, LedgerAway
from .own_bugs import IllegalMove, InvariantBroken
from .peer_errors import MalformedMessage, VersionMismatch
from .user_errors import (
    BadOption,
    CannotOffload,
    CannotStart,
    NoPool,
    NotAllowed,
    NotDone,
    Refused,
    SomeFailed,
    WaitedTooLong,
    WalltimeReached,
)
from .value_errors import CannotReturn, CannotSend, ModulesTooLarge, StayedBehind
from .value_words import UNLOADABLE, name_kind

__all__ = [
    "UNLOADABLE",
    "BadConfig",
    "BadOption",
    "BulletinError",
    "CannotOffload",
    "CannotReturn",
    "CannotSend",
    "CannotStart",
    "CellLost",
    "CellStopped",
    "IllegalMove",
    "InvariantBroken",
    "LedgerAway",
    "MalformedMessage",
    "ModulesTooLarge",
    "NoPool",
    "NotAllowed",
    "NotDone",
    "Refused",
    "SomeFailed",
    "StayedBehind",
    "VersionMismatch",
    "WaitedTooLong",
    "WalltimeReached",
    "name_kind",
]

# Tracebacks and pickles say `bulletin.errors`, whatever file of it something stands in.
for _name in __all__:
    if callable(globals()[_name]):
        globals()[_name].__module__ = __name__
