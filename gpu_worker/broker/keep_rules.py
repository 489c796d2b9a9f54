"""Who may keep a place between cells (`--keep`), in which class of service, and for how long."""

import msgspec

from bulletin.codes import RefusalCode
from bulletin.ids import ProjectId
from bulletin.units import show_duration
from bulletin.wire import messages as wire
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.admission.cell_rules import cell_rules, choose_qos
from gpu_worker.scheduler.policy.projects import QoS


def settle_class(
    accounts: Accounts, project: ProjectId, asked: wire.Submit, *, has_gpus: bool
) -> wire.Submit | wire.Refusal:
    """Name the class of service of a request that names none; refuse to keep a place where that may not be.

    Only in a class that never borrows: what is kept is within the project's guarantee, and nobody waits in vain for
    what idles there. And only what a guarantee counts: in a pool that `has_gpus`, those.
    """
    if not asked.keep_ms:
        if asked.is_qos_asked:
            return asked
        return msgspec.structs.replace(asked, qos=choose_qos(accounts, project, asked.qos))
    if has_gpus and not asked.gpus:
        sentence = (
            "a place without a GPU is not kept: it would cost nothing, and hold what cells with a GPU need. Ask for a "
            "GPU with --gpus, or run the cells without --keep."
        )
        return _refused(asked, RefusalCode.QOS_NOT_ALLOWED, sentence)
    allowed = cell_rules(accounts.of(project)).qos
    keeping = [one for one in accounts.qos.values() if keeps(one) and (allowed is None or one.name in allowed)]
    names = [one.name for one in keeping]
    if asked.is_qos_asked and asked.qos not in names:
        there = f"Choose {' or '.join(names)}." if names else f"Project {project!r} may use none that does."
        return _refused(asked, RefusalCode.QOS_NOT_ALLOWED, f"the QoS {asked.qos!r} keeps no place. {there}")
    if not keeping:
        sentence = (
            f"project {project!r} may use no QoS that keeps a place between cells. Run the cells without --keep, or "
            "ask who sets the quotas for one."
        )
        return _refused(asked, RefusalCode.QOS_NOT_ALLOWED, sentence)
    chosen = next((one for one in keeping if one.name == asked.qos), max(keeping, key=lambda one: one.keep_ms))
    if asked.keep_ms > chosen.keep_ms:
        most = show_duration(chosen.keep_ms)
        sentence = f"QoS {chosen.name!r} keeps a place for {most} after the last cell at most. Ask for that or less."
        return _refused(asked, RefusalCode.OVER_LIMIT, sentence)
    return msgspec.structs.replace(asked, qos=chosen.name)


def keeps(qos: QoS) -> bool:
    """Tell whether a class of service lets notebooks keep a place."""
    return qos.keep_ms > 0 and qos.must_be_in_quota


def _refused(asked: wire.Submit, code: RefusalCode, sentence: str) -> wire.Refusal:
    return wire.Refusal(code=code, sentence=sentence, request=asked.request)
