"""One listener's pending events: coalesced while it is slow, so that memory is bounded and no edge is lost."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from ..host import Event

_MESSAGES = ("message.updated", "message.delta")

SaidSoFar = Callable[[str], Iterable[Event]]
"""What the running turn of a session said, whole; text that is held back goes to the other listeners first."""


class Subscription:
    """Pending events by what they are about.

    Newer state of a session, worktree, instance or message replaces older state that was not read yet; text
    deltas of one part are joined.  Asks are kept one by one.

    ``said_so_far``: asked for each session that is followed from now on, so that deltas continue a known text.
    """

    def __init__(self, said_so_far: SaidSoFar | None = None) -> None:
        self._said_so_far = said_so_far
        self._pending: OrderedDict[tuple[Any, ...], Event] = OrderedDict()
        self._ready = asyncio.Event()
        self._follow: set[str] | None = set()
        self._count = 0
        self._closed = False

    def follow(self, sessions: set[str] | None) -> None:
        """Choose whose ``message.*`` events come; ``None`` = all."""
        new = set() if sessions is None or self._follow is None else sessions - self._follow
        # Asked before they are followed: what was held back until now is in the whole text.
        so_far = [event for session in sorted(new) for event in self._said(session)]
        self._follow = sessions if sessions is None else set(sessions)
        for event in so_far:
            self.offer(event)

    def _said(self, session_id: str) -> Iterable[Event]:
        return () if self._said_so_far is None else self._said_so_far(session_id)

    def offer(self, event: Event) -> None:
        """Take an event from the feed; never waits."""
        if self._closed:
            return
        data = event.data
        if event.type in _MESSAGES:
            if self._follow is not None and data["session_id"] not in self._follow:
                return
            self._offer_message(event)
        else:
            key = self._key(event)
            self._pending.pop(key, None)
            self._pending[key] = event
        self._ready.set()

    def _key(self, event: Event) -> tuple[Any, ...]:
        data = event.data
        if event.type in ("session.updated", "session.status", "session.removed"):
            if event.type == "session.removed":
                for kind in ("session.updated", "session.status"):
                    self._pending.pop((event.host, kind, data["id"]), None)
            return (event.host, event.type, data["id"])
        if event.type in ("worktree.changed", "worktree.removed"):
            return (event.host, event.type, data["path"])
        if event.type == "instance.changed":
            return (event.host, event.type, data["repo_root"])
        if event.type == "progress":
            return (event.host, event.type, data["operation"])
        self._count += 1
        return (event.host, event.type, self._count)

    def _offer_message(self, event: Event) -> None:
        data = event.data
        if event.type == "message.updated":
            message = (event.host, "message", data["session_id"], data["message"]["info"]["id"])
            # The whole message holds the text of its pending deltas.
            for key in [k for k in self._pending if k[:4] == message]:
                del self._pending[key]
            self._pending[(*message, None, None)] = event
            return
        key = (event.host, "message", data["session_id"], data["message_id"], data["part_id"], data["field"])
        before = self._pending.get(key)
        if before is not None:
            event = event.model_copy(update={"data": {**data, "delta": before.data["delta"] + data["delta"]}})
        self._pending[key] = event

    async def next(self) -> list[Event]:
        """Wait, then give all that is ready, in order.  Empty when the stream has ended."""
        await self._ready.wait()
        events = list(self._pending.values())
        self._pending.clear()
        if not self._closed:
            self._ready.clear()
        return events

    def close(self) -> None:
        """End the stream: what is pending is still given, then nothing."""
        self._closed = True
        self._ready.set()


class Bus:
    """Gives each event to every subscription."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    @property
    def listened(self) -> bool:
        """Whether anybody listens."""
        return bool(self._subscriptions)

    def publish(self, event: Event) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.offer(event)

    def open(self, said_so_far: SaidSoFar | None = None) -> Subscription:
        subscription = Subscription(said_so_far)
        self._subscriptions.add(subscription)
        return subscription

    def drop(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        subscription.close()

    def close(self) -> None:
        for subscription in tuple(self._subscriptions):
            self.drop(subscription)
