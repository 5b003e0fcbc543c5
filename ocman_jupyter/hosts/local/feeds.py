"""The running OpenCodes that this process listens to, one feed each, and what is done in the background."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from ...errors import OcmanError, OpenCodeUnreachable
from ...git.paths import is_within
from ...git.repository import Repository
from ...opencode.instances import Instance
from ...opencode.target import Target
from ...opencode.warmup import sweep
from ..host import LOCAL, Event, Progress
from .feed import Feed
from .orphans import drop_orphans
from .parts import Parts
from .paths import exists

log = logging.getLogger(__name__)

IDLE_CHECK_SECONDS = 60.0
OTHERS_SECONDS = 2.0
"""How soon what another program launched is listened to."""
STALE_WARM_UP_SECONDS = 60.0
"""A younger throw-away session may belong to a warm-up of another process that still runs."""


class Feeds:
    """Finds, keeps and replaces the feed of each repository's instance."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._feeds: dict[str, Feed] = {}
        self._attaching: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._adopting: asyncio.Task[Any] | None = None
        self._closed = False
        self.on_quiet: Callable[[Feed, str], None] = lambda feed, directory: None
        """Called when a session's turn ended, with its directory."""

    # --- finding -----------------------------------------------------------------------------

    def all(self) -> list[Feed]:
        return list(self._feeds.values())

    def warm(self, identity: str) -> bool:
        """Whether a running instance of this repository is being listened to."""
        return identity in self._feeds

    def of_session(self, session_id: str) -> Feed | None:
        """The feed that knows a session and whose repository it works in."""
        found = [feed for feed in self._feeds.values() if feed.record(session_id) is not None]
        if len(found) < 2:
            return found[0] if found else None
        # Clones of a repository list each other's sessions.
        for feed in found:
            record = feed.record(session_id)
            if record is not None and any(
                is_within(record.directory, root) for root in (feed.instance.root, feed.worktrees_root)
            ):
                return feed
        return found[0]

    async def ensure(self, repository: Repository, progress: Progress | None = None) -> Feed:
        """The feed of the one instance, found or launched."""
        return (await self.ensure_told(repository, progress))[0]

    async def ensure_told(self, repository: Repository, progress: Progress | None = None) -> tuple[Feed, bool]:
        """Like `ensure`, and whether this call launched it."""
        target = self._parts.target(repository)
        instance, launched = await self._parts.instances.ensure(target, progress)
        return await self._attach(instance, target), launched

    async def reach(self, repository: Repository, progress: Progress | None = None) -> Feed:
        """Like `ensure`, for a request whose answer tells whether it is alive: no probe before it."""
        feed = self._feeds.get(repository.common_dir)
        return feed if feed is not None and feed.lively else await self.ensure(repository, progress)

    async def ensure_again(self, feed: Feed, progress: Progress | None = None) -> Feed:
        """The feed of the same repository, its instance healed when it died."""
        instance, _ = await self._parts.instances.ensure(feed.target, progress)
        return await self._attach(instance, feed.target)

    async def running(self, repository: Repository) -> Feed | None:
        """The feed of the instance that runs; launches nothing."""
        feed = self._feeds.get(repository.common_dir)
        if feed is not None:
            await feed.ready()
            return self._feeds.get(repository.common_dir)
        instance = await self._parts.instances.find(self._parts.target(repository))
        return None if instance is None else await self._attach(instance, self._parts.target(repository))

    async def running_identity(self, identity: str) -> Feed | None:
        """Like `running`, by the real path of the git common dir."""
        if identity in self._feeds:
            return self._feeds[identity]
        try:
            repository = await self._parts.repository(identity)
        except OcmanError:
            return None
        return await self.running(repository)

    async def adopt_soon(self, seconds: float) -> None:
        """`adopt`, waited for at most so long where something is listened to already: one slow OpenCode must not
        keep what the others ask."""
        if self._adopting is None or self._adopting.done():
            self._adopting = self.spawn(self.adopt())
        await asyncio.wait({self._adopting}, timeout=seconds if self._feeds else None)

    async def adopt(self) -> None:
        """Listen to everything that runs and is in the registry."""
        for instance in await self._parts.instances.known():
            feed = self._feeds.get(instance.identity)
            if feed is not None and feed.instance is instance:
                continue
            try:
                repository = await self._parts.repository(instance.identity)
                await self._attach(instance, self._parts.target(repository))
            except OcmanError as error:
                log.info("the OpenCode of %s is not listened to: %s", instance.root, error)

    # --- attaching ---------------------------------------------------------------------------

    async def _attach(self, instance: Instance, target: Target) -> Feed:
        async with self._attaching.setdefault(instance.identity, asyncio.Lock()):
            feed = self._feeds.get(instance.identity)
            if feed is None or not self._parts.instances.is_live(feed.instance):
                if feed is not None:
                    await self._detach(feed)
                if self._closed:
                    raise OpenCodeUnreachable("Nothing is listened to any more.", details={"url": instance.url})
                feed = Feed(self._parts, instance, target, self._lost, self._quiet)
                self._feeds[instance.identity] = feed
                feed.start()
                self.publish_instance(feed, "running")
                if self._parts.background:
                    self.spawn(self._tidy(feed))
        await feed.ready()
        return feed

    async def _detach(self, feed: Feed, state: str = "stopped") -> None:
        if self._feeds.get(feed.instance.identity) is feed:
            del self._feeds[feed.instance.identity]
        feed.died()
        await feed.close()
        await self._parts.contexts.drop(feed.instance.identity)
        self.publish_instance(feed, state)

    async def _lost(self, feed: Feed) -> None:
        """A stream broke: is the process gone?  While that is unsure the feed goes on trying."""
        if feed.instance.process.runs:
            return
        self.spawn(self._detach(feed))

    async def stopped(self, identity: str) -> None:
        """An instance was stopped by us."""
        feed = self._feeds.get(identity)
        if feed is not None:
            await self._detach(feed)

    async def _tidy(self, feed: Feed) -> None:
        """Delete what a warm-up that was killed left behind."""
        try:
            await feed.ready()
            old = (time.time() - STALE_WARM_UP_SECONDS) * 1000
            every = await feed.client.sessions(feed.target.cwd)
            await sweep(feed.client, [record for record in every if record.updated < old])
        except OcmanError as error:
            log.debug("nothing swept in %s: %s", feed.instance.root, error)

    # --- telling -----------------------------------------------------------------------------

    def publish_instance(self, feed: Feed, state: str) -> None:
        data = {**feed.info().model_dump(mode="json"), "state": state}
        self._parts.bus.publish(Event(type="instance.changed", host=LOCAL, data=data))

    async def look_for(self, identity: str, directory: str) -> None:
        """A directory came or went: tell its sessions so."""
        feed = self._feeds.get(identity)
        if feed is None:
            return
        await feed.look_for(r.directory for r in feed.records() if is_within(r.directory, directory))
        if not await exists(directory):  # one that came has none
            await drop_orphans(self._parts, feed)

    def _quiet(self, feed: Feed, directory: str) -> None:
        self.on_quiet(feed, directory)

    async def reread_status(self, identity: str, directory: str) -> None:
        """Ask OpenCode what runs in a directory: another process's prompt may be younger than its events here."""
        feed = self._feeds.get(identity)
        if feed is not None and directory in await self._parts.contexts.of(identity):
            await feed.reread_status(directory)

    # --- contexts ----------------------------------------------------------------------------

    async def dispose(self, identity: str, directory: str) -> None:
        """Free OpenCode's context of a directory."""
        feed = self._feeds.get(identity)
        if feed is not None:
            await feed.client.dispose(directory)
            await feed.freed(directory)

    async def dispose_idle(self) -> None:
        """Free the contexts of worktrees that were idle for long."""
        limit = time.time() - self._parts.settings.idle_dispose_after
        for feed in self.all():
            last = await self._parts.contexts.of(feed.instance.identity)
            for directory, moment in feed.directories().items():
                last[directory] = max(moment, last.get(directory, 0.0))
            working = {r.directory for r in feed.records() if feed.status(r.id) in ("busy", "needs_you")}
            for directory, moment in last.items():
                ours = is_within(directory, feed.worktrees_root)
                if moment > limit or directory in working or not ours:
                    continue
                try:
                    if await exists(directory):
                        await self.dispose(feed.instance.identity, directory)
                    else:
                        await feed.freed(directory)
                except OcmanError as error:
                    log.info("the context of %s was not freed: %s", directory, error)

    # --- background --------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something in the background until `close`; what it raises is logged, not lost."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.info("in the background: %s", task.exception())

    async def start(self) -> None:
        """Adopt what runs and what others launch, and free what is idle from time to time."""
        self._parts.background = True
        version = await self._parts.store.version()
        await self.adopt()
        self.spawn(self._watch_others(version))
        if self._parts.settings.idle_dispose_after > 0:
            self.spawn(self._watch_idle())

    async def _watch_others(self, version: int) -> None:
        """Listen to what shells, kernels and other servers of the user launch."""
        while True:
            await asyncio.sleep(OTHERS_SECONDS)
            try:
                before, version = version, await self._parts.store.version()
                if version != before and await self._has_unheard():
                    await self.adopt()
            except OcmanError as error:
                log.info("what others launched was not looked for: %s", error)

    async def _has_unheard(self) -> bool:
        for record in await self._parts.instances.registry.all():
            feed = self._feeds.get(record.identity)
            if record.state == "running" and (feed is None or feed.instance.process.pid != record.pid):
                return True
        return False

    async def _watch_idle(self) -> None:
        every = min(IDLE_CHECK_SECONDS, self._parts.settings.idle_dispose_after)
        while True:
            await asyncio.sleep(every)
            await self.dispose_idle()

    async def close(self) -> None:
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for feed in self.all():
            await feed.close()
        self._feeds.clear()
