"""What the REST API answers where it cannot do what is asked: a status, a code that stays, a sentence. Pure."""

from http import HTTPStatus
from typing import Self

import msgspec

from bulletin.codes import RefusalCode
from bulletin.wire.messages import Refusal


class ApiProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why something was not done. The code stays as it is; the sentence may become better."""

    code: str
    sentence: str
    #: Whether nobody is known to ask: a browser's login has ended, or there was no token.
    is_logged_out: bool = False
    #: Whether who is not known has no session of the hub either, as who has logged out of it: a page leaves it at that.
    is_session_over: bool = False


class ApiRefused(Exception):
    """What was asked is not done. Status, code and sentence are the answer."""

    def __init__(self, status: HTTPStatus, code: str, sentence: str) -> None:
        super().__init__(status, code, sentence)
        self.status = status
        self.problem = ApiProblem(code=code, sentence=sentence)

    @classmethod
    def with_details(cls, status: HTTPStatus, problem: ApiProblem) -> Self:
        """Make one whose answer says more than a sentence."""
        refused = cls(status, problem.code, problem.sentence)
        refused.problem = problem
        return refused


_STATUS = {
    RefusalCode.NOT_ALLOWED: HTTPStatus.FORBIDDEN,
    RefusalCode.NOT_YOUR_PROJECT: HTTPStatus.FORBIDDEN,
    RefusalCode.UNKNOWN_ID: HTTPStatus.NOT_FOUND,
    RefusalCode.NO_SUCH_CELL: HTTPStatus.NOT_FOUND,
    RefusalCode.LEDGER_AWAY: HTTPStatus.SERVICE_UNAVAILABLE,
    RefusalCode.FAULT: HTTPStatus.SERVICE_UNAVAILABLE,
    RefusalCode.TOO_FAST: HTTPStatus.TOO_MANY_REQUESTS,
}


def refused(refusal: Refusal) -> ApiRefused:
    """Make of what the broker says what the API answers: what is not in a state for it is a conflict."""
    return ApiRefused(_STATUS.get(refusal.code, HTTPStatus.CONFLICT), refusal.code.value, refusal.sentence)
