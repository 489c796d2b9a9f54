"""What the notebook's environment is, for an executor to compare with its own: Python, Bulletin, libraries."""

from typing import Annotated

import msgspec

from bulletin.wire.messages.every_link import Message, Name

#: A module or a distribution, and what it says of itself.
Libraries = Annotated[dict[Name, Name], msgspec.Meta(max_length=1000)]
_Sentence = Annotated[str, msgspec.Meta(max_length=4096)]


class Versions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What both sides must have alike, or no value travels. Compared with the first cell of a session."""

    #: As in "3.12": what is pickled as code is of one minor version.
    python: Name
    #: Of Bulletin, and a hash of what it pickles by: two of one version may differ.
    bulletin: Name
    build: Name


class EnvironmentFound(Message, frozen=True, kw_only=True, tag="environment-found"):
    """Say how the executor's libraries differ from the notebook's, in sentences. Not answered."""

    sentences: Annotated[tuple[_Sentence, ...], msgspec.Meta(max_length=1000)] = ()
    #: No cell of this notebook runs there, for what the sentences say.
    is_refusal: bool = False
