"""What notebooks are told by the broker, beyond what was decided of their requests."""

TOO_MANY = "This notebook has asked the pool several things and asks for more before they are answered. Wait for those."
TOO_MANY_LEASES = (
    "Your notebooks have asked for a place in the pool more often than it keeps account of. Wait a minute, then run "
    "the cell again; cells one after another in one notebook need no new place."
)
NOT_SAID = "The node that ran your cell has not said that it is over, and your notebook goes on elsewhere."
FAULT = (
    "The pool had an error with what this notebook asked of it, and has ended the connection. Run the cell again; if "
    "that does not help, tell the pool's admins, whose log says more."
)
