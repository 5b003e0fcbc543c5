"""The events hub: what every page hears, in order, each event serialised once for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from tornado.websocket import WebSocketClosedError

from ..errors import OcmanError
from ..hosts.host import LOCAL, Event, Host, Progress, Subscription
from .encoding import encode

Send = Callable[[bytes], Awaitable[None]]
"""Gives one frame to the client; done when the client's connection took it."""

RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 30.0
OWN_EVENTS = 256
"""How many progress sentences wait for a slow client; the oldest go first."""


class Hub:
    """All listeners of one server."""

    def __init__(self, log: logging.Logger | logging.LoggerAdapter[Any]) -> None:
        self.log = log
        self.feeds: set[Feed] = set()
        self.closed = asyncio.Event()
        """Set when the server stops; whoever streams ends then."""
        self._encoded: dict[int, tuple[Event, bytes, bytes]] = {}

    def encoded(self, event: Event) -> tuple[bytes, bytes]:
        """The frame of ``event`` without its ``seq``: what comes before the number, and after it."""
        known = self._encoded.get(id(event))
        if known is not None:  # the entry keeps the event alive, so its id is still its own
            return known[1], known[2]
        head, tail = _frame(event.type, event.host, event.data)
        if len(self._encoded) >= 512:
            self._encoded.clear()
        self._encoded[id(event)] = (event, head, tail)
        return head, tail

    def publish(self, event: Event) -> None:
        """Tell every page something that no host tells."""
        for feed in self.feeds:
            feed.put(event)

    def progress(self, host: str, directory: str, operation: str | None = None) -> Progress:
        """Sentences of one long operation on ``host`` as ``progress`` events.  May be called from any thread.

        ``operation`` is the name that the events carry: the request's own id where it has one.
        """
        loop = asyncio.get_running_loop()
        name = operation or uuid.uuid4().hex

        def tell(message: str, fraction: float | None = None) -> None:
            data = {"operation": name, "message": message, "fraction": fraction, "directory": directory}
            event = Event(type="progress", host=host, data=data)
            if _running_loop() is loop:
                self.publish(event)
            else:
                loop.call_soon_threadsafe(self.publish, event)

        return tell

    async def close(self) -> None:
        self.closed.set()
        await asyncio.sleep(0)


class Feed:
    """What one page gets: a snapshot of each host, then all that happens, numbered.

    A slow client is waited for; meanwhile its place in the host's stream (`Subscription`) coalesces.
    """

    def __init__(self, hub: Hub, hosts: list[Host], send: Send) -> None:
        self._hub = hub
        self._hosts = hosts
        self._write = send
        self._sequence = 0
        self._sessions: set[str] = set()
        self._subscriptions: dict[str, Subscription] = {}
        self._own: deque[Event] = deque(maxlen=OWN_EVENTS)
        self._own_ready = asyncio.Event()
        self._begun = asyncio.Event()

    def follow(self, sessions: set[str]) -> None:
        """Choose whose ``message.*`` events come."""
        self._sessions = set(sessions)
        for subscription in self._subscriptions.values():
            subscription.follow(set(sessions))

    def put(self, event: Event) -> None:
        """An event of the server's own."""
        self._own.append(event)
        self._own_ready.set()

    async def error(self, error: OcmanError) -> None:
        """Tell the client that what it sent was wrong."""
        await self._send(*_frame("error", LOCAL, error.to_json()))

    async def run(self) -> None:
        """Feed the client until it is gone."""
        self._hub.feeds.add(self)
        pumps = [asyncio.ensure_future(self._pump_host(host)) for host in self._hosts]
        pumps.append(asyncio.ensure_future(self._pump_own()))
        try:
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in done:
                with contextlib.suppress(WebSocketClosedError):
                    pump.result()
        finally:
            self._hub.feeds.discard(self)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump_host(self, host: Host) -> None:
        delay = RETRY_SECONDS
        while True:
            try:
                async with host.events.subscribe() as (snapshot, subscription):
                    subscription.follow(set(self._sessions))
                    self._subscriptions[host.id] = subscription
                    await self._send(*_frame("snapshot", host.id, snapshot))
                    self._begun.set()
                    delay = RETRY_SECONDS
                    while events := await subscription.next():  # nothing: the host ended the stream
                        for event in events:
                            await self._send(*self._hub.encoded(event))
            except WebSocketClosedError:
                raise
            except Exception as error:
                # The place in the stream is lost: take a new one, which begins with a snapshot.
                self._hub.log.warning("ocman: events of host %s broke off: %r", host.id, error)
                if isinstance(error, OcmanError):
                    await self.error(error)
            finally:
                self._subscriptions.pop(host.id, None)
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_RETRY_SECONDS)

    async def _pump_own(self) -> None:
        await self._begun.wait()  # the snapshot comes first
        while True:
            await self._own_ready.wait()
            self._own_ready.clear()
            while self._own:
                await self._send(*self._hub.encoded(self._own.popleft()))

    async def _send(self, head: bytes, tail: bytes) -> None:
        self._sequence += 1
        await self._write(b"%b%d%b" % (head, self._sequence, tail))


def _frame(kind: str, host: str, data: Any) -> tuple[bytes, bytes]:
    return (
        b'{"type":%b,"host":%b,"seq":' % (encode(kind), encode(host)),
        b',"data":%b}' % encode(data),
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
