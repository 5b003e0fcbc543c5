"""OpenCode's cold start of a new worktree, paid in the background while the user types."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ...errors import OcmanError
from ...git.repository import Repository
from ...opencode.warmup import warm
from .feeds import Feeds
from .parts import Parts

log = logging.getLogger(__name__)


class Warming:
    """One warm-up at a time: they cost a core each, and the user's own work goes first."""

    def __init__(self, parts: Parts, feeds: Feeds) -> None:
        self._parts = parts
        self._feeds = feeds
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._turn = asyncio.Lock()

    def begin(self, repository: Repository, directory: str) -> None:
        """Start to warm up a directory whose checkout is complete."""
        wanted = self._parts.background and self._parts.settings.warm_up
        if not wanted or directory in self._running:
            return
        task = self._feeds.spawn(self._warm(repository, directory))
        self._running[directory] = task
        task.add_done_callback(lambda _: self._running.pop(directory, None))

    async def stop(self, directory: str) -> None:
        """End the warm-up of a directory that is about to go."""
        task = self._running.get(directory)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _warm(self, repository: Repository, directory: str) -> None:
        async with self._turn:
            feed = await self._feeds.running(repository)
            if feed is None:
                return
            try:
                await warm(feed.client, directory)
            except OcmanError as error:
                log.debug("no warm-up in %s: %s", directory, error)
