"""Run other programs, and say what went wrong as a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: The checkout.
HERE = Path(__file__).resolve().parents[1]


class Problem(Exception):
    """What stands in the way, and what to do, as one sentence for the person at the keyboard."""


class Failed(Problem):
    """A command that ended with another status than 0."""

    def __init__(self, status: int, words: list[str]) -> None:
        super().__init__(f"this failed with {status}: {' '.join(words)}")
        self.status = status


def say(text: str) -> None:
    """One line on stderr."""
    print(f"make.py: {text}", file=sys.stderr, flush=True)


def do(*command: object, **options: object) -> None:
    """Run a command, in the checkout unless `cwd` says otherwise. Raises `Failed` where it fails, having said why."""
    words = [str(word) for word in command]
    try:
        code = subprocess.run(words, check=False, **{"cwd": HERE, **options}).returncode  # type: ignore[call-overload]
    except FileNotFoundError:
        raise Problem(f"{words[0]} is not installed.") from None
    if code:
        raise Failed(code, words)


def works(*command: object) -> str | None:
    """Return what a short command prints, or None if it fails or is not there."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
