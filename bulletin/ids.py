"""The names of things that travel: one type each, so that a lease is never taken for a cell."""

from typing import NewType

#: One notebook kernel, as the kernel names itself. Only unique together with its user.
KernelId = NewType("KernelId", str)
#: One kernel's remote side. Minted by the broker.
SessionId = NewType("SessionId", str)
#: A wish for a lease. Minted by the kernel; the broker knows it together with its kernel.
RequestId = NewType("RequestId", str)
#: The right of a session to use named slots. Minted by the broker.
LeaseId = NewType("LeaseId", str)
#: One cell's run. Minted by the kernel, unique by chance (128 random bits).
CellId = NewType("CellId", str)
#: As many characters of a cell's id as tell it from others.
SHORT = 8
#: One node's agent. Minted by the agent's first start and kept.
AgentId = NewType("AgentId", str)
#: One GPU, MIG slice or CPU slot of a node: a UUID of NVML, or "cpu-N".
SlotId = NewType("SlotId", str)
#: Who pays: a hub group by default.
ProjectId = NewType("ProjectId", str)
#: A hub user's name, or the Unix user of a pool of one's own.
UserName = NewType("UserName", str)
#: An environment from the admin's list. A client names it and never sends a path.
EnvironmentId = NewType("EnvironmentId", str)
