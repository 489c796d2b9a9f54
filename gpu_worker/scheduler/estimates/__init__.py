"""What people are told: why a request waits, when it starts at the latest, and how long it usually takes."""
