"""The server extension: its configuration, its start and its end."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from jupyter_server.extension.application import ExtensionApp
from traitlets import Callable

from ..settings import OcmanSettings
from .backend import Backend, default_router
from .bus import EventBus
from .redaction import redact
from .routes import handlers

BEGIN_AFTER_SECONDS = 0.5
"""Jupyter's own first answers come before our imports.  A request of ours does not wait for this."""


class OcmanExtension(ExtensionApp):
    """OpenCode sessions in git worktrees, over REST.  Configured by ``c.OcmanSettings``."""

    name = "ocman_jupyter"
    extension_url = "/lab"
    load_other_extensions = True
    classes = [OcmanSettings]

    host_factory = Callable(
        default_router,
        help="Makes the router of hosts from the settings.  Called once, when the hosts are first needed.",
    ).tag(config=True)

    backend: Backend | None = None

    def initialize_settings(self) -> None:
        app = self.serverapp
        assert app is not None
        self.backend = Backend(OcmanSettings(parent=self), self.log, self.host_factory)
        self.settings["ocman_backend"] = self.backend
        # Jupyter tells the page its root only relative to HOME; the panel asks about absolute directories.
        app.web_app.settings.setdefault("page_config_data", {})["ocmanRoot"] = os.path.realpath(app.root_dir)
        if app.certfile:
            # Kernels trust exactly this server's certificate when they call it.
            os.environ["OCMAN_CERTFILE"] = os.path.abspath(app.certfile)

    def initialize_handlers(self) -> None:
        self.handlers.extend(handlers())

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        # In the background: a host that is slow or broken must not hold up Jupyter.
        if self.backend is not None:
            self.backend.run(self._begin(self.backend, EventBus(serverapp.event_logger, self.log)))

    async def _begin(self, backend: Backend, bus: EventBus) -> None:
        await asyncio.sleep(BEGIN_AFTER_SECONDS)
        try:
            router = await backend.router()
            bus.register()
        except Exception as error:
            self.log.warning("ocman: the hosts are not there yet: %s", redact(repr(error)))
            return
        for host in router.hosts():
            backend.run(bus.carry(host))

    async def stop_extension(self) -> None:
        if self.backend is not None:
            await self.backend.close()
