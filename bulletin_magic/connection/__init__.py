"""The notebook's end of the conversation with a pool.

Where the pool is (`discovery`, `own_pool`, `availability`), what is said to it as a machine without I/O
(`session_client` with its parts `broker_side`, `agent_side`, `cell_run`; their events and actions in `session_events`),
and the thread that carries it out (`link`, `shared_memory`). Shows nothing and knows no namespace.
"""
