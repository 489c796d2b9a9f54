"""Every message of Bulletin, and one closed union for each link and direction.

A message is a promise to other versions: new fields have defaults, tags and field names are never used again for
something else, and a removal is a new `PROTOCOL`, which the handshake refuses with a sentence.

    kernel ── FromKernel / ToKernel ──────── broker        who are you, may I have a lease, how long must I wait
    agent  ── FromAgent / ToAgent ────────── broker        what the node has, which leases it holds, what cells cost
    kernel ── KernelToAgent / AgentToKernel ─ agent        cells, state, output
    agent  ── ToExecutor / FromExecutor ──── executor      the same cells, state and output, over a pipe
    agent  ── ToZygote / FromZygote ──────── zygote        executors to fork, and what became of them

What a cell says and carries (source, state, output) is opaque to broker and agent.
"""

from bulletin.wire.messages.agent_broker import (
    CancelCell as CancelCell,
    CellBegan as CellBegan,
    CellDone as CellDone,
    CellUsage as CellUsage,
    Evict as Evict,
    FromAgent as FromAgent,
    HandedOver as HandedOver,
    HandOver as HandOver,
    HeldLease as HeldLease,
    LeaseOver as LeaseOver,
    ListCells as ListCells,
    Listed as Listed,
    Pause as Pause,
    PauseDeclined as PauseDeclined,
    Prepare as Prepare,
    Prepared as Prepared,
    Reclaim as Reclaim,
    Recorded as Recorded,
    Register as Register,
    Registered as Registered,
    SlotOffer as SlotOffer,
    ToAgent as ToAgent,
)
from bulletin.wire.messages.agent_zygote import (
    Exited as Exited,
    Fork as Fork,
    Forked as Forked,
    FromZygote as FromZygote,
    ToZygote as ToZygote,
    Warm as Warm,
)
from bulletin.wire.messages.cells import (
    AgentToKernel as AgentToKernel,
    Answer as Answer,
    Asked as Asked,
    Attach as Attach,
    Attached as Attached,
    Chunk as Chunk,
    Ended as Ended,
    ErrorText as ErrorText,
    FromExecutor as FromExecutor,
    Gone as Gone,
    KernelToAgent as KernelToAgent,
    Leave as Leave,
    Lost as Lost,
    Notice as Notice,
    Noticed as Noticed,
    Output as Output,
    Parcel as Parcel,
    Ready as Ready,
    Return as Return,
    Run as Run,
    Seen as Seen,
    Stop as Stop,
    ToExecutor as ToExecutor,
    Took as Took,
)
from bulletin.wire.messages.every_link import (
    PROTOCOL as PROTOCOL,
    TEXT_LIMIT as TEXT_LIMIT,
    Count as Count,
    Duration as Duration,
    Malformed as Malformed,
    Message as Message,
    Name as Name,
    Ping as Ping,
    Pong as Pong,
    Secret as Secret,
    Size as Size,
    Unknown as Unknown,
)
from bulletin.wire.messages.kernel_broker import (
    AgentAddress as AgentAddress,
    CellNote as CellNote,
    CellPicture as CellPicture,
    Find as Find,
    Found as Found,
    FromKernel as FromKernel,
    Granted as Granted,
    Hello as Hello,
    Join as Join,
    Look as Look,
    Picture as Picture,
    ProjectPicture as ProjectPicture,
    Queued as Queued,
    Refusal as Refusal,
    Revoked as Revoked,
    SlotPicture as SlotPicture,
    Submit as Submit,
    ToKernel as ToKernel,
    WaitingPicture as WaitingPicture,
    Welcome as Welcome,
    Withdraw as Withdraw,
)
