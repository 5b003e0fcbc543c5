"""The running OpenCodes of this machine: found, launched, listed, stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ...errors import NotOurs, OcmanError, SessionBusy
from ...git.repository import Repository
from ..host import InstanceDetails, InstanceInfo, Progress
from .feed import Feed
from .feeds import Feeds
from .parts import Parts
from .paths import rfc3339
from .sessions import Sessions

log = logging.getLogger(__name__)

FORCED_SECONDS = 5.0
"""How long one that is stopped by force is asked what runs in it."""


class Instances:
    """The instances service of this machine."""

    def __init__(self, parts: Parts, feeds: Feeds, sessions: Sessions) -> None:
        self._parts = parts
        self._feeds = feeds
        self._sessions = sessions

    async def ensure(self, directory: str, progress: Progress | None = None) -> InstanceInfo:
        repository = await self._ready(directory)
        feed, launched = await self._feeds.ensure_told(repository, progress)
        return feed.info(launched)

    async def _ready(self, directory: str) -> Repository:
        repository = await self._parts.repository(directory)
        await self._parts.repositories.require_commits(repository)
        return repository

    async def list(self) -> list[InstanceDetails]:
        await self._feeds.adopt()
        return [await self._details(feed) for feed in self._feeds.all()]

    async def _details(self, feed: Feed) -> InstanceDetails:
        sessions = [r for r in feed.records() if r.parent_id is None]
        started = feed.instance.started_at
        return InstanceDetails(
            **feed.info().model_dump(),
            sessions=len(sessions),
            busy=len([r for r in sessions if feed.status(r.id) in ("busy", "needs_you")]),
            rss_bytes=await asyncio.to_thread(resident_bytes, feed.instance.pid),
            started_at=None if started is None else rfc3339(started * 1000),
        )

    async def stop(self, directory: str, force: bool = False) -> None:
        """Stop an instance that ocman launched.  Raises `NotOurs`, and `SessionBusy` unless ``force``."""
        repository = await self._parts.repository(directory)
        await self._prepare(repository, force)
        await self._parts.instances.stop(self._parts.target(repository))
        await self._feeds.stopped(repository.common_dir)

    async def restart(
        self, directory: str, force: bool = False, progress: Progress | None = None
    ) -> InstanceInfo:
        repository = await self._ready(directory)
        await self._prepare(repository, force)
        await self._parts.instances.restart(self._parts.target(repository), progress)
        await self._feeds.stopped(repository.common_dir)
        return (await self._feeds.ensure(repository, progress)).info(launched=True)

    async def _prepare(self, repository: Repository, force: bool) -> None:
        """Find out whether it may be stopped; with ``force`` abort what runs, as far as it can be asked."""
        if not force:
            await self._stoppable(repository, force)
            return
        try:
            await asyncio.wait_for(self._stoppable(repository, force), FORCED_SECONDS)
        except NotOurs:
            raise
        except (OcmanError, asyncio.TimeoutError) as error:
            log.info("the OpenCode of %s is stopped unasked: %r", repository.root, error)

    async def _stoppable(self, repository: Repository, force: bool) -> None:
        feed = await self._feeds.running(repository)
        if feed is None:
            return
        if feed.instance.owner != "ocman":
            raise NotOurs(details={"pid": feed.instance.pid, "url": feed.instance.url})
        busy = self._tops(feed, feed.busy())
        if busy and not force:
            titles = [f"{feed.record(i).title} ({i})" for i in busy if feed.record(i)]
            raise SessionBusy(
                f"{len(busy)} session{'s are' if len(busy) > 1 else ' is'} busy: {', '.join(titles)}.",
                hint="Wait, abort them, or use force.",
                details={"sessions": busy},
            )
        for session_id in busy:
            await feed.client.abort(session_id)

    @staticmethod
    def _tops(feed: Feed, busy: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(feed.top(session_id) for session_id in busy))


def resident_bytes(pid: int | None) -> int | None:
    """Resident memory of a process, or ``None`` when it is gone."""
    import psutil

    try:
        return None if pid is None else psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None
