"""The environment of programs that tests start: that of the tests, without what tells of another hub or pool."""

import os


def clean_environ() -> dict[str, str]:
    """Copy the environment without what tells of another pool."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTERHUB_", "BULLETIN"))}
