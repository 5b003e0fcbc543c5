"""Answers that are good for some seconds."""

from __future__ import annotations

import asyncio

import pytest

from ocman_jupyter.hosts.local import briefly
from ocman_jupyter.hosts.local.briefly import Briefly


class Source:
    def __init__(self) -> None:
        self.asked = 0
        self.fails = False

    async def __call__(self) -> int:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(0)
        if self.fails:
            raise ValueError
        return number


async def test_an_answer_is_remembered_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    known, source = Briefly[int](5, 10), Source()
    now = briefly.time.monotonic()
    monkeypatch.setattr(briefly.time, "monotonic", lambda: now)
    assert [await known.get("k", source) for _ in range(3)] == [1, 1, 1]
    assert await known.get("other", source) == 2
    monkeypatch.setattr(briefly.time, "monotonic", lambda: now + 5.1)
    assert await known.get("k", source) == 3


async def test_who_asks_at_the_same_time_shares_one_answer() -> None:
    known, source = Briefly[int](5, 10), Source()
    assert await asyncio.gather(*(known.get("k", source) for _ in range(5))) == [1] * 5


async def test_a_failure_is_not_remembered() -> None:
    known, source = Briefly[int](5, 10), Source()
    source.fails = True
    with pytest.raises(ValueError):
        await known.get("k", source)
    source.fails = False
    assert await known.get("k", source) == 2


async def test_only_so_many_are_kept() -> None:
    known, source = Briefly[int](60, 2), Source()
    for key in "abc":
        await known.get(key, source)
    assert [await known.get(key, source) for key in "cba"] == [3, 2, 4]
    await known.close()
