"""The hosts behind the routes: built when first needed, started in the background, closed with the server."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ..settings import OcmanSettings
from .events import Hub
from .redaction import redact

if TYPE_CHECKING:
    from ..hosts.router import Router

CLOSE_SECONDS = 10.0
"""How long one host may take to close."""

START_RETRY_SECONDS = 2.0
LONGEST_START_RETRY_SECONDS = 300.0


def default_router(settings: OcmanSettings) -> Router:
    """This machine, and whoever joins it."""
    from ..hosts.local import local_host
    from ..hosts.router import Router

    return Router(local_host(settings))


def _import_hosts() -> None:
    importlib.import_module("ocman_jupyter.hosts.local")


class Backend:
    """One per Jupyter server.

    Parameters
    ----------
    factory:
        Makes the router; called on the event loop, once.
    """

    def __init__(
        self,
        settings: OcmanSettings,
        log: logging.Logger | logging.LoggerAdapter[Any],
        factory: Callable[[OcmanSettings], Router] = default_router,
    ) -> None:
        self.settings = settings
        self.log = log
        self.hub = Hub(log)
        self._factory = factory
        self._router: Router | None = None
        self._building: asyncio.Task[Router] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def router(self) -> Router:
        """The hosts.  The first call builds them and starts them in the background."""
        if self._router is not None:
            return self._router
        if self._building is None or self._building.done():
            self._building = asyncio.ensure_future(self._build())
        # A request that is given up does not give up the building for the others.
        return await asyncio.shield(self._building)

    async def _build(self) -> Router:
        if self._factory is default_router:
            # Heavy imports must not hold up the event loop.
            await asyncio.get_running_loop().run_in_executor(None, _import_hosts)
        router = self._factory(self.settings)
        self._router = router
        if not self._closed:
            for host in router.hosts():
                self.run(self._start(host))
        return router

    async def _start(self, host: Any) -> None:
        delay = START_RETRY_SECONDS
        while True:
            try:
                await host.start()
                return
            except Exception as error:
                self.log.warning(
                    "ocman: host %s did not start (%s: %s); next try in %.0f s",
                    host.id,
                    type(error).__name__,
                    redact(str(error)),
                    delay,
                )
            await asyncio.sleep(delay)
            delay = min(delay * 4, LONGEST_START_RETRY_SECONDS)

    def run(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do ``work`` in the background until it ends or the server stops."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Stop listening.  What runs on the hosts lives on."""
        self._closed = True
        await self.hub.close()
        if self._building is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(asyncio.shield(self._building), CLOSE_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for host in self._router.hosts() if self._router is not None else []:
            try:
                await asyncio.wait_for(host.close(), CLOSE_SECONDS)
            except Exception:
                self.log.warning("ocman: host %s did not close", host.id, exc_info=True)
