"""The node: its slots, its executors, what they say. Passes bytes on and never unpickles."""
