"""What all errors of Bulletin have in common: a code, and one sentence for the person who must act."""


class BulletinError(Exception):
    """What went wrong, as fields and as one sentence for the person who must act."""

    #: Travels and is counted. The sentence may improve; this may not.
    code: str = "error"
    #: True where the same call may succeed later, with nothing changed by the user.
    retryable = False

    def _render_traceback_(self) -> list[str]:
        """Show the sentence alone in a notebook: the frames between are ours and say nothing to the user."""
        return [f"{type(self).__name__}: {self}"]
