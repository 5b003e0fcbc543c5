"""OpenCode sessions of this machine: opened where they belong, told with their status, given work."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from ...errors import (
    DirectoryMissing,
    InvalidFolder,
    InvalidRequest,
    NoSuchDirectory,
    NoSuchSession,
    NotARepository,
    OcmanError,
    OpenCodeError,
    OpenCodeUnreachable,
    SessionBusy,
    SessionDirectoryMismatch,
)
from ...git.paths import is_within, shown
from ...git.repository import Repository
from ...opencode.client import ConnectionRefused, Unsure
from ...opencode.foreign import text
from ...opencode.permissions import session_rules
from ...opencode.records import SessionRecord
from ..host import Notice, Progress, PromptRequest, Session, SessionList, SessionRequest
from ..request import fault
from .feeds import Feed, Feeds
from .joining import joined, noted
from .orphans import is_unclaimed
from .parts import Parts
from .paths import deepest, existing, exists, real
from .records import SessionNote

T = TypeVar("T")

ABORT_SECONDS = 10.0
MESSAGE_PAGE = 1000


@dataclass(frozen=True)
class Opened:
    """A session that was opened just now."""

    session: Session
    inherited: int
    """Session rules taken over from another session."""
    seeded: bool
    """Whether its OpenCode was launched with the worktree permissions."""
    warnings: list[Notice]
    """What is odd about its OpenCode."""


class Sessions:
    """The sessions service of this machine."""

    def __init__(self, parts: Parts, feeds: Feeds) -> None:
        self._parts = parts
        self._feeds = feeds

    # --- reading -----------------------------------------------------------------------------

    async def list(self, directory: str) -> SessionList:
        return await self.of_repository(await self._parts.repository(directory))

    async def of_repository(self, repository: Repository, worktrees: Iterable[str] = ()) -> SessionList:
        """A repository's sessions, newest first.  Launches nothing: without an OpenCode, those that ocman made.

        ``worktrees``: real paths of its worktrees, also of missing ones, where they are known.
        """
        feed = await self._feeds.running(repository)
        if feed is None:
            notes = await self._parts.notes.of_repository(repository.common_dir)
            there = await existing(note.directory for note in notes)
            return SessionList(
                sessions=[noted(note, repository.root, note.directory not in there) for note in notes], hidden=0
            )
        await feed.refresh_if_stale()
        ours = {note.id for note in await self._parts.notes.of_repository(repository.common_dir)}
        await feed.look_for(record.directory for record in feed.records())
        roots = {repository.root, repository.worktrees_root, *worktrees}
        sessions, hidden = [], 0
        belongs: dict[str, bool] = {}
        for record in feed.records():
            if record.parent_id is not None:
                hidden += 1
                continue
            if record.directory not in belongs:
                belongs[record.directory] = await self._belongs(feed, record.directory, roots)
            if belongs[record.directory] or record.id in ours:
                sessions.append(joined(record, feed, repository.root))
            else:
                hidden += 1
        sessions.sort(key=lambda s: s.updated, reverse=True)
        return SessionList.model_construct(sessions=sessions, hidden=hidden)

    @staticmethod
    async def _belongs(feed: Feed, directory: str, roots: set[str]) -> bool:
        """Whether a session's directory is in this repository and not in a clone of it."""
        if feed.missing(directory):
            return deepest(directory, roots) is not None
        return await feed.belongs(directory)

    async def get(self, session_id: str) -> Session:
        found = await self._find(session_id)
        if isinstance(found, SessionNote):
            return noted(found, await self._root(found), not await exists(found.directory))
        feed, record = found
        await feed.look_for([record.directory])
        return joined(record, feed, feed.instance.root)

    async def messages(self, session_id: str, limit: int = 100, before: str | None = None) -> dict[str, Any]:
        feed = await self._read(session_id)
        page = await feed.client.messages(session_id, limit=limit, before=before)
        return {"messages": page.messages, "next": page.next}

    async def todos(self, session_id: str) -> list[dict[str, Any]]:
        feed = await self._read(session_id)
        return [
            {key: text(todo.get(key)) for key in ("content", "status", "priority")}
            for todo in await feed.client.todos(session_id)
        ]

    async def first_prompt(self, session_id: str) -> str | None:
        """The text that a session began with."""
        feed = await self._read(session_id)
        before, oldest = None, []
        while True:
            page = await feed.client.messages(session_id, limit=MESSAGE_PAGE, before=before)
            oldest = page.messages or oldest
            before = page.next
            if before is None:
                break
        for message in oldest:
            if message["info"].get("role") == "user":
                return "\n".join(text(p.get("text")) or "" for p in message["parts"] if p.get("type") == "text")
        return None

    # --- where a session lives ---------------------------------------------------------------

    async def _find(self, session_id: str) -> tuple[Feed, SessionRecord] | SessionNote:
        """Feed and record of a session; where no OpenCode runs for it, what ocman noted.  Launches nothing.

        Raises `NoSuchSession`, also for an id that no URL could hold.
        """
        if fault(session_id):
            raise NoSuchSession(details={"id": session_id})
        feed, note = self._feeds.of_session(session_id), None
        if feed is None:
            note = await self._parts.notes.get(session_id)
            feed = await (self._owner(session_id) if note is None else self._feeds.running_identity(note.identity))
        if feed is not None:
            return feed, feed.record(session_id) or await feed.client.session(session_id)
        if note is None:
            raise NoSuchSession(details={"id": session_id})
        return note

    async def _root(self, note: SessionNote) -> str | None:
        """Main checkout of a session that ocman made, if it is still there."""
        try:
            return (await self._parts.repository(note.identity)).root
        except OcmanError:
            return None

    async def _owner(self, session_id: str) -> Feed | None:
        """The feed of a session that nobody announced: every OpenCode of the user sees all sessions."""
        await self._feeds.adopt()
        owner = self._feeds.of_session(session_id)
        if owner is not None:
            return owner
        for feed in self._feeds.all():
            try:
                record = await feed.client.session(session_id)
            except (NoSuchSession, OpenCodeError, ConnectionRefused):
                continue
            for candidate in self._feeds.all():
                if await candidate.belongs(record.directory):
                    return candidate
        return None

    async def _read(self, session_id: str) -> Feed:
        """The running OpenCode that serves this session.  Reading launches nothing."""
        found = await self._find(session_id)
        if isinstance(found, SessionNote):
            raise OpenCodeUnreachable(
                "No OpenCode runs that could read this session.",
                hint="Start it with `ocman-jupyter ensure` or `%ocman ensure`.",
                details={"id": session_id},
            )
        return found[0]

    async def _reach(self, session_id: str, progress: Progress | None = None) -> Feed:
        """A running OpenCode that serves this session, launched when there is none."""
        found = await self._find(session_id)
        if isinstance(found, SessionNote):
            start = found.directory if await exists(found.directory) else found.identity
            return await self._feeds.ensure(await self._parts.repository(start), progress)
        return await self._feeds.ensure_again(found[0], progress)

    async def _working(self, session_id: str) -> Feed:
        """Like `_reach`, for what makes the agent work: its directory must still be its own.

        OpenCode would make a directory that is gone again, outside of git.
        """
        feed = await self._reach(session_id)
        record = feed.record(session_id) or await feed.client.session(session_id)
        await self._check_directory(feed.instance.identity, record.directory)
        await feed.use(record.directory)
        return feed

    async def workplace(self, session_id: str) -> tuple[Repository, str]:
        """The repository of a session as seen from its directory, and that directory, which is its own.

        Launches nothing.  Raises `NoSuchSession`, `DirectoryMissing`.
        """
        found = await self._find(session_id)
        if isinstance(found, SessionNote):
            identity, directory = found.identity, found.directory
        else:
            identity, directory = found[0].instance.identity, found[1].directory
        return await self._check_directory(identity, directory), directory

    async def serving(self, session_id: str) -> tuple[Feed, str]:
        """The running OpenCode of a session, and its directory, which may be asked about.

        Launches nothing.  Raises `NoSuchSession`, `OpenCodeUnreachable`, `DirectoryMissing`.
        """
        feed = await self._read(session_id)
        record = feed.record(session_id) or await feed.client.session(session_id)
        await self._check_directory(feed.instance.identity, record.directory)
        return feed, record.directory

    async def _check_directory(self, identity: str, directory: str) -> Repository:
        if not await exists(directory):
            raise DirectoryMissing(details={"directory": directory})
        try:
            repository = await self._parts.repository(directory)
        except NotARepository as error:
            raise DirectoryMissing(error.message, hint=error.hint, details={"directory": directory}) from None
        if repository.common_dir != identity:
            raise DirectoryMissing(
                "Another repository is in the directory of this session now.", details={"directory": directory}
            )
        await self._parts.worktrees.verify(repository.toplevel)
        return repository

    async def _healed(self, session_id: str, work: Callable[[Feed], Awaitable[T]]) -> T:
        """``work(feed)``, once more when the OpenCode had died: refused means that nothing was sent."""
        feed = await self._working(session_id)
        try:
            return await work(feed)
        except ConnectionRefused:
            return await work(await self._working(session_id))

    # --- opening -----------------------------------------------------------------------------

    async def create(self, request: SessionRequest, progress: Progress | None = None) -> Session:
        async def work() -> Session:
            if request.directory is None:
                raise InvalidRequest("directory is required.", details={"field": "directory"})
            directory = await asyncio.to_thread(real, request.directory)
            if not await exists(directory):
                raise NoSuchDirectory(
                    f"There is no directory {request.directory}.", details={"directory": request.directory}
                )
            repository = await self._parts.repository(directory)
            if _is_gits_own(directory, repository):
                raise InvalidFolder(
                    f"{shown(directory)} holds git's own files; no agent works there.",
                    hint="Give a checkout, or a folder in one.",
                    details={"field": "directory", "directory": shown(directory)},
                )
            await self._parts.repositories.require_commits(repository)
            await self._parts.worktrees.verify(repository.toplevel)
            return (await self.open(repository, directory, request, progress)).session

        return await self._parts.requests.once(
            request.request_id, "sessions", request.model_dump(mode="json"), Session, work
        )

    async def open(
        self,
        repository: Repository,
        directory: str,
        request: SessionRequest,
        progress: Progress | None,
        take_up: bool = False,
    ) -> Opened:
        """Open a session in ``directory`` (real, checked by the caller) and send its prompt.

        ``take_up``: nobody else opens one there meanwhile, so one that an earlier try was not told of is taken.
        Raises `SessionDirectoryMismatch` when OpenCode put it elsewhere; it is then deleted again.
        """
        inherited = await self._inheritable(request.inherit_from)
        feed = await self._feeds.reach(repository, progress)
        rules = [*session_rules(repository.worktrees_root), *inherited]
        record = await self._left_over(feed, directory, request.title, rules) if take_up else None
        try:
            record = record or await feed.client.create_session(directory, request.title, rules)
        except (ConnectionRefused, Unsure) as error:
            if isinstance(error, Unsure) and not await feed.ended():
                raise
            # It died: what it had begun is gone with it.
            feed = await self._feeds.ensure(repository, progress)
            record = await feed.client.create_session(directory, request.title, rules)
        if real(record.directory) != real(directory) or record.project_id == "global":
            await feed.client.delete_session(record.id)
            # It may have been removed while OpenCode was asked.
            await self._check_directory(repository.common_dir, directory)
            raise SessionDirectoryMismatch(details={"asked": directory, "opened": record.directory})
        feed.opened(record)
        await self._parts.notes.add(record.id, repository.common_dir, directory, None)
        if request.prompt is not None:
            feed = await self._begin(repository, feed, record.id, request, progress)
            # Only now: a session whose prompt did not arrive has not begun with it.
            await self._parts.notes.add(record.id, repository.common_dir, directory, request.prompt)
        warnings = [Notice(code=code, message=text) for code, text in feed.instance.warnings]
        return Opened(joined(record, feed, repository.root), len(inherited), feed.instance.seeded, warnings)

    async def _left_over(
        self, feed: Feed, directory: str, title: str | None, rules: list[dict[str, Any]]
    ) -> SessionRecord | None:
        """A session like the wanted one that was made while its caller gave up or was killed: it has no note."""
        for record in list(feed.records()):
            wanted = (record.directory, record.title, record.permission) == (directory, title, rules)
            if wanted and await is_unclaimed(self._parts, feed, record):
                return record
        return None

    async def _begin(
        self, repository: Repository, feed: Feed, session_id: str, request: SessionRequest, progress: Progress | None
    ) -> Feed:
        """Send the prompt that a new session begins with; one that cannot be sent takes the session with it."""
        assert request.prompt is not None
        try:
            try:
                await feed.client.prompt(session_id, request.prompt, (), request.agent, request.model)
            except ConnectionRefused:
                feed = await self._feeds.ensure(repository, progress)
                await feed.client.prompt(session_id, request.prompt, (), request.agent, request.model)
        except Unsure:
            raise  # it may have arrived
        except OcmanError:
            with contextlib.suppress(OcmanError):
                await self.delete(session_id)
            raise
        feed.sent(session_id)
        return feed

    async def _inheritable(self, session_id: str | None) -> list[dict[str, Any]]:
        """The session rules of another session, as far as they are its own."""
        if session_id is None:
            return []
        feed = await self._reach(session_id)
        record = await feed.client.session(session_id)
        own = session_rules(feed.worktrees_root)
        return [rule for rule in record.permission if rule not in own]

    async def fork(self, session_id: str, message_id: str | None = None, request_id: str | None = None) -> Session:
        async def work() -> Session:
            feed = await self._working(session_id)
            origin = await feed.client.session(session_id)
            record = await feed.client.fork(session_id, message_id)
            if real(record.directory) != real(origin.directory):
                await feed.client.delete_session(record.id)
                raise SessionDirectoryMismatch(
                    details={"asked": origin.directory, "opened": record.directory}
                )
            if origin.permission:  # OpenCode drops them
                record = await feed.client.set_permission(record.id, origin.permission)
            feed.opened(record)
            await self._parts.notes.add(record.id, feed.instance.identity, record.directory, None)
            return joined(record, feed, feed.instance.root)

        body = {"session_id": session_id, "message_id": message_id}
        return await self._parts.requests.once(request_id, "fork", body, Session, work)

    # --- work --------------------------------------------------------------------------------

    async def prompt(self, session_id: str, request: PromptRequest) -> bool:
        async def send(feed: Feed) -> bool:
            record = feed.record(session_id) or await feed.client.session(session_id)
            files = [await asyncio.to_thread(self._file, record.directory, name) for name in request.files]
            await feed.settled(session_id)
            queued = feed.status(session_id) in ("busy", "needs_you")
            await feed.client.prompt(session_id, request.text, files, request.agent, request.model)
            feed.sent(session_id)
            return queued

        return await self._healed(session_id, send)

    @staticmethod
    def _file(directory: str, name: str) -> str:
        """Absolute path of a file that goes with a prompt; it must be in the session's directory."""
        path = real(os.path.join(directory, name))
        if not is_within(path, real(directory)) or not os.path.isfile(path):
            raise InvalidRequest(
                f"files: {name!r} is not a file in the session's directory.", details={"field": "files", "path": name}
            )
        return path

    async def shell(self, session_id: str, command: str) -> None:
        await self._start(session_id, lambda feed: feed.client.shell(session_id, command))

    async def command(self, session_id: str, name: str, arguments: str = "") -> None:
        await self._start(session_id, lambda feed: feed.client.command(session_id, name, arguments))

    async def summarize(self, session_id: str) -> None:
        feed = await self._working(session_id)
        record = await feed.client.session(session_id)
        model = record.model or await feed.default_model(record.directory)
        await self._start(session_id, lambda feed: feed.client.summarize(session_id, model))

    async def _start(self, session_id: str, call: Callable[[Feed], Awaitable[None]]) -> None:
        """Begin a call that answers when its turn is over; return once it was taken or refused.

        Taken is told by the session's status; a refusal is OpenCode's answer.
        """
        feed = await self._working(session_id)
        if feed.status(session_id) in ("busy", "needs_you"):
            raise SessionBusy(details={"id": session_id})
        turn = self._feeds.spawn(call(feed))
        busy = asyncio.ensure_future(feed.until(session_id, "busy"))
        try:
            await asyncio.wait({turn, busy}, return_when=asyncio.FIRST_COMPLETED, timeout=ABORT_SECONDS)
        finally:
            busy.cancel()
        if turn.done():
            turn.result()

    async def abort(self, session_id: str) -> None:
        feed = await self._reach(session_id)
        await feed.client.abort(session_id)

    async def abort_and_wait(self, session_id: str) -> None:
        """Abort and wait until the session is idle.  Raises `SessionBusy` when it does not stop."""
        feed = await self._reach(session_id)
        idle = asyncio.ensure_future(feed.until(session_id, "idle"))
        try:
            await feed.client.abort(session_id)
            await asyncio.wait_for(idle, ABORT_SECONDS)
        except asyncio.TimeoutError:
            raise SessionBusy(
                "The session did not stop when it was aborted.", details={"id": session_id}
            ) from None
        finally:
            idle.cancel()

    async def rename(self, session_id: str, title: str) -> Session:
        feed = await self._reach(session_id)
        record = await feed.client.rename(session_id, title)
        feed.opened(record)
        return joined(record, feed, feed.instance.root)

    async def delete(self, session_id: str) -> None:
        """Delete a session.  A running one is aborted first: OpenCode would keep it busy for ever."""
        feed = await self._reach(session_id)
        if feed.status(session_id) in ("busy", "needs_you"):
            await self.abort_and_wait(session_id)
        await feed.client.delete_session(session_id)
        feed.deleted(session_id)
        await self._parts.notes.forget(session_id)


def _is_gits_own(directory: str, repository: Repository) -> bool:
    """Whether a directory (real) is the repository's ``.git`` or bare folder, or in it, but in no checkout there."""
    common = repository.common_dir
    checkout_there = repository.toplevel != common and is_within(repository.toplevel, common)
    return is_within(directory, common) and not checkout_there
