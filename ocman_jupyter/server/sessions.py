"""``sessions`` and ``asks``: agent sessions, and what they wait for."""

from __future__ import annotations

import re

from .. import errors
from ..hosts.host import (
    CommandRequest,
    Diff,
    ForkRequest,
    Host,
    PromptRequest,
    RenameRequest,
    ReplyRequest,
    Request,
    Session,
    SessionList,
    SessionOptions,
    SessionRequest,
    ShellRequest,
)
from ..hosts.router import Router
from . import failures
from .answers import Aborted, Accepted, AskList, Deleted, FileList, MessageList, Queued, Replied, TodoList
from .base import OcmanHandler, host_of, operation
from .parsing import FilesQuery, HostQuery, MessagesQuery, SessionsQuery

IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,200}")


def owner(router: Router, directory: str | None, project: str | None, host: str | None) -> tuple[Host, str]:
    """The host and the directory that a request names by either.

    Raises `InvalidRequest`, `NoSuchHost` or `NoSuchProject`.
    """
    if (directory is None) == (project is None):
        raise errors.InvalidRequest(
            "Exactly one of 'directory' and 'project' must be given.", details={"field": "directory"}
        )
    if directory is None:
        router.for_host(host)
        raise errors.NoSuchProject(details={"project": project})
    return router.for_directory(directory, host), directory


class SessionHandler(OcmanHandler):
    """Base of the routes of one session."""

    async def host(self, session: str, host: str | None) -> Host:
        """The host that has the session.  Raises `NoSuchHost`, `NoSuchSession`."""
        found = (await self.router()).for_host(host)
        if not IDENTIFIER.fullmatch(session):
            raise errors.NoSuchSession()
        return found


class SessionsHandler(OcmanHandler):
    @operation(
        "read",
        {200: SessionList},
        query=SessionsQuery,
        errors=(*failures.PLACE, errors.NoSuchProject),
    )
    async def get(self, query: SessionsQuery) -> SessionList:
        """The sessions of a repository."""
        host, directory = owner(await self.router(), query.directory, query.project, query.host)
        return await host.sessions.list(directory)

    @operation(
        "execute",
        {201: Session},
        body=SessionRequest,
        errors=(*failures.WORK, errors.NoSuchProject, errors.SessionDirectoryMismatch),
    )
    async def post(self, request: SessionRequest) -> Session:
        """Open a session in a directory."""
        host, directory = owner(await self.router(), request.directory, request.project, request.host)
        made = await host.sessions.create(request, self.progress(host.id, directory, request.request_id))
        self.set_status(201)
        return made


class OneSessionHandler(SessionHandler):
    @operation("read", {200: Session}, query=HostQuery, errors=failures.SESSION)
    async def get(self, session: str, query: HostQuery) -> Session:
        """One session."""
        return await (await self.host(session, query.host)).sessions.get(session)

    @operation("write", {200: Session}, body=RenameRequest, errors=failures.SESSION)
    async def patch(self, session: str, request: RenameRequest) -> Session:
        """Rename a session."""
        return await (await self.host(session, request.host)).sessions.rename(session, request.title)

    @operation(
        "write", {200: Deleted}, query=HostQuery, body=Request, errors=(*failures.SESSION, errors.SessionBusy)
    )
    async def delete(self, session: str, query: HostQuery, request: Request) -> Deleted:
        """Delete a session; what it does is aborted first."""
        await (await self.host(session, host_of(query, request))).sessions.delete(session)
        return Deleted()


class MessagesHandler(SessionHandler):
    @operation("read", {200: MessageList}, query=MessagesQuery, errors=failures.SESSION)
    async def get(self, session: str, query: MessagesQuery) -> MessageList:
        """A page of a session's messages, the newest page without ``before``."""
        host = await self.host(session, query.host)
        return MessageList.model_validate(await host.sessions.messages(session, query.limit, query.before))


class TodosHandler(SessionHandler):
    @operation("read", {200: TodoList}, query=HostQuery, errors=failures.SESSION)
    async def get(self, session: str, query: HostQuery) -> TodoList:
        """What the agent of a session means to do."""
        return TodoList(todos=await (await self.host(session, query.host)).sessions.todos(session))


class SessionDiffHandler(SessionHandler):
    @operation("read", {200: Diff}, query=HostQuery, errors=(*failures.DIFF, errors.NoSuchSession))
    async def get(self, session: str, query: HostQuery) -> Diff:
        """What differs in a session's worktree from its base; in a main checkout what is not committed."""
        return await (await self.host(session, query.host)).diffs.session(session)


class OptionsHandler(SessionHandler):
    @operation(
        "read", {200: SessionOptions}, query=HostQuery, errors=(*failures.SESSION, errors.DirectoryMissing)
    )
    async def get(self, session: str, query: HostQuery) -> SessionOptions:
        """The agents, models and commands that a prompt of a session can be given to."""
        return await (await self.host(session, query.host)).composing.options(session)


class FilesHandler(SessionHandler):
    @operation("read", {200: FileList}, query=FilesQuery, errors=(*failures.SESSION, errors.DirectoryMissing))
    async def get(self, session: str, query: FilesQuery) -> FileList:
        """Files of a session's directory, tracked or not ignored, whose path goes with ``query``."""
        host = await self.host(session, query.host)
        return FileList(files=await host.composing.files(session, query.query, query.limit))


class PromptHandler(SessionHandler):
    @operation("execute", {202: Queued}, body=PromptRequest, errors=failures.WORK)
    async def post(self, session: str, request: PromptRequest) -> Queued:
        """Send work to a session."""
        queued = await (await self.host(session, request.host)).sessions.prompt(session, request)
        self.set_status(202)
        return Queued(queued=queued)


class ShellHandler(SessionHandler):
    @operation("execute", {202: Accepted}, body=ShellRequest, errors=failures.WORK)
    async def post(self, session: str, request: ShellRequest) -> Accepted:
        """Run a shell command in a session's directory."""
        await (await self.host(session, request.host)).sessions.shell(session, request.command)
        self.set_status(202)
        return Accepted()


class CommandHandler(SessionHandler):
    @operation("execute", {202: Accepted}, body=CommandRequest, errors=failures.WORK)
    async def post(self, session: str, request: CommandRequest) -> Accepted:
        """Run one of OpenCode's ``/`` commands in a session."""
        await (await self.host(session, request.host)).sessions.command(
            session, request.name, request.arguments
        )
        self.set_status(202)
        return Accepted()


class AbortHandler(SessionHandler):
    @operation("write", {200: Aborted}, body=Request, errors=failures.SESSION)
    async def post(self, session: str, request: Request) -> Aborted:
        """Abort what a session does."""
        await (await self.host(session, request.host)).sessions.abort(session)
        return Aborted()


class ForkHandler(SessionHandler):
    @operation("write", {201: Session}, body=ForkRequest, errors=failures.WORK)
    async def post(self, session: str, request: ForkRequest) -> Session:
        """Fork a session: same directory, same rules, its messages up to one of them."""
        host = await self.host(session, request.host)
        made = await host.sessions.fork(session, request.message_id, request.request_id)
        self.set_status(201)
        return made


class SummarizeHandler(SessionHandler):
    @operation("write", {202: Accepted}, body=Request, errors=failures.WORK)
    async def post(self, session: str, request: Request) -> Accepted:
        """Shorten a session's history to a summary."""
        await (await self.host(session, request.host)).sessions.summarize(session)
        self.set_status(202)
        return Accepted()


class AsksHandler(OcmanHandler):
    @operation("read", {200: AskList}, query=HostQuery, errors=failures.HOST + failures.OPENCODE)
    async def get(self, query: HostQuery) -> AskList:
        """All that needs you; without a host that of all hosts."""
        router = await self.router()
        hosts = router.hosts() if query.host is None else [router.for_host(query.host)]
        return AskList(asks=[ask for host in hosts for ask in await host.asks.list()])


class ReplyHandler(OcmanHandler):
    @operation(
        "write",
        {200: Replied},
        body=ReplyRequest,
        errors=(*failures.SESSION, errors.NotFound),
    )
    async def post(self, ask: str, request: ReplyRequest) -> Replied:
        """Answer an ask; 404 when it was answered elsewhere."""
        if (request.reply is None) == (request.answers is None):
            raise errors.InvalidRequest(
                "Exactly one of 'reply' and 'answers' must be given.", details={"field": "reply"}
            )
        host = (await self.router()).for_host(request.host)
        if not IDENTIFIER.fullmatch(ask):
            raise errors.NotFound()
        await host.asks.reply(ask, request)
        return Replied()


ROUTES = [
    ("sessions", SessionsHandler),
    ("sessions/{id}", OneSessionHandler),
    ("sessions/{id}/messages", MessagesHandler),
    ("sessions/{id}/todos", TodosHandler),
    ("sessions/{id}/diff", SessionDiffHandler),
    ("sessions/{id}/options", OptionsHandler),
    ("sessions/{id}/files", FilesHandler),
    ("sessions/{id}/prompt", PromptHandler),
    ("sessions/{id}/shell", ShellHandler),
    ("sessions/{id}/command", CommandHandler),
    ("sessions/{id}/abort", AbortHandler),
    ("sessions/{id}/fork", ForkHandler),
    ("sessions/{id}/summarize", SummarizeHandler),
    ("asks", AsksHandler),
    ("asks/{id}/reply", ReplyHandler),
]
