"""What admins set, and what follows from that alone: projects, classes of service, class hours, credits, past use."""
