"""What a pool might do and none does yet, as experiments: played where the nodes are, with the scheduler as it is."""

import msgspec


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """Which experiments are on; by default none is."""

    #: So many GPUs are kept free: the sessions that have been hot for longest leave before anybody asks.
    reserve: int = 0
    #: So many sessions leave their memory on one GPU, of which one runs; 0: who has no lease has none.
    residents: int = 0
