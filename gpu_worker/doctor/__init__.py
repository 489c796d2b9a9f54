"""`bulletin doctor`: what an admin can get wrong, looked at where it is, each with what to do about it."""
