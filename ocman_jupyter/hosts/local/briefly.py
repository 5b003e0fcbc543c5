"""Answers that are good for some seconds: a page asks again with every letter that is typed."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from ...opencode.flights import Flights

T = TypeVar("T")


class Briefly(Generic[T]):
    """Remembers at most ``most`` answers for ``seconds``; who asks meanwhile shares the one under way."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._known: dict[Hashable, tuple[float, T]] = {}
        self._flights: Flights[T] = Flights()

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of ``ask()``, or the one that ``key`` had just now.  A failure is not remembered."""
        self._forget_old()
        if key in self._known:
            return self._known[key][1]

        async def work(say: object) -> T:
            answer = await ask()
            while len(self._known) >= self._most:
                del self._known[next(iter(self._known))]
            self._known[key] = (time.monotonic(), answer)
            return answer

        return (await self._flights.join(key, work))[0]

    def _forget_old(self) -> None:
        limit = time.monotonic() - self._seconds
        for key in [key for key, (moment, _) in self._known.items() if moment < limit]:
            del self._known[key]

    async def close(self) -> None:
        """Give up what is under way."""
        await self._flights.close()
