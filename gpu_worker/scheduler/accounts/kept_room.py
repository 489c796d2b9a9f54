"""For whom room in a project is kept inside it: who has waited for so long, or whom an admin wants first."""

from typing import NamedTuple


class Claim(NamedTuple):
    """What is kept for one request, of a limit or of a guarantee."""

    cost: int  #: thousandths of a GPU; 0 while room is made for it, as it uses that already
    spared: frozenset[str] = frozenset()  #: classes of service from which nothing of a guarantee is kept
