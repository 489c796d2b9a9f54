"""What a cell says in the executor that its notebook knows by the words."""

#: What `exit()` in a cell raises SystemExit with.
EXITED = "exit() has ended this cell. The notebook goes on."
