"""How somebody asks for more whose cell was refused, in the words of a notebook."""

import shlex

from bulletin.ids import ProjectId
from bulletin.units import spell_duration
from gpu_worker.broker.allowance_limits import LONGEST_CELL_MS
from gpu_worker.scheduler import actions
from gpu_worker.scheduler.policy.projects import GPU_MILLI


def how_to_ask(reason: actions.Reason, project: ProjectId | None) -> str:
    """Say with which line a user may ask for what was refused; empty where asking would not help.

    `project` is the one that the cell named; None is the user's usual one.
    """
    match reason:
        case actions.WalltimeTooLong(walltime_ms=walltime_ms) | actions.TooLongForProject(walltime_ms=walltime_ms):
            if walltime_ms > LONGEST_CELL_MS:
                return ""
            what = f"--time {spell_duration(walltime_ms)}"
        case actions.TooManyPerCell(gpus=gpus):
            what = f"--gpus {gpus}"
        case actions.OverLimit(of_user=True, cost_milli=cost):
            what = f"--gpus {-(-cost // GPU_MILLI)}"
        case _:
            return ""
    where = f" --project {shlex.quote(project)}" if project else ""
    return f' To ask for it: `%gpu request {what}{where} --why "..."`.'
