"""Following one session until its turn is over: for ``watch``, and for a prompt that waits for its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ..errors import NoSuchSession, OpenCodeUnreachable, ServerUnreachable
from .client import Client
from .states import RESTING
from .transcript import Transcript, failure, words

Json = dict[str, Any]

START_GRACE = 120.0
"""Seconds until work that was sent must have begun: a cold start beside others is slow."""
LOOK = 3.0
"""After so many seconds without an event the session is asked, in case an edge was lost."""
HISTORY = 50
"""How many of the last messages are looked at."""
RECONNECTS = 4


@dataclass(frozen=True)
class Turn:
    """How a turn ended."""

    status: str
    answer: str
    """What the agent said, without its tool calls."""
    error: str | None


async def follow(
    client: Client,
    session_id: str,
    transcript: Transcript,
    send: Callable[[], Awaitable[Any]] | None = None,
    grace: float = START_GRACE,
) -> Turn:
    """Put what happens in a session into ``transcript`` until it rests.

    ``send`` is awaited once the events flow, so nothing of its turn is missed; the turn that is waited for
    is then that of the message it sent.  Without it a session that rests gives its last turn at once, unless
    work that was just sent has yet to begin.  An OpenCode that is gone is launched only for ``send``.
    """
    async with _Events(client, session_id) as events:
        first = await events.first()
        transcript.event(first)
        session = first.get("data") or {}
        status = str(session.get("status") or "unknown")
        try:
            history = await _history(client, session_id)
        except OpenCodeUnreachable:
            if not send or not session.get("directory"):
                raise
            # Sending launches it, reading does not; and what is there already must be known before.
            await client.ensure(session["directory"])
            history = await _history(client, session_id)
        known = {message["info"]["id"] for message in history}
        own: str | None = None if send else _last_user(history, set())
        if send:
            await send()
        else:
            for message in _turn(history, own):
                transcript.message(message)
        began = status not in RESTING
        waiting = bool(send) or began or (status != "error" and _about_to_begin(session, history, own))
        deadline = time.monotonic() + grace
        quiet = 0
        while waiting:
            event = await events.next(LOOK)
            if event is None:
                quiet += 1
                status = str((await client.session(session_id)).get("status") or "unknown")
            else:
                quiet = 0
                transcript.event(event)
                data = event.get("data") or {}
                if event.get("type") == "session.removed":
                    raise NoSuchSession("The session was deleted.")
                if (
                    event.get("type") not in ("session.status", "session.updated")
                    or data.get("id") != session_id
                ):
                    continue
                status = str(data.get("status") or status)
            if status not in RESTING:
                began = True
                continue
            history = await _history(client, session_id)
            if own is None:
                own = _last_user(history, known)
            # Rest alone is not the end of a message that was queued: the turn before it ends too.
            waiting = not (
                (own is not None and _answered(history, own))
                or (began and (not send or status == "error" or quiet > 1))
                or time.monotonic() > deadline
            )
    turn = _turn(await _history(client, session_id), own)
    for message in turn:
        transcript.message(message)
    said = [message for message in turn if message["info"].get("role") == "assistant"]
    error = next((text for message in reversed(said) if (text := failure(message["info"]))), None)
    if error is None and status == "error":
        error = str((await client.session(session_id)).get("error") or "OpenCode gave no reason.")
        transcript.failed(error)
    transcript.end()
    return Turn(
        status=status,
        answer="\n".join(filter(None, map(words, said))),
        error=error,
    )


class _Events:
    """The session's events, read by a task of its own; a connection that breaks later is made again."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._session_id = session_id
        self._queue: asyncio.Queue[Json | BaseException] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> _Events:
        self._task = asyncio.get_running_loop().create_task(self._read())
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def first(self) -> Json:
        """The event that the stream begins with."""
        return _raised(await self._queue.get())

    async def next(self, timeout: float) -> Json | None:
        """The next event, or ``None`` after ``timeout`` seconds."""
        try:
            return _raised(await asyncio.wait_for(self._queue.get(), timeout))
        except asyncio.TimeoutError:
            return None

    async def _read(self) -> None:
        left, seen = RECONNECTS, False
        try:
            while True:
                try:
                    async with aclosing(self._client.stream(self._session_id)) as stream:
                        async for event in stream:
                            left, seen = RECONNECTS, True
                            self._queue.put_nowait(event)
                except ServerUnreachable:
                    if not seen or not left:
                        raise
                if not left:
                    raise ServerUnreachable("The event stream of the session ended.")
                left -= 1
                await asyncio.sleep(0.25 * 2 ** (RECONNECTS - left))
        except Exception as error:
            self._queue.put_nowait(error)


def _raised(item: Json | BaseException) -> Json:
    if isinstance(item, BaseException):
        raise item
    return item


async def _history(client: Client, session_id: str) -> list[Json]:
    return list((await client.messages(session_id, HISTORY)).get("messages") or [])


def _last_user(history: list[Json], known: set[str]) -> str | None:
    """The last message of the user that is not ``known``; the first such one when there are known ones."""
    users = [message["info"]["id"] for message in history if message["info"].get("role") == "user"]
    if known:
        return next((key for key in users if key not in known), None)
    return users[-1] if users else None


def _turn(history: list[Json], own: str | None) -> list[Json]:
    """The user's message ``own`` and what was said to it, up to the user's next one."""
    turn: list[Json] = []
    for message in history:
        if message["info"]["id"] == own:
            turn = [message]
        elif turn:
            if message["info"].get("role") == "user":
                break
            turn.append(message)
    return turn


def _answered(history: list[Json], own: str | None) -> bool:
    said = _turn(history, own)[1:]
    return any((m["info"].get("time") or {}).get("completed") or m["info"].get("error") for m in said)


def _about_to_begin(session: Json, history: list[Json], own: str | None) -> bool:
    if own is not None:
        return not _answered(history, own)
    try:
        made = datetime.fromisoformat(str(session.get("created")).replace("Z", "+00:00"))
    except ValueError:
        return False
    return (datetime.now(timezone.utc) - made).total_seconds() < 20
