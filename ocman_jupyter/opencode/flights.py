"""Work that several callers wait for together and that belongs to none of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Progress = Callable[[str, "float | None"], None]
"""Called with a short sentence and, where it is known, the fraction that is done (0–1)."""
Say = Callable[[str], None]

log = logging.getLogger(__name__)


class Flight(Generic[T]):
    """One piece of work under way, and those who hear of its progress."""

    def __init__(self) -> None:
        self.task: asyncio.Task[T] | None = None
        self.listeners: list[Progress] = []
        self.last: str | None = None

    def say(self, sentence: str) -> None:
        self.last = sentence
        for listener in list(self.listeners):
            _tell(listener, sentence)


class Flights(Generic[T]):
    """At most one flight for each key.

    A caller that is cancelled leaves; the work goes on for the others.  An error reaches all who wait, and
    the next caller begins anew.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, Flight[T]] = {}

    async def join(
        self, key: Hashable, work: Callable[[Say], Awaitable[T]], progress: Progress | None = None
    ) -> tuple[T, bool]:
        """The outcome of the flight, and whether this caller began it."""
        flight = self._flights.get(key)
        began = flight is None
        if flight is None:
            flight = Flight()
            flight.task = asyncio.get_running_loop().create_task(_run(work, flight.say))
            self._flights[key] = flight
            flight.task.add_done_callback(lambda task: self._landed(key, task))
        assert flight.task is not None
        if progress is not None:
            if flight.last is not None:
                _tell(progress, flight.last)
            flight.listeners.append(progress)
        try:
            return await asyncio.shield(flight.task), began
        finally:
            if progress is not None:
                flight.listeners.remove(progress)

    def _landed(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        self._flights.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen: perhaps nobody waits any more

    async def close(self) -> None:
        """End what is under way.  What it left half done, the next program that asks finishes."""
        tasks = [flight.task for flight in self._flights.values() if flight.task]
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


async def _run(work: Callable[[Say], Awaitable[T]], say: Say) -> T:
    return await work(say)


def _tell(progress: Progress, sentence: str) -> None:
    try:
        progress(sentence, None)
    except Exception:
        log.exception("a listener to progress failed")
