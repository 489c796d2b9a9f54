"""Prices: what the time of a GPU counts for, by the words of its name, where use adds up.

A price is for budgets, past use and the ledger, and never for what is there at once: guarantees and limits count GPUs.
"""

import msgspec

#: What a GPU counts for that nobody has priced: whole percent.
USUAL_PERCENT = 100


class Price(msgspec.Struct, frozen=True):
    """What the time of GPUs of one type counts for."""

    gpu: str  #: words of the GPU's name, all of which must be in it
    percent: int  #: of what a GPU without a price counts for
