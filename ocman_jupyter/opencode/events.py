"""The one event stream of an instance, kept alive: framing, liveness, reconnects, refetch after each."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import OcmanError
from .foreign import said

if TYPE_CHECKING:
    from .client import OpenCodeClient

log = logging.getLogger(__name__)

SILENCE = 30.0
"""Seconds without a byte after which a stream counts as dead; OpenCode sends a heartbeat every 10."""
HEARTBEAT = 12.0
"""Seconds within which a server that lives has said something, if only its heartbeat."""
CONNECT_DEADLINE = 10.0
STABLE = 5.0
"""Seconds after which a connection counts as good: the next reconnect begins with the short delay again."""
MAX_SLICE = 0.005
"""Seconds of parsing after which the event loop gets its turn."""

_SYNC = b'"payload":{"type":"sync"'
_HEARTBEAT = b'"type":"server.heartbeat"'
_HEAD = 24_000
"""The type stands right after the directory, which has at most 4096 characters (escaped: six bytes each)."""


class Frames:
    """Cuts the bytes of a stream into events.  Pure.

    Unescaped quotes cannot stand inside a JSON string: a search for a key with its quotes only finds the key.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._scanned = 0
        self._skipping = False
        self.skipped = 0
        """Events that were longer than ``limit`` bytes and therefore never held."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of every event that is complete now, without doubles and heartbeats."""
        buffer = self._buffer
        buffer += chunk.replace(b"\r\n", b"\n") if b"\r" in chunk else chunk
        start = 0
        while True:
            end = buffer.find(b"\n\n", max(start, self._scanned))
            if end < 0:
                break
            self._scanned = 0
            if self._skipping or end - start > self._limit:
                self._skipping = False
                self.skipped += 1
            else:
                data = _data(bytes(buffer[start:end]))
                if data is not None:
                    yield data
            start = end + 2
        if start:
            del buffer[:start]
        if len(buffer) > self._limit:
            self._skipping = True
        if self._skipping and len(buffer) > 1:
            del buffer[:-1]  # one byte may be the first half of the end mark
        self._scanned = max(0, len(buffer) - 1)


def _data(frame: bytes) -> bytes | None:
    head = frame[:_HEAD]
    if _SYNC in head or _HEARTBEAT in head:
        return None
    if frame.startswith(b"data: ") and b"\n" not in frame:
        return frame[6:]
    lines = [line[5:].removeprefix(b" ") for line in frame.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines) or None


class EventStream:
    """Reads ``/global/event`` for ever.

    Parameters
    ----------
    on_event:
        Called with each raw event (``{"directory", "payload"}``), in order.  Must not block.
    on_connect:
        Awaited after each (re)connect: refetch here.  Events that come meanwhile are held back and delivered,
        in order, when it is done.  If it fails, the stream connects anew.
    on_lost:
        Called with the reason when the connection is lost or cannot be made (``ConnectionRefused``: nothing
        listens any more).  The stream goes on trying until :meth:`close`.
    """

    def __init__(
        self,
        client: OpenCodeClient,
        on_event: Callable[[dict[str, Any]], None],
        on_connect: Callable[[], Awaitable[None]],
        on_lost: Callable[[Exception], None] | None = None,
        *,
        max_event_bytes: int = 16_000_000,
        max_held_bytes: int = 64_000_000,
        silence: float = SILENCE,
        backoff: tuple[float, float] = (0.2, 5.0),
    ) -> None:
        self._client = client
        self._on_event = on_event
        self._on_connect = on_connect
        self._on_lost = on_lost
        self._max_event_bytes = max_event_bytes
        self._max_held_bytes = max_held_bytes
        self._silence = silence
        self._backoff = backoff
        self._task: asyncio.Task[None] | None = None
        self._held: list[dict[str, Any]] | None = None
        self.connected = False
        """Connected, refetched, and delivering."""
        self._heard = 0.0
        self.skipped = 0
        """Events that were too long to be read."""

    def start(self) -> None:
        """Begin to read, in a task of the running loop."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="ocman-events")

    @property
    def lively(self) -> bool:
        """Connected, and heard of since the last heartbeat was due."""
        return self.connected and time.monotonic() - self._heard < HEARTBEAT

    async def close(self) -> None:
        """Stop; nothing is delivered afterwards."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        shortest, longest = self._backoff
        failures = 0
        while True:
            began = time.monotonic()
            try:
                await self._connection()
                reason: Exception = EOFError("OpenCode ended the stream")
            except asyncio.CancelledError:
                raise
            except Exception as error:  # whatever it is, the stream has to come back
                reason = error
                if not isinstance(error, (OcmanError, EOFError)):
                    log.warning("Event stream of %s: %r", self._client.url, error)
            finally:
                self.connected = False
                self._held = None
            if self._on_lost is not None:
                self._on_lost(reason)
            failures = 0 if time.monotonic() - began > STABLE else failures + 1
            delay = min(longest, shortest * 2 ** min(max(0, failures - 1), 10))
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))

    async def _connection(self) -> None:
        """One connection, from its beginning to its end."""
        stream = self._client.events(self._silence)
        chunks = await asyncio.wait_for(stream.__aenter__(), CONNECT_DEADLINE)
        try:
            self._held = []
            reader = asyncio.ensure_future(self._read(chunks))
            refetch = asyncio.ensure_future(self._refetch())
            try:
                await asyncio.wait({reader, refetch}, return_when=asyncio.FIRST_COMPLETED)
                if refetch.done():
                    refetch.result()
                await reader
            finally:
                reader.cancel()
                refetch.cancel()
                await asyncio.wait({reader, refetch})
        finally:
            await stream.__aexit__(None, None, None)

    async def _refetch(self) -> None:
        await self._on_connect()
        held, self._held = self._held, None
        self.connected = True
        # Nothing can come between: from here on this runs without a pause.
        for event in held or ():
            self._deliver(event)

    async def _read(self, chunks: AsyncIterator[bytes]) -> None:
        frames = Frames(self._max_event_bytes)
        held_bytes = 0
        slice_began = time.monotonic()
        async for chunk in chunks:
            self._heard = time.monotonic()
            for data in frames.feed(chunk):
                try:
                    event = said(data)
                except ValueError:
                    log.warning("An event of %s was not understood (%d bytes).", self._client.url, len(data))
                    continue
                if isinstance(event, dict):
                    if self._held is None:
                        self._deliver(event)
                    else:
                        held_bytes += len(data)
                        if held_bytes > self._max_held_bytes:
                            raise EOFError("too many events came during a refetch")
                        self._held.append(event)
                now = time.monotonic()
                if now - slice_began > MAX_SLICE:
                    await asyncio.sleep(0)
                    slice_began = time.monotonic()
            if frames.skipped:
                self.skipped += frames.skipped
                frames.skipped = 0
                log.warning(
                    "An event of %s was longer than %d bytes and was left out.",
                    self._client.url,
                    self._max_event_bytes,
                )

    def _deliver(self, event: dict[str, Any]) -> None:
        try:
            self._on_event(event)
        except Exception:  # one event that is not understood must not stop those that follow
            log.exception("An event could not be handled.")
