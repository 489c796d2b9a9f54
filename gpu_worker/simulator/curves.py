"""A number that changes in steps, over time: its integral, exact, and its mean in bins of equal width."""


class Curve:
    """How many of something there are at each time: its integral, its highest value and its mean in each bin.

    Times are milliseconds from 0 on, and never go back.
    """

    def __init__(self, width_ms: int) -> None:
        self.width_ms = width_ms
        self.level = self.most = 0
        self.total_ms = 0  #: the integral so far: number times milliseconds
        self._bins: list[int] = []  # the integral within each
        self._at_ms = 0

    def add(self, change: int, now_ms: int) -> None:
        """Change the level from this time on, by so many more (or fewer, below 0)."""
        self.advance(now_ms)
        self.level += change
        self.most = max(self.most, self.level)

    def advance(self, now_ms: int) -> None:
        """Bring integral and bins up to this time; the level has not changed until then."""
        while self._at_ms < now_ms:
            bin_ = self._at_ms // self.width_ms
            until_ms = min(now_ms, (bin_ + 1) * self.width_ms)
            area_ms = self.level * (until_ms - self._at_ms)
            while len(self._bins) <= bin_:
                self._bins.append(0)
            self._bins[bin_] += area_ms
            self.total_ms += area_ms
            self._at_ms = until_ms

    def means(self) -> list[float]:
        """Return the mean in each bin, from time 0 to the one that is now; the last is of what has passed of it."""
        lengths = [min(self.width_ms, self._at_ms - at * self.width_ms) for at in range(len(self._bins))]
        return [area_ms / length_ms for area_ms, length_ms in zip(self._bins, lengths, strict=True)]
