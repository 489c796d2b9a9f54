"""The pool: a scheduler that decides, a broker and agents that act, and executors that run cells."""
