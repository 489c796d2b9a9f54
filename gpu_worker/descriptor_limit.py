"""How many descriptors a process of the pool may have: each connection is one, and each session a few."""

import resource

#: No part of the pool needs more.
_MOST = 65_536


def raise_descriptor_limit() -> None:
    """Let this process have as many descriptors as it may; what a login shell has by default (1024) is little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
