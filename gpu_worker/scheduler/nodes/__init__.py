"""What there is: connected nodes with what is free of them, and all slots that the pool has ever shown."""
