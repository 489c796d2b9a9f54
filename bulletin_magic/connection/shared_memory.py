"""Shared memory on one host: the agent's Unix socket hands out a session's two rings for its ticket."""

import mmap
import os
import socket
import struct

from bulletin.boot_id import read_boot_id
from bulletin.wire import passed_descriptors
from bulletin.wire.blobs import map_ring
from bulletin.wire.messages import AgentAddress
from bulletin_magic.connection.session_events import AgentConnected

_TIMEOUT_S = 2.0
#: What SO_PEERCRED gives: process, user and group.
_CREDENTIALS = struct.Struct("3i")


def open_rings(agent: AgentAddress, ticket: str) -> AgentConnected:
    """Map the rings of the session; AgentConnected has none on another host, or where anything is in the way."""
    try:
        if not agent.door or agent.boot != read_boot_id():
            return AgentConnected()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as unix_socket:
            unix_socket.settimeout(_TIMEOUT_S)
            unix_socket.connect(agent.door)
            if agent.door_uid is not None and _find_listener(unix_socket) != agent.door_uid:
                return AgentConnected()  # somebody else has made a socket of that name, or it is another container's
            unix_socket.sendall(ticket.encode() + b"\n")
            _, descriptors = passed_descriptors.receive(unix_socket, 1, 2)
        rings = _map(descriptors)
    except (OSError, ValueError, AttributeError):  # no such socket, not a ring, no such thing on this system
        return AgentConnected()
    return AgentConnected(*rings) if len(rings) == 2 else AgentConnected()


def _find_listener(unix_socket: socket.socket) -> int:
    """Return the Unix user whose process listens at the other end, by the kernel's word."""
    told = unix_socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(told)[1]
    return uid


def _map(descriptors: list[int]) -> list[mmap.mmap]:
    try:
        return [map_ring(descriptor) for descriptor in descriptors]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
