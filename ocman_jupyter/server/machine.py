"""``capabilities`` and ``doctor``: what this host can do."""

from __future__ import annotations

from ..hosts.host import Capabilities
from . import failures
from .answers import Doctor
from .base import OcmanHandler, operation
from .parsing import HostQuery


class CapabilitiesHandler(OcmanHandler):
    @operation("read", {200: Capabilities}, query=HostQuery, errors=failures.HOST)
    async def get(self, query: HostQuery) -> Capabilities:
        """What a host can do, and what is missing for it."""
        return await (await self.router()).for_host(query.host).machine.capabilities()


class DoctorHandler(OcmanHandler):
    @operation("read", {200: Doctor}, query=HostQuery, errors=failures.HOST)
    async def get(self, query: HostQuery) -> Doctor:
        """Checks of a host's set-up, each with what to do about it."""
        return Doctor(checks=await (await self.router()).for_host(query.host).machine.doctor())


ROUTES = [("capabilities", CapabilitiesHandler), ("doctor", DoctorHandler)]
