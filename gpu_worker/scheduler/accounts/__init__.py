"""Who has what: each project and each user in it, and which of their leases a guarantee covers."""
