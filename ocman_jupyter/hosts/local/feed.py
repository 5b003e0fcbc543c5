"""What one OpenCode says: its state kept from one event stream, and told to everybody who listens."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...errors import OcmanError, OpenCodeError
from ...opencode import changes as changed
from ...opencode.choices import default_models
from ...opencode.coalesce import DeltaPump
from ...opencode.events import EventStream
from ...opencode.instances import Instance
from ...opencode.processes import wait_gone
from ...opencode.records import AskRecord, SessionRecord
from ...opencode.state import DirectorySnapshot, InstanceState
from ...opencode.target import Target
from ..host import LOCAL, Event, InstanceInfo, Retry
from .joining import ask, joined, message, retrying
from .orphans import drop_orphans
from .paths import existing

if TYPE_CHECKING:
    from .parts import Parts

log = logging.getLogger(__name__)

STALE_SECONDS = 10.0
"""Another OpenCode of the user may add sessions to the shared data without any event here."""
SENT_SECONDS = 60.0
"""How long an accepted prompt counts as busy without any word of its turn."""
SETTLE_SECONDS = 2.0
ENDING_SECONDS = 0.5
"""How long a process that may be dying is watched."""
FILL_MESSAGES = 20
"""Newest messages that are read again after a gap."""
REFETCH_AT_ONCE = 4
"""Directories asked about at the same time."""


class Feed:
    """One instance: its client, what is known of it, and its stream.

    ``on_death`` is awaited when the stream broke, to find out whether the process is gone.
    """

    def __init__(
        self,
        parts: Parts,
        instance: Instance,
        target: Target,
        on_death: Callable[[Feed], Awaitable[None]],
        on_quiet: Callable[[Feed, str], None],
    ) -> None:
        self._parts = parts
        self.instance = instance
        self.target = target
        self._on_death = on_death
        self._on_quiet = on_quiet
        self._state = InstanceState()
        self._ready = asyncio.Event()
        self._fetched = 0.0
        self._fetching: asyncio.Task[None] | None = None
        self._waiters: dict[str, set[asyncio.Future[str]]] = {}
        self._sent: dict[str, float] = {}
        self._missing: set[str] = set()
        self._touching: set[asyncio.Task[None]] = set()
        self._pump = DeltaPump(self._tell, parts.settings.delta_interval)
        self._stream = EventStream(
            instance.client,
            on_event=self._on_event,
            on_connect=self._refetch,
            on_lost=self._on_lost,
            max_event_bytes=parts.settings.max_event_bytes,
        )

    @property
    def client(self) -> Any:
        return self.instance.client

    @property
    def worktrees_root(self) -> str:
        return self.target.worktrees_root

    async def belongs(self, directory: str) -> bool:
        """Whether a directory is in this feed's repository."""
        return await self.target.belongs(directory)

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        self._stream.start()

    async def ready(self) -> None:
        """Wait until sessions, status and asks were read once."""
        if not self._ready.is_set():
            try:
                await asyncio.wait_for(self._ready.wait(), self._parts.settings.request_timeout)
            except asyncio.TimeoutError:
                raise OpenCodeError("OpenCode's event stream did not begin in time.") from None

    @property
    def lively(self) -> bool:
        """Whether it is that process still, read once and heard of just now: what a probe would tell."""
        return self._stream.lively and self._ready.is_set() and self.instance.process.runs

    async def ended(self) -> bool:
        """Whether the process is gone; one that dies lets go of its connections a moment before."""
        return not await asyncio.to_thread(wait_gone, [self.instance.process], ENDING_SECONDS)

    async def close(self) -> None:
        await self._stream.close()
        self._pump.close()
        tasks = [*self._touching, *([self._fetching] if self._fetching is not None else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for waiters in self._waiters.values():
            for future in waiters:
                future.cancel()

    def died(self) -> None:
        """The process is gone: what ran was interrupted, what asked asks no more."""
        self._take(self._state.process_died())

    # --- what is known -----------------------------------------------------------------------

    def records(self) -> Iterable[SessionRecord]:
        return self._state.sessions.values()

    def record(self, session_id: str) -> SessionRecord | None:
        return self._state.sessions.get(session_id)

    def status(self, session_id: str) -> str:
        """``busy`` also for a prompt that was sent and not yet begun."""
        status = self._state.status(session_id)
        return "busy" if status in ("idle", "error") and session_id in self._sent else status

    def error(self, session_id: str) -> str | None:
        """Why the last turn failed."""
        failed = self._state.error(session_id)
        return None if failed is None else failed.message

    def retry(self, session_id: str) -> Retry | None:
        """How a turn waits to call its model again."""
        found = self._state.retry(session_id)
        return None if found is None else retrying(found)

    def said_so_far(self, session_id: str) -> list[Event]:
        """The messages of the running turn, whole.  All that was held back is told first."""
        self._pump.flush()
        return [
            Event.model_construct(
                type="message.updated", host=LOCAL,
                data={"session_id": session_id, "message": message(known["info"], known["parts"])},
            )
            for known in self._state.messages(session_id)
        ]

    def pending(self, session_id: str) -> list[AskRecord]:
        return self._state.pending(session_id)

    def top(self, session_id: str) -> str:
        return self._state.top(session_id)

    def missing(self, directory: str) -> bool:
        """Whether a session's directory was gone when we last looked."""
        return directory in self._missing

    async def look_for(self, directories: Iterable[str]) -> None:
        """Find out which of these directories are there, and tell the sessions of those that came or went."""
        asked = set(directories)
        there = await existing(asked)
        before, self._missing = self._missing, (self._missing - there) | (asked - there)
        moved = before ^ self._missing
        for record in [one for one in self.records() if one.parent_id is None and one.directory in moved]:
            data = joined(record, self, self.instance.root).model_dump(mode="json")
            self._parts.bus.publish(Event.model_construct(type="session.updated", host=LOCAL, data=data))

    def asks(self) -> list[AskRecord]:
        return list(self._state.asks.values())

    def busy(self) -> list[str]:
        return self._state.busy()

    def directories(self) -> dict[str, float]:
        """Directories that OpenCode holds a context for → time of the last event (seconds)."""
        return dict(self._state.directories)

    def info(self, launched: bool = False) -> InstanceInfo:
        instance = self.instance
        return InstanceInfo(
            url=instance.url,
            port=instance.port,
            repo_root=instance.root,
            tmux_session=instance.tmux_session,
            launched=launched,
            owner=instance.owner,
            permission_seeded=instance.seeded,
            opencode_version=instance.version,
            pid=instance.pid,
        )

    async def until(self, session_id: str, status: str) -> str:
        """Wait until a session's status is ``status`` (or, for ``idle``, no longer busy)."""

        def there(now: str) -> bool:
            return now == status or (status == "idle" and now in ("error", "idle"))

        while not there(self.status(session_id)):
            future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._waiters.setdefault(session_id, set()).add(future)
            try:
                await future
            finally:
                waiting = self._waiters.get(session_id, set())
                waiting.discard(future)
                if not waiting:
                    self._waiters.pop(session_id, None)
        return self.status(session_id)

    async def settled(self, session_id: str) -> None:
        """Wait until a turn that failed is really over: a prompt sent before that is swallowed."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self._state.settling(session_id) and time.monotonic() < deadline:
            await asyncio.sleep(0.05)

    async def default_model(self, directory: str) -> str:
        """``provider/model`` that OpenCode would use."""
        model = next(default_models(await self.client.providers(directory)), None)
        if model is None:
            raise OpenCodeError("OpenCode has no model configured.")
        return model

    # --- what we do ourselves ----------------------------------------------------------------

    def opened(self, record: SessionRecord) -> None:
        """A session that we made or changed: known at once, before its event."""
        self._take(self._state.note(record))
        self._spawn(self.use(record.directory))

    def deleted(self, session_id: str) -> None:
        """A session that we deleted."""
        self._take(self._state.note_deleted(session_id))

    async def use(self, directory: str) -> None:
        await self._parts.contexts.touch(self.instance.identity, directory)

    def sent(self, session_id: str) -> None:
        """A prompt was accepted: the session is busy although its event is still to come."""
        self._sent[session_id] = time.monotonic()
        asyncio.get_running_loop().call_later(SENT_SECONDS, self._forget_sent, session_id, self._sent[session_id])
        self._publish_status(session_id)

    def _forget_sent(self, session_id: str, moment: float) -> None:
        if self._sent.get(session_id) == moment:
            del self._sent[session_id]
            self._publish_status(session_id)

    async def freed(self, directory: str) -> None:
        """The context of a directory was disposed."""
        await self._parts.contexts.drop(self.instance.identity, directory)

    # --- stream ------------------------------------------------------------------------------

    async def refresh_if_stale(self) -> None:
        """Before the list is told: read sessions again in the background when that was long ago."""
        await self.ready()
        idle = self._fetching is None or self._fetching.done()
        if idle and time.monotonic() - self._fetched > STALE_SECONDS:
            self._fetching = asyncio.ensure_future(self._reread())

    async def reread(self) -> None:
        """Read the sessions again now."""
        mark = self._state.mark()
        sessions = await self.client.sessions(self.target.cwd)
        self._fetched = time.monotonic()
        self._take(self._state.replace(sessions=sessions, since=mark))
        self._spawn(drop_orphans(self._parts, self))

    async def reread_status(self, directory: str) -> None:
        """Read what runs in a directory that has a context."""
        mark = self._state.mark()
        snapshot = await self._look(directory)
        self._take(self._state.replace(directories={directory: snapshot}, since=mark))

    async def _look(self, directory: str) -> DirectorySnapshot:
        # Asks first, status after them: who asks must be seen running.
        permissions = await self.client.permissions(directory)
        questions = await self.client.questions(directory)
        return DirectorySnapshot(permissions, questions, await self.client.statuses(directory))

    async def _reread(self) -> None:
        try:
            await self.reread()
        except OcmanError as error:
            log.debug("sessions of %s were not read again: %s", self.instance.root, error)

    async def _refetch(self) -> None:
        """After each (re)connect: everything that events may have told meanwhile."""
        mark = self._state.mark()
        limit = asyncio.Semaphore(REFETCH_AT_ONCE)

        async def look(directory: str) -> tuple[str, DirectorySnapshot]:
            async with limit:
                return directory, await self._look(directory)

        # Only directories that have a context: asking about another would make one.
        used = await self._parts.contexts.of(self.instance.identity)
        candidates = {*used, *self._state.directories, self.target.cwd}
        there = await existing(candidates)
        directories = dict(await asyncio.gather(*(look(d) for d in there)))
        sessions = await self.client.sessions(self.target.cwd)
        await self.look_for(record.directory for record in sessions)
        self._fetched = time.monotonic()
        self._take(self._state.replace(sessions=sessions, directories=directories, since=mark, gap=True))
        self._ready.set()
        self._spawn(drop_orphans(self._parts, self))

    def _on_lost(self, reason: Exception) -> None:
        self._spawn(self._on_death(self))

    def _on_event(self, event: dict[str, Any]) -> None:
        self._take(self._state.apply(event))

    def _take(self, found: Iterable[changed.Change]) -> None:
        found = list(found)
        for change in found:
            self._wake(change)
        self._pump.push(found)

    def _wake(self, change: changed.Change) -> None:
        """What must not wait for anything: our own bookkeeping."""
        if isinstance(change, changed.StatusChanged):
            self._sent.pop(change.session_id, None)
            for future in self._waiters.get(change.session_id, ()):
                if not future.done():
                    future.set_result(change.status)
            if change.status in ("idle", "error"):
                self._on_quiet(self, change.directory)
        elif isinstance(change, changed.SessionUpdated):
            if self._parts.taken_back.seen(change.session.directory):
                self._spawn(drop_orphans(self._parts, self))
        elif isinstance(change, changed.MessagesMissed):
            if self._parts.bus.listened:
                self._spawn(self._fill(change.session_id))
        elif isinstance(change, changed.DirectoryUsed):
            self._spawn(self.use(change.directory))
        elif isinstance(change, changed.DirectoryFreed):
            self._spawn(self.freed(change.directory))

    async def _fill(self, session_id: str) -> None:
        """Read what a session said while nobody listened."""
        try:
            page = await self.client.messages(session_id, limit=FILL_MESSAGES)
        except OcmanError as error:
            log.debug("messages of %s were not read: %s", session_id, error)
            return
        self._take(self._state.fill(session_id, page.messages))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._touching.add(task)
        task.add_done_callback(self._touching.discard)

    # --- telling -----------------------------------------------------------------------------

    def _publish_status(self, session_id: str) -> None:
        record = self.record(session_id)
        if record is not None:
            data = self._status(session_id, record.directory)
            self._parts.bus.publish(Event.model_construct(type="session.status", host=LOCAL, data=data))

    def _status(self, session_id: str, directory: str) -> dict[str, Any]:
        status = self.status(session_id)
        error = self.error(session_id) if status == "error" else None
        retry = self.retry(session_id)
        return {
            "id": session_id, "directory": directory, "status": status, "error": error,
            "retry": None if retry is None else retry.model_dump(mode="json"),
        }

    def _tell(self, found: list[changed.Change]) -> None:
        """Publish changes as the events that faces know."""
        if not self._parts.bus.listened:
            return
        for change in found:
            event = self._event(change)
            if event is not None:
                self._parts.bus.publish(Event.model_construct(type=event[0], host=LOCAL, data=event[1]))

    def _event(self, change: changed.Change) -> tuple[str, dict[str, Any]] | None:
        if isinstance(change, changed.Delta):
            return "message.delta", {
                "session_id": change.session_id, "message_id": change.message_id, "part_id": change.part_id,
                "field": change.field, "delta": change.delta,
            }
        if isinstance(change, changed.MessageUpdated):
            return "message.updated", {
                "session_id": change.session_id, "message": message(change.info, change.parts)
            }
        if isinstance(change, changed.SessionUpdated):
            if change.session.parent_id is not None:
                return None
            return "session.updated", joined(change.session, self, self.instance.root).model_dump(mode="json")
        if isinstance(change, changed.SessionRemoved):
            return "session.removed", {"id": change.session_id, "directory": change.directory}
        if isinstance(change, changed.StatusChanged):
            return "session.status", self._status(change.session_id, change.directory)
        if isinstance(change, changed.AskCreated):
            return "ask.created", ask(change.ask, self).model_dump(mode="json")
        if isinstance(change, changed.AskResolved):
            return "ask.resolved", {"id": change.id, "session_id": change.top_id, "reply": change.reply}
        return None
