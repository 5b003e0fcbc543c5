"""The event stream of this machine for faces: a snapshot, then what changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...errors import OcmanError
from ..host import Event, Session, Snapshot, WorktreeList
from .feeds import Feeds
from .joining import ask
from .parts import Parts
from .sessions import Sessions
from .subscription import Subscription
from .worktrees import Worktrees


class Events:
    """The events service of this machine."""

    def __init__(self, parts: Parts, feeds: Feeds, sessions: Sessions, worktrees: Worktrees) -> None:
        self._parts = parts
        self._feeds = feeds
        self._sessions = sessions
        self._worktrees = worktrees

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[tuple[Snapshot, Subscription]]:
        """A snapshot and the events from then on.  What happens while the snapshot is taken comes after it."""
        subscription = self._parts.bus.open(self._said_so_far)
        try:
            yield await self._snapshot(), subscription
        finally:
            self._parts.bus.drop(subscription)

    def _said_so_far(self, session_id: str) -> list[Event]:
        feed = self._feeds.of_session(session_id)
        return [] if feed is None else feed.said_so_far(session_id)

    async def _snapshot(self) -> Snapshot:
        feeds = self._feeds.all()
        lists = await asyncio.gather(*(self._repository(feed.instance.root) for feed in feeds))
        repositories = [found for found in lists if found is not None]
        sessions: dict[str, Session] = {}
        for found in repositories:
            for session in [s for w in found.worktrees for s in w.sessions] + found.sessions_elsewhere:
                sessions[session.id] = session
        return Snapshot.model_construct(
            instances=[{**feed.info().model_dump(mode="json"), "state": "running"} for feed in feeds],
            sessions=list(sessions.values()),
            asks=[ask(record, feed) for feed in feeds for record in feed.asks()],
            repositories=repositories,
        )

    async def _repository(self, root: str) -> WorktreeList | None:
        try:
            found = await self._worktrees.list(root, changes=False)
            self._feeds.spawn(self._worktrees.refresh(await self._parts.repository(root)))
            return found
        except OcmanError:
            return None  # one broken repository must not hide the others

    async def session(self, session_id: str) -> AsyncIterator[Event]:
        """One session: first its ``session.updated``, then all that happens to it, until it is removed."""
        subscription = self._parts.bus.open()
        subscription.follow({session_id})
        try:
            session = await self._sessions.get(session_id)
            yield Event(type="session.updated", data=session.model_dump(mode="json"))
            while True:
                events = await subscription.next()
                if not events:
                    return
                for event in events:
                    if session_id in (event.data.get("id"), event.data.get("session_id")):
                        yield event
                        if event.type == "session.removed":
                            return
        finally:
            self._parts.bus.drop(subscription)
