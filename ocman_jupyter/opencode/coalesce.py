"""Merges the text that streams in, so that pages get it a few times a second; nothing else waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from .changes import Change, Delta


class Deltas:
    """Passes changes on and holds back deltas, per session, for ``interval`` seconds.

    The first delta after a pause goes out at once.  Whatever else a session says sends its deltas first, so
    that the order within a session is kept.  Pure: the time is ``clock()``.
    """

    def __init__(self, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval
        self._clock = clock
        self._held: dict[str, dict[tuple[str, str, str], list[str]]] = {}
        self._sent: dict[str, float] = {}
        """When a delta of a session last went out; kept while it matters."""

    def add(self, changes: Iterable[Change]) -> list[Change]:
        """What can go out now, in order."""
        ready: list[Change] = []
        now: float | None = None
        for change in changes:
            session_id = change.session_id
            if not isinstance(change, Delta):
                if session_id in self._held:
                    ready += self._release(session_id)
                ready.append(change)
                continue
            if now is None:
                now = self._clock()
            held = self._held.get(change.session_id)
            if held is None:
                if now - self._sent.get(change.session_id, float("-inf")) >= self._interval:
                    self._sent[change.session_id] = now
                    ready.append(change)
                    continue
                held = self._held[change.session_id] = {}
            held.setdefault((change.message_id, change.part_id, change.field), []).append(change.delta)
        return ready

    def due(self) -> float | None:
        """When (by the clock) :meth:`flush` has something to give; ``None`` = nothing is held."""
        if not self._held:
            return None
        return min(self._sent.get(session_id, 0.0) for session_id in self._held) + self._interval

    def flush(self, everything: bool = False) -> list[Change]:
        """Held deltas whose time has come."""
        now = self._clock()
        ready: list[Change] = []
        for session_id in [*self._held]:
            if everything or now - self._sent.get(session_id, 0.0) >= self._interval:
                self._sent[session_id] = now
                ready += self._release(session_id)
        for session_id in [
            key for key, sent in self._sent.items() if now - sent >= self._interval and key not in self._held
        ]:
            del self._sent[session_id]
        return ready

    def _release(self, session_id: str) -> list[Change]:
        held = self._held.pop(session_id)
        return [Delta(session_id, *key, "".join(chunks)) for key, chunks in held.items()]


class DeltaPump:
    """:class:`Deltas` on the running event loop: gives to ``emit`` what is ready, when it is."""

    def __init__(self, emit: Callable[[list[Change]], None], interval: float) -> None:
        self._emit = emit
        self._deltas = Deltas(interval)
        self._timer: asyncio.TimerHandle | None = None

    def push(self, changes: Iterable[Change]) -> None:
        ready = self._deltas.add(changes)
        if ready:
            self._emit(ready)
        self._arm()

    def flush(self) -> None:
        """Send what is held now."""
        ready = self._deltas.flush(everything=True)
        if ready:
            self._emit(ready)

    def close(self) -> None:
        """Send what is held, and stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.flush()

    def _arm(self) -> None:
        due = self._deltas.due()
        if due is not None and self._timer is None:
            delay = max(0.0, due - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay, self._fire)

    def _fire(self) -> None:
        self._timer = None
        ready = self._deltas.flush()
        if ready:
            self._emit(ready)
        self._arm()
