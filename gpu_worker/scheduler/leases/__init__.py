"""What is asked for and what it becomes: requests, leases, their lives, and the shapes by which they are alike."""
