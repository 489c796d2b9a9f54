"""The notebook's end of the conversation with a pool.

Where the pool is: `discovery`, `own_pool`, `availability`. What is said to it, as a machine without I/O:
`session_client` with its parts `broker_side`, `agent_side` and `cell_run` (`cell_phase`, `stop_schedule`). What that
machine learns and does: `session_events`; what it tells the main thread: `deliveries`, with `resource_spec`. The
thread that carries it out: `link` with `delivery_queue` and `shared_memory`. Shows nothing and knows no namespace.
"""
