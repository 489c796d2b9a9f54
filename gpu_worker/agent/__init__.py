"""The node: its slots, its executors, the journal of their output. Passes bytes on and never unpickles."""
