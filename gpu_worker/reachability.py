"""Whether something listens at an address of TCP; if not, why, and what to do about it."""

import asyncio
import contextlib
import errno
import ipaddress
import re
import socket

#: Nothing that is there takes longer to answer; what a firewall drops never answers.
_PATIENCE_S = 3.0
_ADDRESS = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:.]+\]|[^:/\s\[\]]+):(?P<port>[0-9]{1,5})")


def parse(address: str) -> tuple[str, int] | None:
    """Return host and port of "tcp://host:port"; None where it is no such address."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) < 65536:
        return None
    return found["host"].strip("[]"), int(found["port"])


def write_address(host: str, port: int) -> str:
    """Return "tcp://host:port", an address of IPv6 in brackets and in the form in which a socket tells where it is.

    The opposite of `parse`, but for port 0 and other forms of one address.
    """
    address = host.removeprefix("[").removesuffix("]")
    with contextlib.suppress(OSError):
        # Not by `ipaddress`: what it makes of an address of IPv4 in one of IPv6 depends on the version of Python.
        address = socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, address))
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"


def is_loopback(host: str) -> bool:
    """Tell whether only the same host reaches this one by that name."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def is_unspecified(host: str) -> bool:
    """Tell whether it stands for all addresses of a host, and so for none that others could use."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return host == "*"


def is_of_this_host(host: str) -> bool:
    """Tell whether an address is one of this host's; a host that does not let one look has it still."""
    try:
        with socket.socket(_family(host), socket.SOCK_DGRAM) as plug:
            plug.bind((host, 0))
    except OSError as error:  # where no descriptor is left, that says nothing of addresses
        return error.errno != errno.EADDRNOTAVAIL
    return True


def is_name(host: str) -> bool:
    """Tell whether it is a name that the name service is asked for: no address, and no network device of this host."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host.strip("[]"))
        return False
    return host not in ("", "*") and host not in {name for _, name in socket.if_nameindex()}


def resolve(name: str) -> str:
    """Return the address at which ZeroMQ listens for a name, as of now. Takes its time; raises OSError with words."""
    try:
        return str(socket.getaddrinfo(name, None, _family(name), socket.SOCK_STREAM)[0][4][0])
    except UnicodeError:
        raise OSError(errno.EINVAL, f"{name!r} is no name") from None
    except socket.gaierror as error:
        raise OSError(error.errno, _say_unresolved(name, error)) from None


def find_lasting_address(host: str, bound: str) -> str:
    """Return the address to tell others of what is bound: by the host's name, where `host` leads there alone.

    Who is told a name finds the host again when it gets another address. A name that means this host alone, or one
    of its network devices, is of no use to others, and one of several addresses leads some of them to another one, at
    which nothing listens: they are told what is bound.
    """
    found = parse(bound)
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host.strip("[]"))
        return bound
    if found is None or is_loopback(found[0]):
        return bound
    try:
        known = {where[0] for *_, where in socket.getaddrinfo(host, found[1], _family(host), socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return bound
    return write_address(host, found[1]) if known == {found[0]} else bound


def _family(host: str) -> socket.AddressFamily:
    """Return by which family of addresses ZeroMQ goes to a host: to a name by IPv4 alone, see `channel`."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def own_host_towards(address: str) -> str:
    """Return by which of its own addresses this host reaches another. Raises OSError if it does not."""
    found = parse(address)
    if found is None:
        raise OSError(errno.EINVAL, f"{address} is no address")
    try:
        family, _, _, _, where = socket.getaddrinfo(*found, _family(found[0]), socket.SOCK_DGRAM)[0]
    except socket.gaierror as error:
        raise OSError(error.errno, _say_unresolved(found[0], error)) from None
    with socket.socket(family, socket.SOCK_DGRAM) as plug:  # nothing is sent
        plug.connect(where)
        return str(plug.getsockname()[0])


def _say_unresolved(host: str, error: socket.gaierror) -> str:
    return f"The name {host!r} cannot be resolved ({error.strerror}): see the name service, or /etc/hosts"


async def is_refused(address: str) -> bool:
    """Tell whether the host at an address is there, and nothing listens at that port of it."""
    found = parse(address)
    if found is None:
        return False
    try:
        async with asyncio.timeout(_PATIENCE_S):
            _, writer = await asyncio.open_connection(*found, family=_family(found[0]))
    except ConnectionRefusedError:
        return True
    except (TimeoutError, OSError):
        return False
    writer.close()
    return False


async def find_obstacle(address: str) -> str:
    """Say why nothing answers at an address, with what to look at; empty if something does."""
    found = parse(address)
    if found is None:
        return f"{address[:200]!r} is no address: those are written as tcp://HOST:PORT."
    host, port = found
    try:
        async with asyncio.timeout(_PATIENCE_S):
            _, writer = await asyncio.open_connection(host, port, family=_family(host))
    except TimeoutError:
        return (
            f"Nothing answers at {address}: its host is away, or a firewall on the way drops what comes. See that port "
            f"{port} of {host} is open."
        )
    except socket.gaierror as error:
        return f"{_say_unresolved(host, error)}."
    except ConnectionRefusedError:
        return f"Nothing listens at {address}: what should may not run, or listens at another port."
    except OSError as error:
        return f"There is no way to {address}: {error.strerror or error}."
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ""
