"""What a hub's configuration says, as far as Bulletin looks into it: read in the hub's environment, judged in ours."""

import msgspec


class HubFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A jupyterhub_config.py after it has been run, as plain words. Of no use where `problem` says why it cannot be."""

    #: Why the hub cannot start with the file; empty if nothing is in the way.
    problem: str = ""
    bulletin_version: str = ""
    #: Whether `configure()` was called; all that is said of service and pool is empty without.
    is_configured: bool = False
    folder: str = ""
    starts_pool: bool = False
    #: The options that `bulletin pool` is given.
    pool_words: tuple[str, ...] = ()
    #: The service's token to the hub's API, where the file sets one. A secret.
    service_token: str = ""
    #: Scopes of the hub that the file gives to the service.
    service_scopes: tuple[str, ...] = ()
    spawner: str = ""
    #: Whether servers are told where the pool is.
    has_mixin: bool = False
    #: Whether servers run on this host, so that their program can be looked at.
    is_local: bool = False
    server_command: tuple[str, ...] = ()
    #: What tokens of servers may do; None where a function of the file decides.
    server_scopes: tuple[str, ...] | None = ()
    #: The groups whose members may use the pool, or manage it, by Bulletin's roles.
    pool_groups: tuple[str, ...] = ()
    #: The groups that the file makes; with `manages_groups` the login makes others.
    groups: tuple[str, ...] = ()
    manages_groups: bool = False
    #: The users whom the file names.
    users: tuple[str, ...] = ()
    #: The proxy's program, where it is one that the hub starts on this host.
    proxy_command: tuple[str, ...] = ()
    #: Where the hub's programs listen on this host: what, host, port.
    listeners: tuple[tuple[str, str, int], ...] = ()
    #: The hub's API.
    api_url: str = ""
