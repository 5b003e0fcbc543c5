"""The two event streams: one WebSocket per page, and server-sent events of one session for scripts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from pydantic import BaseModel, ConfigDict, Field
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from .. import errors
from ..hosts.host import Event
from . import failures
from .backend import Backend
from .base import RESOURCE, Operation, TypedErrors, operation
from .encoding import encode
from .events import Feed
from .parsing import HostQuery, Query, parse_message, parse_query
from .sessions import SessionHandler

AUTH_CHECK_SECONDS = 30.0
"""How often a page's login is looked at again while its stream is open."""

COMMENT_SECONDS = 15.0
"""How often a silent stream of server-sent events shows that it is alive."""

GOING_AWAY = 1001
POLICY_VIOLATION = 1008


class EndOfStream(Exception):
    """The session is gone."""


class Follow(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    sessions: list[str] = Field(max_length=1000)
    """Whose ``message.*`` events come from now on."""


class ClientMessage(BaseModel):
    """What a page may send."""

    model_config = ConfigDict(extra="forbid", strict=True)

    subscribe: Follow


class EventsHandler(TypedErrors, WebSocketMixin, WebSocketHandler, JupyterHandler):
    """``events``: all that happens, as it happens."""

    auth_resource = RESOURCE
    _feed: Feed | None = None
    _running: asyncio.Task[None] | None = None

    @ws_authenticated
    @authorized(action="read")
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """A WebSocket of events: a snapshot of each host, then all that happens."""
        try:
            parse_query(Query, self.request.query_arguments)
            if self.request.headers.get("Upgrade", "").lower() != "websocket":
                raise errors.InvalidRequest("This address speaks WebSocket only.")
        except errors.InvalidRequest as error:
            self.answer_error(error)
            return
        await super().get(*args, **kwargs)

    get.operation = Operation(  # type: ignore[attr-defined]
        "A WebSocket of events: a snapshot of each host, then all that happens.", "read", {101: None}
    )

    @property
    def backend(self) -> Backend:
        return self.settings["ocman_backend"]

    def open(self, *args: Any, **kwargs: Any) -> None:
        super().open(*args, **kwargs)
        self.set_nodelay(True)  # else a small frame may wait for the answer to the one before
        # The identity provider would renew the login cookie when it is asked again; it is too late for that.
        self.set_cookie = _nothing  # type: ignore[method-assign]
        self._running = self.backend.run(self._run())

    async def _run(self) -> None:
        try:
            router = await self.backend.router()
            self._feed = Feed(self.backend.hub, router.hosts(), self._send)
            parts = [
                asyncio.ensure_future(part)
                for part in (self._feed.run(), self._watch_login(), self.backend.hub.closed.wait())
            ]
            try:
                done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
                for part in done:
                    part.result()
            finally:
                for part in parts:
                    part.cancel()
                await asyncio.gather(*parts, return_exceptions=True)
        except Exception as error:
            self.log_fault(error)
        finally:
            self.close(GOING_AWAY)

    async def _send(self, frame: bytes) -> None:
        await self.write_message(frame)

    async def _watch_login(self) -> None:
        while True:
            await asyncio.sleep(AUTH_CHECK_SECONDS)
            self._jupyter_current_user = None  # else the identity provider answers what it answered before
            user = await ensure_async(self.identity_provider.get_user(self))
            if user and await ensure_async(self.authorizer.is_authorized(self, user, "read", RESOURCE)):
                continue
            self.close(POLICY_VIOLATION, "The login is no longer valid.")
            return

    async def on_message(self, message: str | bytes) -> None:  # type: ignore[override]
        # The next message is read when this is done: a client that only sends fills no buffer of ours.
        try:
            wanted = parse_message(ClientMessage, message)
            if self._feed is None:
                raise errors.InvalidRequest("Wait for the snapshot first.")
            self._feed.follow(set(wanted.subscribe.sessions))
        except errors.OcmanError as error:
            if self._feed is not None:
                with contextlib.suppress(WebSocketClosedError):
                    await self._feed.error(error)

    def on_close(self) -> None:
        if self._running is not None:
            self._running.cancel()
        super().on_close()


class SessionStreamHandler(SessionHandler):
    """``sessions/{id}/stream``: one session's events for scripts."""

    _task: asyncio.Task[Any] | None = None
    _gone = False
    """The reader went away."""

    @operation("read", {200: None}, query=HostQuery, errors=failures.SESSION)
    async def get(self, session: str, query: HostQuery) -> None:
        """One session's events as server-sent events."""
        host = await self.host(session, query.host)
        self._task = asyncio.current_task()
        closing = self.backend.run(self._end_with_the_server(self._task))
        try:
            async with aclosing(host.events.session(session)) as events:
                # The first event comes at once; a session that is not there is a typed error in its place.
                first = await _next(events)
                self.set_header("Content-Type", "text/event-stream; charset=utf-8")
                self.set_header("Cache-Control", "no-cache, no-transform")
                self.set_header("X-Accel-Buffering", "no")
                self.write(": stream\n\n")
                await self._copy(first, events)
        except (StreamClosedError, EndOfStream):
            pass
        except asyncio.CancelledError:
            if not (self.backend.hub.closed.is_set() or self._gone):
                raise
        except Exception as error:
            if not self._headers_written:
                raise
            if not isinstance(error, errors.OcmanError):
                self.log_fault(error)
                error = errors.OcmanError()
            self.write(b"event: error\ndata: %b\n\n" % encode(error.to_json()))
        finally:
            closing.cancel()
        if not self._gone:
            self.finish(set_content_type="text/event-stream; charset=utf-8")

    async def _copy(self, event: Event, events: AsyncIterator[Event]) -> None:
        number = 0
        following: asyncio.Future[Event] | None = None
        try:
            while True:
                number += 1
                data = {"type": event.type, "host": event.host, "seq": number, "data": event.data}
                self.write(b"id: %d\nevent: %b\ndata: %b\n\n" % (number, event.type.encode(), encode(data)))
                await self.flush()
                following = asyncio.ensure_future(_next(events))
                while not (await asyncio.wait({following}, timeout=COMMENT_SECONDS))[0]:
                    self.write(": alive\n\n")
                    await self.flush()
                event = following.result()
        finally:
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    async def _end_with_the_server(self, task: asyncio.Task[Any] | None) -> None:
        await self.backend.hub.closed.wait()
        if task is not None:
            task.cancel()

    def on_connection_close(self) -> None:
        self._gone = True
        if self._task is not None:
            self._task.cancel()
        super().on_connection_close()


def _nothing(*args: Any, **kwargs: Any) -> None:
    """In place of what cannot be done any more."""


async def _next(events: AsyncIterator[Event]) -> Event:
    """The next event, for a task; `EndOfStream` after the last."""
    try:
        return await events.__anext__()
    except StopAsyncIteration:
        raise EndOfStream from None


ROUTES = [("events", EventsHandler), ("sessions/{id}/stream", SessionStreamHandler)]
