"""What people are told of a node that gets no cells, and of cells that ended with theirs."""

AWAY = (
    "The broker does not hear it. Cells that run there go on if only the network is cut: it gets no others until it is "
    "heard again."
)
LEAVES = "It is being shut down: cells that run there have their grace to end, and it gets no others."
LEFT = "The node that ran your cell was shut down."
ANEW = "The job of the node that ran your cell was started anew."
REVOKED = "The node that ran your cell was taken out of the pool."
OLD_KEYS = (
    "It has new keys, and the time of its old ones is over. Bring it its new file, which its agent takes up by itself: "
    "`bulletin node rotate` makes one. Cells that run there go on; it gets no others until then."
)
FAULT = "The pool had an error with your session, and ended it; the broker's log says which."
NO_WAY = (
    "Nothing of it answers at the address that its agent has told: see that a job of yours is reached from there, and "
    "that Pool.advertise of the agent says where."
)
