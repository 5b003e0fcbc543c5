"""The coarse events on Jupyter's own event bus, for whoever listens there."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

from ..hosts.host import Host
from .encoding import encode
from .redaction import redact

SCHEMA = Path(__file__).parent / "schemas" / "event-v1.yaml"
SCHEMA_ID = "https://schema.jupyter.org/ocman_jupyter/event/v1"

COARSE = frozenset(
    {
        "session.updated",
        "session.removed",
        "session.status",
        "ask.created",
        "ask.resolved",
        "worktree.changed",
        "worktree.removed",
        "instance.changed",
    }
)

RETRY_SECONDS = 5.0


class EventBus:
    """Carries events of hosts to Jupyter's ``event_logger``."""

    def __init__(self, event_logger: Any, log: logging.Logger | logging.LoggerAdapter[Any]) -> None:
        self._bus = event_logger
        self._log = log

    def register(self) -> None:
        """Make the schema known."""
        if SCHEMA_ID not in self._bus.schemas:
            self._bus.register_event_schema(SCHEMA)

    async def carry(self, host: Host) -> None:
        """Emit what happens on ``host``, until cancelled."""
        while True:
            try:
                async with host.events.subscribe() as (_, subscription):
                    subscription.follow(set())
                    while events := await subscription.next():  # nothing: the host ended the stream
                        for event in events:
                            if event.type in COARSE:
                                self._emit(event.type, event.host, event.data)
            except Exception as error:
                self._log.warning(
                    "ocman: host %s has no events for the bus: %s", host.id, redact(repr(error))
                )
            await asyncio.sleep(RETRY_SECONDS)

    def _emit(self, kind: str, host: str, data: dict[str, Any]) -> None:
        try:
            self._bus.emit(
                schema_id=SCHEMA_ID, data={"type": kind, "host": host, "data": json.loads(encode(data))}
            )
        except Exception as error:  # a listener's fault is not the agents'
            self._log.warning("ocman: Jupyter's event bus refused %s: %s", kind, redact(repr(error)))
