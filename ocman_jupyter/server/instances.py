"""``ensure`` and ``instances``: the one OpenCode of a repository."""

from __future__ import annotations

from .. import errors
from ..hosts.host import EnsureRequest, InstanceInfo, StopRequest
from . import failures
from .answers import InstanceList, Stopped
from .base import OcmanHandler, operation
from .parsing import HostQuery


class EnsureHandler(OcmanHandler):
    @operation("execute", {200: InstanceInfo}, body=EnsureRequest, errors=failures.LAUNCH)
    async def post(self, request: EnsureRequest) -> InstanceInfo:
        """Find or launch the one OpenCode of a repository."""
        host = (await self.router()).for_directory(request.directory, request.host)
        return await host.instances.ensure(request.directory, self.progress(host.id, request.directory))


class InstancesHandler(OcmanHandler):
    @operation("read", {200: InstanceList}, query=HostQuery, errors=failures.HOST + failures.OPENCODE)
    async def get(self, query: HostQuery) -> InstanceList:
        """The instances that run; without a host those of all hosts."""
        router = await self.router()
        hosts = router.hosts() if query.host is None else [router.for_host(query.host)]
        return InstanceList(instances=[one for host in hosts for one in await host.instances.list()])


class StopHandler(OcmanHandler):
    @operation(
        "write",
        {200: Stopped},
        body=StopRequest,
        errors=(*failures.PLACE, errors.NotFound, errors.NotOurs, errors.SessionBusy),
    )
    async def post(self, request: StopRequest) -> Stopped:
        """Stop an instance that ocman launched."""
        host = (await self.router()).for_directory(request.directory, request.host)
        await host.instances.stop(request.directory, request.force)
        return Stopped()


class RestartHandler(OcmanHandler):
    @operation(
        "execute",
        {200: InstanceInfo},
        body=StopRequest,
        errors=(*failures.LAUNCH, errors.NotFound, errors.NotOurs, errors.SessionBusy),
    )
    async def post(self, request: StopRequest) -> InstanceInfo:
        """Stop an instance that ocman launched, and launch it again."""
        host = (await self.router()).for_directory(request.directory, request.host)
        progress = self.progress(host.id, request.directory)
        return await host.instances.restart(request.directory, request.force, progress)


ROUTES = [
    ("ensure", EnsureHandler),
    ("instances", InstancesHandler),
    ("instances/stop", StopHandler),
    ("instances/restart", RestartHandler),
]
