"""One client's events, shared by all panels of this process: connected while somebody listens, and again after
a break.

Everything here runs on the background loop.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import OcmanError, ServerUnreachable

if TYPE_CHECKING:
    from .channel import Channel
    from .client import Client

Json = dict[str, Any]

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 15.0
"""Seconds before the connection is tried again: the first time, and at most."""

log = logging.getLogger(__name__)


class Listener(Protocol):
    """Who wants to hear."""

    @property
    def sessions(self) -> set[str]:
        """Whose messages."""

    def begun(self) -> None:
        """The events flow (again): what was known before may be old."""

    def event(self, event: Json) -> None: ...

    def lost(self, error: OcmanError, again: bool) -> None:
        """The events stopped.  ``again``: they are asked for until they flow, and ``begun`` comes then."""


class Feed:
    """The events of ``client``.

    Listeners are held weakly: one that nobody else holds has left, and with the last one the connection ends.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listeners: list[weakref.ref[Any]] = []
        self._fresh: list[weakref.ref[Any]] = []
        """Listeners that are told to begin once their sessions are followed, so that nothing falls between."""
        self._task: asyncio.Task[None] | None = None
        self._channel: Channel | None = None
        self._sending: asyncio.Task[None] | None = None
        self._followed: set[str] | None = None
        self._error: OcmanError | None = None
        self._closed = False

    @property
    def connected(self) -> bool:
        """Somebody listens and the events flow."""
        return self._channel is not None

    def join(self, listener: Listener) -> None:
        """Begin to tell ``listener``."""
        loop = asyncio.get_running_loop()

        def gone(reference: Any) -> None:  # called on whichever thread let go of it
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._drop, reference)

        reference = weakref.ref(listener, gone)
        self._listeners.append(reference)
        self._fresh.append(reference)
        if self._closed:
            listener.lost(_closed(), False)
        elif self._task is None:
            self._task = loop.create_task(self._run())
        elif self._channel is not None:
            self.follow()
        elif self._error is not None:
            listener.lost(self._error, True)

    def leave(self, listener: Listener) -> None:
        """Tell ``listener`` nothing more."""
        for reference in [one for one in self._listeners if one() is listener]:
            self._drop(reference)

    def follow(self) -> None:
        """Listeners came, left, or want other sessions than before."""
        if self._channel is not None and self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send(self._channel))

    async def close(self) -> None:
        """Tell nobody any more: the client ends."""
        self._closed = True
        task, self._task, self._channel = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._tell(self._listeners, "lost", _closed(), False)

    def _wanted(self) -> set[str]:
        heard = (reference() for reference in self._listeners)
        return {session for listener in heard if listener is not None for session in listener.sessions}

    def _drop(self, reference: Any) -> None:
        if reference in self._listeners:
            self._listeners.remove(reference)
        if reference in self._fresh:
            self._fresh.remove(reference)
        if self._listeners:
            self.follow()
        elif self._task is not None:
            self._task.cancel()
            self._task = self._channel = None

    async def _send(self, channel: Channel) -> None:
        try:
            while self._channel is channel and (self._fresh or self._wanted() != self._followed):
                wanted, fresh = self._wanted(), self._fresh
                self._fresh = []
                if wanted != self._followed:
                    self._followed = wanted
                    await channel.follow(wanted)
                self._tell(fresh, "begun")
        except (OcmanError, OSError, RuntimeError) as error:
            log.debug("the sessions could not be chosen: %r", error)  # the reader meets the same break
        finally:
            self._sending = None
            if self._channel is not channel:
                self.follow()

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._client.events() as channel:
                    while events := await channel.next():
                        for event in events:
                            if event.get("type") == "snapshot":
                                pause = FIRST_PAUSE
                                self._begin(channel)
                            else:
                                self._tell(self._listeners, "event", event)
                error: OcmanError = ServerUnreachable("The event stream ended.")
            except OcmanError as broken:
                error = broken
            except Exception as broken:
                # A panel that stays silent for ever would be worse than one that says what it met.
                log.warning("the events broke off: %r", broken)
                error = ServerUnreachable("The event stream broke off.")
            finally:
                if self._task is asyncio.current_task():
                    self._channel = None
            self._error = error
            self._tell(self._listeners, "lost", error, True)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _begin(self, channel: Channel) -> None:
        self._channel, self._error, self._followed = channel, None, None
        self._fresh = list(self._listeners)
        self.follow()

    def _tell(self, listeners: list[weakref.ref[Any]], what: str, *given: Any) -> None:
        for reference in tuple(listeners):
            listener = reference()
            try:
                if listener is not None:
                    getattr(listener, what)(*given)
            except Exception:  # one panel's fault must not silence the others
                log.exception("a panel failed to take %s", what)


def _closed() -> ServerUnreachable:
    return ServerUnreachable("The connection of this panel was closed.", hint="Run the cell again.")
