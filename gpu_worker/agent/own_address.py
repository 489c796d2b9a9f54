"""Where notebooks reach this agent: found at its start, and followed where its host gets another address."""

import asyncio

import structlog

from bulletin.errors import BadConfig
from gpu_worker.agent.broker_link import BrokerLink
from gpu_worker.agent.kernel_server import KernelServer
from gpu_worker.agent.membership import Membership
from gpu_worker.config import LOCALHOST, PoolSettings
from gpu_worker.reachability import (
    is_loopback,
    is_name,
    is_of_this_host,
    is_unspecified,
    parse,
    resolve,
    write_address,
)

#: So often it is looked whether the host still has its address.
_LOOK_S = 3.0


class OwnAddress:
    """Listens for kernels, and knows what they are told of where."""

    def __init__(
        self, settings: PoolSettings, membership: Membership, kernels: KernelServer, broker: BrokerLink
    ) -> None:
        self._settings, self._membership = settings, membership
        self._kernels, self._broker = kernels, broker
        #: Of a node's agent that nobody has told both: it is where the way to the broker begins.
        self._is_found = bool(membership.node) and not (settings.host and settings.advertise)
        #: By which an admin has said where it listens; what it leads to may change.
        self._name = settings.host if is_name(settings.host) else ""
        self._is_followed = bool(self._name) or (
            self._is_found and (not settings.host or is_unspecified(settings.host))
        )
        #: Its host's own address, and where it listens; empty: nowhere.
        self._own, self._listens_at = LOCALHOST, ""
        #: What was said last of an address that it cannot have.
        self._problem = ""
        self._log = structlog.get_logger("agent")

    async def open(self) -> str:
        """Listen for kernels; return the address that they are told. Waits for a way to the broker, if it needs one."""
        if self._is_found:
            self._own = await self._broker.find_own_host()
        self._listens_at = self._kernels.bind(self._settings.host or self._own)
        if self._name and (bound := parse(self._listens_at)) is not None:
            self._own = bound[0]
        told = self._told()
        found, broker = parse(told), parse(self._membership.broker_address)
        if found is not None and broker is not None and is_loopback(found[0]) and not is_loopback(broker[0]):
            self._log.warning(
                "notebooks cannot reach this node: it tells them an address that each host has for itself",
                told=told,
                remedy="leave Pool.host and Pool.advertise of this node empty, or set them to an address of this host",
            )
        self._log.info("listening", at=self._listens_at, told=told, broker=self._membership.broker_address)
        return told

    async def wait_for_other(self) -> str:
        """Wait until the host has another address in the place of its own, and listen there; return what is told now.

        Where it cannot, it listens nowhere, and then wherever the way to the broker begins, the old address included;
        by a name of an admin's, wherever that leads. Never where they have said an address, nor while the host has the
        old one beside a new one.
        """
        while True:
            await asyncio.sleep(_LOOK_S)
            if not self._is_followed or (self._listens_at and is_of_this_host(self._own)):
                continue
            try:
                now = await self._find_own()
            except OSError as error:
                self._warn(str(error.strerror))
                continue
            if self._listens_at and now == self._own:
                continue  # it was away for a moment
            if not self._settings.host or self._name:
                try:
                    self._listens_at = self._kernels.bind(now)
                except BadConfig as error:  # it is away again, or its port is another program's: that may change
                    self._listens_at = ""
                    self._warn(str(error))
                    continue
            self._problem = ""
            before, self._own = self._own, now
            told = self._told()
            self._log.info("listening again", at=self._listens_at, before=before, now=now, told=told)
            return told

    async def _find_own(self) -> str:
        """Find which address the host has now, or has by its name. Raises OSError where the name leads nowhere."""
        if self._name:
            return await asyncio.to_thread(resolve, self._name)
        return await self._broker.find_own_host()

    def _warn(self, problem: str) -> None:
        """Say once, and not at each look, why it listens nowhere."""
        if problem != self._problem:
            self._problem = problem
            self._log.warning("this host has another address, and this agent has none", problem=problem)

    def _told(self) -> str:
        told = self._settings.advertise or self._listens_at
        found = parse(told)
        if found is not None and is_unspecified(found[0]):
            return write_address(self._own, found[1])
        return told
