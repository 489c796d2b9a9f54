"""How a person says the type of a value, and what to do about one that cannot travel."""

#: What to do about a value that cannot travel, by the start of its type's name.
_ADVICE = {
    "_thread.lock": "Release it before the cell, or create it inside the cell.",
    "_thread.RLock": "Release it before the cell, or create it inside the cell.",
    "threading.Thread": "Wait for its end before the cell, or start it inside the cell.",
    "_io": "Read it before the cell, or open the file inside the cell.",
    "socket": "Open the connection inside the cell.",
    "sqlite3": "Connect inside the cell, or read what it needs into a DataFrame first.",
    "generator": "Make a list of it first, or create it inside the cell.",
    "coroutine": "Await it first, or create it inside the cell.",
}
RUN_AGAIN = "Run the cell that made it again."
#: Said in the place of its type of what the other side has and could not be loaded on this one.
UNLOADABLE = "value that fails to load here"


#: Types whose names say little to those who never made one.
_PLAIN_WORDS = {
    "_io.TextIOWrapper": "an open file",
    "_io.BufferedReader": "an open file",
    "_io.BufferedWriter": "an open file",
    "_io.BufferedRandom": "an open file",
    "_io.FileIO": "an open file",
    "_thread.lock": "a lock",
    "_thread.RLock": "a lock",
    "threading.Thread": "a running thread",
    "concurrent.futures.thread.ThreadPoolExecutor": "a ThreadPoolExecutor",
    "_queue.SimpleQueue": "a queue between threads",
    "socket.socket": "a network connection",
}


def name_kind(kind: str) -> str:
    """Return a type with its article, as a person says it: "a sqlite3.Connection", "an open file"."""
    return _PLAIN_WORDS.get(kind) or f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def advise(kind: str) -> str | None:
    """Return what to do about a value of this type, in one sentence; None where nothing special is known."""
    return next((advice for known, advice in _ADVICE.items() if kind.startswith(known)), None)
