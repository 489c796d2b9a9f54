"""What comes in: requests that may wait or are refused, and agents that join with what runs there."""
