"""The hub-managed service: it keeps the pool running, and is a client of its broker by wire."""
