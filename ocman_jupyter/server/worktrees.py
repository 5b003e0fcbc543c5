"""``worktrees``: list, make, compare, remove."""

from __future__ import annotations

from ..hosts.host import Diff, Removal, Removed, RemoveRequest, WorktreeList, WorktreeRequest, WorktreeSession
from . import failures
from .answers import Planned
from .base import OcmanHandler, host_of, operation
from .parsing import DiffQuery, HostQuery, RemovalQuery, WorktreesQuery


class WorktreesHandler(OcmanHandler):
    @operation("read", {200: WorktreeList}, query=WorktreesQuery, errors=failures.PLACE)
    async def get(self, query: WorktreesQuery) -> WorktreeList:
        """The worktrees of a repository, each with the sessions that work in it."""
        host = (await self.router()).for_directory(query.directory, query.host)
        return await host.worktrees.list(query.directory, query.changes)

    @operation(
        "execute",
        {201: WorktreeSession, 200: WorktreeSession | Planned},
        body=WorktreeRequest,
        errors=failures.CREATE,
    )
    async def post(self, request: WorktreeRequest) -> WorktreeSession | Planned:
        """Make or reuse a worktree and a session in it; with ``dry_run`` only say what would be done."""
        host = (await self.router()).for_directory(request.directory, request.host)
        if request.dry_run:
            return Planned(plan=await host.worktrees.plan(request))
        progress = self.progress(host.id, request.directory, request.request_id)
        made = await host.worktrees.create(request, progress)
        self.set_status(200 if made.reused else 201)
        return made

    @operation(
        "write",
        {200: Removed},
        query=HostQuery,
        body=RemoveRequest,
        errors=failures.REMOVE,
    )
    async def delete(self, query: HostQuery, request: RemoveRequest) -> Removed:
        """Remove a worktree, unless that would lose something that was not accepted by name."""
        host = (await self.router()).for_directory(request.path, host_of(query, request))
        return await host.worktrees.remove(request)


class RemovalHandler(OcmanHandler):
    @operation(
        "read",
        {200: Removal},
        query=RemovalQuery,
        errors=failures.REMOVE,
    )
    async def get(self, query: RemovalQuery) -> Removal:
        """What removing a worktree would lose."""
        host = (await self.router()).for_directory(query.path, query.host)
        return await host.worktrees.removal(query.path, query.delete_branch)


class DiffHandler(OcmanHandler):
    @operation("read", {200: Diff}, query=DiffQuery, errors=failures.DIFF)
    async def get(self, query: DiffQuery) -> Diff:
        """What differs in a worktree from ``base``, ``HEAD``, a revision or another worktree (its path)."""
        host = (await self.router()).for_directory(query.path, query.host)
        return await host.diffs.worktree(query.path, query.against)


ROUTES = [
    ("worktrees", WorktreesHandler),
    ("worktrees/removal", RemovalHandler),
    ("worktrees/diff", DiffHandler),
]
