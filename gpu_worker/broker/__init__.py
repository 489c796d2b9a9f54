"""The shell around the scheduler: who asks, who holds what, and the ledger. Never sees a user's data."""
