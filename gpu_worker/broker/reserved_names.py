"""What groups of the hub have of a reservation that is called as they are, and came after: it is taken back at once."""

from bulletin.codes import RefusalCode
from bulletin.kept_time import is_kept
from gpu_worker.broker.known_ids import why_reserved
from gpu_worker.broker.scheduler_shell import SchedulerShell


async def refuse_namesakes(shell: SchedulerShell) -> None:
    """Refuse what waits in such a group, and end its sessions without a cell. A cell that runs ends as it would."""
    state = shell.scheduler.state
    for request, pending in list(shell.pending_requests.items()):
        sentence = why_reserved(state, pending.project)
        if sentence:
            await shell.cancel_request(request, sentence, RefusalCode.NOT_YOUR_PROJECT)
    for lease in list(state.leases.values()):
        sentence = why_reserved(state, lease.home)
        if sentence and (lease.cell is None or is_kept(lease.cell)):
            await shell.evict(lease.id, sentence)
