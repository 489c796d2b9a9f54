"""The hub side of Bulletin: `configure(c)`, a spawner that hands kernels the pool, and the hub's service."""
